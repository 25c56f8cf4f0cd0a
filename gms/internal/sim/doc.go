// Package sim plays whole histories of a group in one goroutine, from a seed: the real replicated state (package state) on
// every node and the real evidence machine (package detect) of every leader, on a simulated network, clock, Raft, ledger,
// storage and restore target, with faults. The same plan always gives the same history, so that what goes wrong once can be
// looked at again; histories that go wrong are shrunk to the faults that they need.
//
//	plan := sim.Draw(seed)                  // nodes, faults, when they happen
//	report, err := sim.Play(plan)           // err: the first invariant that was broken, and when
//	smaller := sim.Shrink(plan)             // fewer faults, still broken
//
// # What is simulated, and what is not
//
// A node is a process on a host. It may be killed (its warden tells, its kernel refuses), lose its host (nobody tells),
// be paused with everything that it has under way and go on later, be cut off in one direction or both. Messages take
// random times, overtake each other, and are lost on a bad network. Clocks run at slightly different rates. Raft is a
// plain implementation of the paper (raft.go): what is tested here is what is built on a log, under everything that a log
// may do to it: late and repeated commands, leaders that do not know that they are none, outcomes that nobody knows. The
// shell around the machines (renewals, fences, recoverers, workers) is written anew after PROTOCOL.md, in callbacks; the
// product's own shell is tested in package gmstest and by real processes.
//
// # What is checked
//
// The twenty invariants of PROTOCOL.md, each named in check.go: those of the log at every index that is applied first
// anywhere, those of ledger, storage and target at every write, leases at every closing, hashes of all replicas at equal
// indexes, and at the end, when the faults are over, that everything ends.
//
// # Mutants
//
// A check that cannot fail proves nothing. [Mutant] takes one rule out of the simulated world; the tests demand that a
// broken invariant is found for each.
package sim
