// Package retention decides which backups of one database in one storage may go. It is pure: what there is and what the
// policy says are arguments, a decision with a reason for each backup is the answer, and nothing is removed here.
//
//	plan := retention.Decide(policy, retention.Input{Backups: list, Listing: err, Now: now})
//	for _, d := range plan.Decisions { fmt.Println(d.ID, d.Action, d.Reason) } // a dry run is just this
//	for _, id := range plan.Remove() { /* mark as deleting; decide again in that transaction */ }
//
// # What is kept
//
// Last, Hourly, Daily, Weekly, Monthly and Yearly each hold the newest backup of their newest n hours, days and so on
// that have one, on a wall clock of the zone (a repeated hour is two hours; weeks are ISO weeks). One backup may fill
// several places. MaxAge bounds them all, and holds everything younger when it is the only rule. Ages are counted by
// the time of a backup's content from the newest good one: when backups stop being made, nothing more grows old. A
// policy without any rule keeps everything.
//
// A backup *counts* when it is good, verified and not suspect. Places are filled twice, from those that count and from
// all good ones, so that an unverified backup neither takes the place of a verified one nor goes before it was looked
// at. A backup that is not good goes once a newer one counts.
//
// # What stops everything
//
// A listing that failed or repeats itself, a failed last run, a time in the future, a suspect backup that nobody
// accepted, a policy out of bounds: then what would go is Held, and Plan.Stops says why. More than MaxShare of all at
// once is held too until Input.Confirmed.
//
// # Invariants
//
//   - The newest MinKeep (at least one) backups that count are never removed; nor is the newest good one; nor anything
//     while none counts.
//   - Pinned, locked and used backups are never removed, and fill places like any other.
//   - Deciding again after the removals removes nothing more.
//   - Larger numbers in a policy never remove more. Zero means that a rule is absent.
//   - The present time changes nothing but the refusal of times in the future.
package retention
