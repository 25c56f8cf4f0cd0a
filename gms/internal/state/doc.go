// Package state is the replicated state of a group as a pure machine: entries of the Raft log go in, answers and changes
// come out. It has no clock, socket, lock, goroutine or randomness, and nothing in it depends on the order of a map; so
// every replica that applies the same entries has the same state, and the same [Machine.Hash].
//
// # Use
//
//	m := state.New()                        // or state.Restore(snapshot)
//	results, changes := m.Apply(index, e)   // from the one goroutine that owns the machine
//	for _, c := range changes { ... }       // signals, wake-ups, timers
//
// The owner serialises Apply and the readers. What a reader, a change, a result or a snapshot hands out is never changed
// afterwards (every change makes a new value), so it may be kept and read anywhere; nobody may write to it.
//
// # What it promises
//
// Position is base + Raft index, and a token is a count that each grant raises; neither ever goes back (group.go).
// One entry makes at most one view, of its end, and the view's version is the entry's position (views.go).
//
// The numbers are the rules of PROTOCOL.md:
//
//   - A run is opened only by a sender that knows the node's last run (1); a command of a run that is not open changes
//     nothing, not even the table of answers (2). Closing a run moves, at one index, its view, poll locks, maintenance
//     fences, claims, appointments and fences, and appoints for all it left (18); runs.go.
//   - A recovery is appointed to the first candidate in a pure order that has not tried it, the dead run's own node
//     last (8, selector.go). One (component, node) has one recovery at work, the oldest run's (9), and is fenced from
//     the closing to the end of the last (10). Acquire, Release and failures name the appointment's index, which each
//     hand-over raises (14). Who finds the resources away is passed over in this round only (15). Release needs every
//     orphan settled. Only its holder lowers a fence (17); recovery.go, appointments.go.
//   - A claim excludes its item (20). It becomes an orphan of its closed run, is adopted or ended only under the fence,
//     and falls back whenever the fence moves (12). Orphanings are counted, over adoptions and over being freed, until
//     the work is done; from max_attempts on the claim can only be quarantined (16). An outage (15) and a drop do not count; claims.go.
//   - Poll locks are granted first come first served; giving up a wait is answered with the token when the lock was
//     granted meanwhile (21). A run holds or waits once per name; locks.go.
//   - A cache transaction judges its conditions where it takes effect; cache.go.
//   - An answer is kept until its client has seen it, and given again without any effect (21); answers.go argues why a
//     repeat that comes after it was forgotten does no harm.
//   - Maintenance fences are a kind of their own, never appointed (19); maintenance.go.
//
// What needs a clock or the network is not here: evidence (3), leases (4, 5, 6), the limits of locks and fences (13, 21)
// and the waiting of exclusion "lease" (22), for which a recovery says when its last holder ended. They arrive as
// commands, and are judged by run, token and index like all others.
//
// # Cost
//
// A claim, a lock or a put costs map accesses and what it names; closing a run costs its own work and a walk over the
// recoveries; Snapshot and Hash walk over everything.
package state
