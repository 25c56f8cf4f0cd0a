// Package home keeps the local environment of one or more processes: what they share on one machine and may lose. After any
// crash the environment is marked failed, proved empty, cleaned and made anew, in that order and by one process, before
// anybody is let in again.
//
// A process that works inside takes a [Seat]. The process that may end a generation of the environment and begin the next
// is its [Keeper], the holder of the warden lock. What there is on disk:
//
//	Dir/warden.lock   Dir/seal   Dir/seats/0000 …   Dir/page-<generation>   Dir/volatile/<generation>   Dir/evidence
//
// # The life of a generation
//
//	             Take                  Drain                    Clean, Sweep            Seal
//	nothing ───────────▶ kept ─────────────────▶ drained ─────────────────▶ clean ─────────────▶ open
//	                      ▲  the seal is closed,   every seat's lock is held,                     │ Join, Leave
//	                      │  attempts is counted   nobody can enter                               │
//	                      │                                                                       │
//	                      └── failed ◀── Fail, Failchk: first cause wins, everybody inside sees it┘
//	                           │                                                                  │
//	                           └──────────▶ Drain …                       Retire (in order) ──────┘
//
// # Three ways to use it
//
// One process: [Open] takes, recovers, seals and joins; [Single.Close] leaves and retires.
//
//	env, err := home.Open(ctx, home.Config{Dir: dir, Clean: []home.Step{home.Recreate(db, create)}}, home.JoinOptions{})
//
// A family of processes under a watcher: the watcher is the keeper ([Take], [Keeper.Recover]), starts the processes, each of
// which calls [Join], and only waits. When one ends it calls [Keeper.Failchk]; ErrRunRecovery means kill all, Recover, start
// them again. Package warden is such a watcher.
//
// Unrelated processes: whoever wants to work calls [Join] with Wait and leaves when done; a watcher calls Failchk now and
// then, and Recover when it must.
//
// # Duties of who is inside, in order
//
//  1. Join; then open what is shared.
//  2. Check before each act, select on Failed in each wait, or work under Context.
//  3. When the error is ErrRunRecovery, throw away everything that was open, and Close.
//  4. In order: close what is shared, then Close the seat. A process that changes nothing joins ReadOnly.
//  5. Never hand the seat's descriptor to a child: descriptors are closed on exec unless somebody does that on purpose.
//
// # What is promised
//
//   - At most one keeper, and a second one changes no byte. At most one generation is open, and its number only grows.
//   - A generation is sealed only after nobody was inside (each seat's lock was held at the same time) and each Clean step has
//     ended well. A seal from before the machine was started counts for nothing.
//   - The first cause of a failure is what everybody gets, whole; it is kept once, with the records of those inside.
//   - A number that another process got is never killed, and unknown counts as alive.
//   - A lock file is never unlinked. One that was replaced fails the generation, and a drain then proves, or refuses to say,
//     that nobody has the old one open.
//   - Sweep touches only Dir/volatile and Dir/page-*: nothing durable is ever below them.
//   - Recovery that never ends stops after MaxAttempts with ErrNeedsOperator, also over restarts of the keeper.
//   - Network file systems are refused (by kind, on Linux).
//
// # What is not
//
//   - That a process which is stopped, or does not look, does nothing more: it is inside, so that nothing is sealed until it
//     is gone. Reaching outside the environment is for tokens to exclude.
//   - On systems other than Linux there are flock or LockFileEx, no process identities and no mapped page: a failure is seen
//     within 50 ms instead of at once, the seal counts only while its keeper lives, network file systems, replaced lock files
//     after their holder's death and inherited locks are not recognized, and a drain waits and never kills.
package home
