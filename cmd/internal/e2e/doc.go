// Package e2e holds tests of whole nodes: real fencepostd processes on loopback, a private PostgreSQL, storages on disk, and
// kill -9. It has no code but tests.
//
// Each test starts a cluster of its own (group of processes, homes, sockets in a short temporary directory) with newCluster
// and drives it as an operator does, through the admin socket. The server is shared. What a test does to a node:
//
//	c.kill("n2")      kill -9 of the node and of all its descendants: the machine is gone
//	c.stop("n2")      SIGSTOP: the node is paused, its children go on
//	c.resume("n2")    SIGCONT
//	c.start("n2")     start it (again) on the same home
//
// Nodes run alone (--no-warden): a killed node is a machine that is gone, and nobody starts it again behind the test's back.
// With options.watched each has its warden, as in real life, which is then the process that these functions act on.
//
// After each test the harness checks what must hold whatever happened: no child process of a node is left, no stray database
// is on the server, no storage holds anything but whole backups, tombstones and the group's own files, and no log names the
// database's password.
package e2e
