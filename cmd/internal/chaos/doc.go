// Package chaos lets whole groups live through faults, on real processes, over a real network stack, and judges what they
// did. It has no code but tests; make chaos and make soak run it, and it writes a page that shows what happened.
//
//	make chaos SEED=7 MINUTES=10      five nodes, ten minutes of faults from a seed, one page
//	make soak HOURS=8                 the same, for longer, seed after seed
//
// # What a run is made of
//
// Hosts (hosts_linux_test.go) are network namespaces on a bridge, an address each; where they are not allowed, addresses of the
// loopback, without what needs the network. n1 to n5 carry a node with its warden, n1 to n3 a host app beside it; the
// PostgreSQL server, the S3 server and the resource that checks tokens have hosts of their own.
//
// A [plan] (plan_linux_test.go) is all that is drawn from a seed: faults, when, for how long, to whom. It prints itself, and the
// same seed draws the same one. What faults do is in nemesis_linux_test.go. The work (work_linux_test.go) is backups, restores, deletes
// and schedules, and what the host apps do (guest_linux_test.go): jobs under claims, whose writes go to the resource with their
// token (resource_linux_test.go), recoveries under fences, locks, and reads and writes of the state cache.
//
// Some faults no machine allows to inject from outside: the programs are built with the tag chaos, and then read from a file
// by how much a node's clock is off, and from another how slow its log's disk is. What nodes reach the S3 server by is a proxy
// here, which fails as it is told to.
//
// # What is judged
//
// The judges (judge_linux_test.go) are functions of records, and each has a test that shows it a broken record. What they look
// at is written down by those who did it, with the machine's one monotonic clock: views as members saw them, every
// assertion "I hold this, with this token", what clients of the cache, of locks and of fences were told, each recovery's
// steps, what the resource took, the ledger's own trail of writes, the logs of the S3 server and of Dropbox. At the end, when
// all faults are over, the group must come to rest within a bound, and nothing may be left: no claim, fence, object, process
// or file.
//
// A failure prints the command that repeats its plan. Processes are real, so the same plan is not the same history: it
// meets the same faults at other moments of the work.
//
// # Mutants
//
// Judges that cannot fail prove nothing. Some rules of the product can be taken out by a build tag, mutant_NAME;
// mutants_linux_test.go has the list, and which tests must miss each: scenes (scenes_linux_test.go) where real processes are
// needed, and package gms/internal/sim, whose simulated world has mutants of its own.
package chaos
