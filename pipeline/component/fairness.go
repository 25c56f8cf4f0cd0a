package component

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Fairness says how items that fail wait. Zero values mean the defaults named here.
type Fairness struct {
	BackOff         time.Duration // after the first failure; doubles with each; default 1 min
	MaxBackOff      time.Duration // default 6 h
	QuarantineAfter int           // failures in a row; default 5, negative = never
}

func (f Fairness) complete() Fairness {
	f.BackOff = cmp.Or(f.BackOff, time.Minute)
	f.MaxBackOff = max(cmp.Or(f.MaxBackOff, 6*time.Hour), f.BackOff)
	f.QuarantineAfter = cmp.Or(f.QuarantineAfter, 5)
	return f
}

// Wait is how long an item waits after so many failures in a row; never shorter for more of them.
func (f Fairness) Wait(failures int) time.Duration {
	f = f.complete()
	wait := f.BackOff
	for range failures - 1 {
		if wait >= f.MaxBackOff/2 {
			return f.MaxBackOff
		}
		wait *= 2
	}
	return min(wait, f.MaxBackOff)
}

// AfterFailure is the record of an item whose work failed at the given time.
func (f Fairness) AfterFailure(r Record, at time.Time) Record {
	f = f.complete()
	r.Failures++
	r.NotBefore = at.Add(f.Wait(r.Failures))
	r.Quarantined = r.Quarantined || f.QuarantineAfter > 0 && r.Failures >= f.QuarantineAfter
	return r
}

// AfterSuccess is the record of an item whose work succeeded.
func AfterSuccess(r Record) Record {
	return Record{Created: r.Created, LastAttempt: r.LastAttempt}
}

// Released is the record of a quarantined item that an operator gives another chance, at once and with all attempts.
func Released(r Record) Record {
	return Record{Created: r.Created, LastAttempt: r.LastAttempt, Attempts: r.Attempts}
}

// Ready tells whether a record lets an item be tried at the given time.
func (r Record) Ready(at time.Time) bool { return !r.Quarantined && !r.NotBefore.After(at) }

// since is from when on an item waits for its turn: an attempt, and a failure's back-off, send it to the end of the queue
// as it is then, and not behind all that will ever come.
func (r Record) since() time.Time {
	out := r.NotBefore
	for _, t := range []time.Time{r.LastAttempt, r.Created} {
		if t.After(out) {
			out = t
		}
	}
	return out
}

// Order leaves out what is not ready and sorts the rest: by not-before (or the last attempt, or the creation, when that
// is later), then last attempt, created, id. So an item that was tried goes behind those that were waiting then, and
// none is overtaken for ever.
func Order(items []Item, at time.Time) []Item {
	out := slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return !it.Record.Ready(at) })
	slices.SortFunc(out, func(a, b Item) int {
		return cmp.Or(
			a.Record.since().Compare(b.Record.since()),
			a.Record.LastAttempt.Compare(b.Record.LastAttempt),
			a.Record.Created.Compare(b.Record.Created),
			strings.Compare(a.Type, b.Type),
			strings.Compare(a.ID, b.ID),
			cmp.Compare(a.RoundTrip, b.RoundTrip),
		)
	})
	return out
}
