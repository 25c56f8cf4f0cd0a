package schedule

import "time"

// State is what is remembered of a schedule and what is known of its items. The caller keeps it.
type State struct {
	// Seen is the last instant that was decided about: occurrences due at or before it are settled. Zero for a new
	// schedule, which begins with the present.
	Seen time.Time
	// Running and Waiting count the schedule's items that have not ended.
	Running, Waiting int
}

// Decision says what to do now.
type Decision struct {
	// Make are the occurrences to insert as items, oldest first. Insert them before Seen is stored: repeated after a
	// crash they have the same ids.
	Make []Occurrence
	// Skipped are those that will never run, each with a sentence; the newest 100 of them. More counts the others.
	Skipped []Skipped
	More    int
	// Seen is the new State.Seen; never before the old one.
	Seen time.Time
	// Wake is when to decide again at the latest, if nothing changes; zero = never.
	Wake time.Time
}

// Skipped is an occurrence that will not run.
type Skipped struct {
	Occurrence
	Why string
}

const keptSkips = 100

func (d *Decision) skip(why string, list ...Occurrence) {
	for _, o := range list {
		d.Skipped = append(d.Skipped, Skipped{o, why})
	}
	if n := len(d.Skipped) - keptSkips; n > 0 {
		d.Skipped, d.More = append([]Skipped(nil), d.Skipped[n:]...), d.More+n
	}
}

// Decide says which occurrences to make at now. Now should be a time that the nodes agree about (the ledger's or the
// leader's), not one node's wall clock.
func (s *Schedule) Decide(st State, now time.Time) Decision {
	d := Decision{Seen: st.Seen}
	if s.cfg.Disabled || st.Seen.IsZero() {
		if now.After(d.Seen) {
			d.Seen = now
		}
		if !s.cfg.Disabled {
			d.Wake = s.wake(d.Seen)
		}
		return d
	}
	old, missed, onTime := s.due(st.Seen, now)
	if s.waits(missed, onTime, now) {
		d.Wake = now.Add(time.Minute)
		return d
	}
	for _, list := range [][]Occurrence{old, missed, onTime} {
		if len(list) > 0 {
			d.Seen = list[len(list)-1].Due
		}
	}
	d.skip("it was missed too long ago", old...)
	s.choose(&d, missed, onTime, st)
	d.Wake = s.wake(d.Seen)
	return d
}

func (s *Schedule) wake(seen time.Time) time.Time {
	o, ok := s.next(seen)
	if !ok {
		return time.Time{}
	}
	return o.Start
}

// due sorts what should have started by now. At most 100,000 are looked at in one call; the others follow in the next.
func (s *Schedule) due(seen, now time.Time) (old, missed, onTime []Occurrence) {
	for range 100_000 {
		o, ok := s.next(seen)
		if !ok || o.Start.After(now) {
			break
		}
		switch late := now.Sub(o.Start); {
		case late <= s.cfg.Late:
			onTime = append(onTime, o)
		case late <= s.cfg.Within:
			missed = append(missed, o)
		default:
			old = append(old, o)
		}
		seen = o.Due
	}
	return old, missed, onTime
}

// waits tells whether missed occurrences are held until a window opens.
func (s *Schedule) waits(missed, onTime []Occurrence, now time.Time) bool {
	return s.cfg.Missed != Skip && len(missed) > 0 && len(onTime) == 0 && !s.open(now)
}

// choose fills in what is made and what is skipped, by the policies for missed and for overlap.
func (s *Schedule) choose(d *Decision, missed, onTime []Occurrence, st State) {
	chosen := onTime
	switch n := len(missed); {
	case n == 0:
	case s.cfg.Missed == All:
		chosen = append(missed[:n:n], onTime...)
	case s.cfg.Missed == Once && len(onTime) == 0:
		d.skip("a later one that was missed stands for it", missed[:n-1]...)
		chosen = missed[n-1:]
	case s.cfg.Missed == Once:
		d.skip("one that is on time stands for it", missed...)
	default:
		d.skip("it was missed", missed...)
	}
	open := st.Running + st.Waiting
	if s.cfg.Overlap == SkipOverlap {
		room := 0
		if open == 0 {
			room = min(1, len(chosen))
		}
		d.skip("another one has not ended", chosen[:len(chosen)-room]...)
		d.Make = chosen[len(chosen)-room:]
		return
	}
	room := min(max(1+s.cfg.MaxQueued-open, 0), len(chosen))
	d.Make = chosen[:room]
	d.skip("the queue is full", chosen[room:]...)
}
