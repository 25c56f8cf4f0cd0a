// Package schedule decides when recurring work is due. It is pure: the time, and what became of earlier occurrences,
// are arguments; what to make is the answer. It knows no clock, no ledger and no work.
//
//	s, err := schedule.New(schedule.Config{
//		Name: "nightly", Cron: "30 2 * * *", Zone: "Europe/Berlin",
//		Missed: schedule.Once, Within: 12 * time.Hour, Spread: 20 * time.Minute,
//	})
//	d := s.Decide(schedule.State{Seen: seen, Running: 1}, now)
//	for _, o := range d.Make { /* insert one item under o.ID; "exists" is success */ }
//	// store d.Seen, look again at d.Wake
//
// # What a line means
//
// Five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly, @yearly, or
// @every DURATION (multiples of it since 1970 UTC, so that all nodes agree). Days: when both day fields are restricted
// (contain no "*") either may match, else both must. The zone belongs to the schedule, never to the line.
//
// # When the clocks change
//
//   - A line with fixed hours ("30 2 * * *", "0 9-17 * * *") follows the wall. A local time that is skipped runs once, at
//     the instant right after the gap, however many of its times fell into the gap; one that comes twice runs the first
//     time only.
//   - A line with any hour ("*/15 * * * *", "0 */2 * * *", "@hourly", "@every 90m") follows real time: it runs whenever
//     the wall shows a matching time, twice in a repeated hour, and makes nothing up for a gap.
//
// # Missed, overlapping, spread, windows
//
// An occurrence is on time until Late after its start; later it was missed, and Missed says what happens: Skip it, run
// Once for all that were missed, or All of them, in each case no further back than Within. Overlap says what happens
// while an earlier one has not ended: SkipOverlap, or Queue up to MaxQueued. Spread moves all starts of a schedule by a
// fixed share of that time, taken from its name. Windows are times of day: what is due outside makes no occurrence,
// and what was missed waits for a window, or for the next one that is on time.
//
// # Invariants
//
//   - One item per occurrence: the id is made of the schedule's name and the due instant, so two nodes that decide the
//     same thing at the same time insert the same id. Ids never depend on who asks, or when.
//   - State.Seen never goes back; an occurrence due at or before it is never made again, whatever the clock says.
//   - A clock that goes back makes nothing.
//
// Only the parser of the cron library is used; its own next-time function is wrong when clocks change.
package schedule
