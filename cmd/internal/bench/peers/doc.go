// Package peers puts the workload of package locks under other lock services, beside ours and one after the other: etcd with
// its own client's concurrency.Mutex, and ZooKeeper with go-zookeeper's Lock. Each stands as three servers, processes of
// their own that sync what they answer to a directory of their own, on loopback, with the settings that they come with.
//
// It is a module of its own, so that none of this is among the libraries of fencepost. It has no code but tests, and is
// called by make bench-peers, which installs ZooKeeper where it is missing:
//
//	go test -run none -bench Locks -benchtime 10s .
//
// go-zookeeper's Lock has no way to try: its clients lock, which is the same for a lock that nobody else wants.
package peers
