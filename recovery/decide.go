package recovery

import (
	"cmp"
	"slices"
	"time"
)

// key names one recovery; its appointments follow one another, each with a larger index.
type key struct{ component, run string }

func (r Ref) key() key { return key{r.Component, r.Run} }

// phase is where this member is with one appointment.
type phase int

const (
	phaseRunning  phase = iota // the action has not returned, or its result is not reported yet
	phaseSettling              // the same, and a Release is on its way: the appointment may end by our own doing
	phaseReleased              // the fence is lowered, the action has not returned
	phaseMoved                 // the action was told to end and has not returned
	phaseResting               // the action failed; it may be delivered again
	phaseSpent                 // nothing more is to be done under this index
)

// slot is what is known about one recovery that this member has to do with.
type slot struct {
	index uint64
	phase phase
}

// plan is what to do now.
type plan struct {
	start  []Appointed // deliver; a slot of that recovery is to be forgotten first when it has another index
	move   []key       // end the action: the appointment is not ours any more
	forget []key       // nothing runs and nothing is to be done
	wake   time.Time   // look again then; zero: not before something changes
}

// decide compares what the log wants of this member (list) with what it is doing (slots). notBefore holds recoveries
// back that failed lately. There is at most one action per recovery: when an appointment comes back while the action
// of an earlier one has not returned, the new one waits for it.
func decide(now time.Time, list []Appointed, slots map[key]slot, notBefore map[key]time.Time) plan {
	var p plan
	listed := make(map[key]bool, len(list))
	for _, a := range list {
		k := a.key()
		listed[k] = true
		s, known := slots[k]
		switch {
		case known && !s.phase.idle():
			if s.index != a.Index && s.phase == phaseRunning {
				p.move = append(p.move, k)
			}
		case known && s.phase == phaseSpent && s.index == a.Index:
		case now.Before(notBefore[k]):
			if known && s.index != a.Index {
				p.forget = append(p.forget, k)
			}
			p.wakeAt(notBefore[k])
		default:
			p.start = append(p.start, a)
		}
	}
	for k, s := range slots {
		switch {
		case listed[k]:
		case s.phase.idle():
			p.forget = append(p.forget, k)
		case s.phase == phaseRunning:
			p.move = append(p.move, k)
		}
	}
	p.sort()
	return p
}

// idle: no action and no report is under way.
func (p phase) idle() bool { return p == phaseResting || p == phaseSpent }

func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}

// sort makes the plan independent of the order of maps; older appointments start first.
func (p *plan) sort() {
	byKey := func(a, b key) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.run, b.run))
	}
	slices.SortFunc(p.move, byKey)
	slices.SortFunc(p.forget, byKey)
	slices.SortStableFunc(p.start, func(a, b Appointed) int { return cmp.Compare(a.Index, b.Index) })
}
