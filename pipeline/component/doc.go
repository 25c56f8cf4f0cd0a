// Package component runs autonomous components: steps that poll for items, claim some, work on them and tell what became
// of it, on any number of nodes at once, so that each item is worked on by one of them at a time and a success is
// recorded once.
//
//	r, err := component.New(component.Config{
//		Component: "export", Node: "n1",
//		Trigger:   component.Trigger{Past: []string{"backup"}, Future: []string{"export"}}, // backed up, not yet exported
//		Worker:    component.Func(export), // or component.Exec{Path: "/usr/local/bin/export"}
//		Locks: group, Claims: group, Gate: group, Index: ledger, Store: ledger,
//	})
//	err = r.Start(ctx)            // ticks each minute, with jitter, until Stop
//	tick := r.RunOnce(ctx)        // or one tick, like cron would; os.Exit(int(tick.Code()))
//
// # Procedure 1 (One)
//
//	                 ┌ paused ── busy (3)      ┌ held ── busy (3)        ┌ not within PollWait ── busy (3)
//	standing ──── fence ──────────────── run lock ──────────────── POLL LOCK
//	  └ no: lease lost (4)            (one for each place)               │
//	                                                                   query, order
//	                                                                     │
//	                                                  ┌─ held by another ── try the next item
//	                                                  └──────────────────┤
//	                                                                   ONE claim, or none free
//	                                                                     │
//	     run lock back ── tell ── release ── store ── work ── re-validate ── POLL LOCK BACK
//
// It claims the first free item; call it three times for three: SimultaneousProcesses ticks go on at once on a node, each
// under a run lock of its own.
//
// # Procedure 2 (Many)
//
//	standing ── fence ── run lock ── POLL LOCK ── query, order ─┬─ try a claim ──┬─ had: a child is made ─┬─ room: next item
//	                  (one for the node)                        └────────────────┘                        │
//	                                                                     no room, no item, or PollHold over
//	                                                                                                      │
//	                     ┌─ child: re-validate ── work ── store ── release ─┐                             │
//	  run lock back ── all have ended ─ child: …                            ├────────────── POLL LOCK BACK ┘
//	                     └─ child: …                                        ┘
//
// It claims items until there are SimultaneousProcesses children, starts all, and waits for all; its run lock keeps a second
// tick from starting on the node meanwhile. In both the poll lock is short: nothing is worked on under it, claims are only
// tried, never waited for, and no more are made than can start now.
//
// # An item
//
//	claimed → re-validated ─┬─ not wanted any more ── stale ──────────────────────────── released
//	 (first guarded write)  └─ works ─┬─ ends ── group in reach? ── event stored ─────── released
//	                                  └─ must end (time limit, Stop, run closed):
//	                                     context ends → Grace → Kill → Proof ─┬─ ended ── as above
//	                                                                          └─ not: alarm, stays claimed
//
// Each item is released at its own end. Work that is not proven to have ended keeps its claim and its place among
// SimultaneousProcesses until it is. Work past its time limit is a failure whatever it says, stored only once it is
// proven to have ended. While the group is out of reach a result waits; when the run of the claim has been closed it is
// dropped, and what became of the item is the business of recovery. A result that the store refuses for good is replaced
// by a failure that says so.
//
// An operator gets a claim back with Yield: the work ends as at Stop, and only then is the item free. Resume works on an
// item that a recovery has adopted from a dead run.
//
// # Fairness
//
// Items are tried in the order of not-before, last attempt, creation. A failure makes an item wait, twice as long each
// time, and after Fairness.QuarantineAfter in a row for an operator. What could not even be recorded is left alone by this
// node for as long.
//
// # Invariants
//
//   - Every write carries the claim's token; one whose claim has moved changes nothing (ledger.ErrFenced).
//   - The index may lag: only what the store says under the claim counts. ErrStaleItem is counted, nothing is worked twice.
//   - Order of locks: fence, run lock, poll lock, items; never the other way.
//   - An event's time is the start of the work, and is appended: two components never lose each other's.
//   - Busy (exit code 3) is not broken (2).
//
// Trigger, Report, Fairness and Order are pure; Locks, Claims and Gate are for a group to implement, Index and Store for a
// ledger.
package component
