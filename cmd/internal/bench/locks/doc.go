// Package locks is a workload of locks that is written once and put under several lock services: ours, and the peers that
// the module cmd/internal/bench/peers adds.
//
// A [Service] stands when it is given: three servers, processes of their own, each with its own directory and its syncs. The
// clients are all in the process of the benchmark, on one connection where the service's own library shares one; each has a
// session of its own where the service knows sessions. [Bench] measures, with names below that of the service:
//
//	free/clients=64       each client takes and frees a lock that nobody else wants: pairs a second
//	free/clients=16       the same, as many as recoveries raise fences at once
//	free/clients=1        the same alone: the median of a pair
//	contended/clients=32  all want the same lock, and wait for it: hand-overs a second
//
// Whoever holds the contended lock looks whether somebody else does too: a service that gives it to two is not measured.
//
//	service.go    what a service has to offer
//	workload.go   what is done to it
//	bench.go      the workloads as benchmarks
//	server.go     this very program, started again as a server
//	fencepost.go  ours: three members, and a spectator for the clients
package locks
