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
//	STANDS ───────── the run is not held, or was closed ──────────────────────── lease lost (4)
//	  │ paused, or the node's last run is being recovered ────────────────────── busy (3)
//	RUN LOCK ─────── all places of the node are taken ────────────────────────── busy (3)
//	  │
//	POLL LOCK ────── not within PollWait ─────────────────────────────────────── busy (3)
//	  │ query, order ── the index does not answer ────────────────────────────── could not run (2)
//	  │ try ─┬─ another holds the item: the next one
//	  │      └─ no item is left: nothing to do
//	ONE CLAIM
//	  │ poll lock back
//	WORKS ────────── as below
//	  │ run lock back
//	TELLS ────────── done (0), failed (1), could not run (2), lease lost (4), not proven stopped (5)
//
// It claims the first free item. Call it three times for three: SimultaneousProcesses ticks go on at once on a node, each
// under a run lock of its own.
//
// # Procedure 2 (Many)
//
//	STANDS, RUN LOCK, POLL LOCK ── as above, with one run lock for the node
//	  │ query, order
//	  │ try, as many at once as there is room for ─┬─ another holds the item: the next one
//	  │      ├─ claimed: a child is made; while there are fewer than SimultaneousProcesses, the next one
//	  │      └─ no item is left, no room, or PollHold is over
//	CHILDREN
//	  │ poll lock back
//	ALL WORK ─┬─ child: works as below, and releases its item at its own end
//	          ├─ child
//	          └─ child
//	  │ the last one has ended
//	  │ run lock back
//	TELLS ────────── one report of all
//
// Its run lock keeps a second tick from starting on the node before the last child has ended. In both procedures the poll
// lock is short: nothing is worked on under it, claims are only tried, never waited for, and no more are made than can start
// now.
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
// ledger. Package cmd/components has all of them for a host app on a gms.Group.
package component
