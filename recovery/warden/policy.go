package warden

import (
	"fmt"
	"time"
)

// Policy says how patient a warden is. The zero value of a field takes its default.
type Policy struct {
	// Restarts is how many deaths within Window are followed by a restart; one more needs an operator. Default 5; negative:
	// none at all.
	Restarts int
	// Window is how long a death counts; default 10 min.
	Window time.Duration
	// MinPause and MaxPause bound the pause before a restart, which doubles with each death within Window; defaults 100 ms, 30 s.
	MinPause, MaxPause time.Duration
	// HangAfter is how long a node that has reported progress may report none before it is ended; default 2 min; negative:
	// for ever. Time in which the warden itself was not running does not count.
	HangAfter time.Duration
	// StartFor is how long a node may take until its first progress; then it is ended like one that hangs. It is long enough
	// for the slowest start: a node that waits for something outside beats meanwhile. Default 10 min; negative: for ever.
	StartFor time.Duration
	// DumpFor is how long a hung node has to write its stacks (SIGQUIT) before it is killed; default 5 s.
	DumpFor time.Duration
	// StopFor is how long a node that was asked to stop may take before it is killed; default 2 min.
	StopFor time.Duration
	// OrphanFor is how long a node goes on without a warden before it stops itself in order; default 1 min. A warden that
	// comes within that time adopts it.
	OrphanFor time.Duration
	// Tied lets the kernel kill the node when its warden dies (Linux): there are no orphans and nothing to adopt. Default:
	// an orphan is adopted, or ended after OrphanFor.
	Tied bool
}

func (p Policy) withDefaults() (Policy, error) {
	for _, f := range []struct {
		field *time.Duration
		v     time.Duration
	}{
		{&p.Window, 10 * time.Minute}, {&p.MinPause, 100 * time.Millisecond}, {&p.MaxPause, 30 * time.Second},
		{&p.HangAfter, 2 * time.Minute}, {&p.StartFor, 10 * time.Minute}, {&p.DumpFor, 5 * time.Second}, {&p.StopFor, 2 * time.Minute}, {&p.OrphanFor, time.Minute},
	} {
		if *f.field == 0 {
			*f.field = f.v
		}
	}
	if p.Restarts == 0 {
		p.Restarts = 5
	}
	if p.Window < 0 || p.MinPause < 0 || p.MaxPause < p.MinPause || p.DumpFor < 0 || p.StopFor < 0 || p.OrphanFor < 0 {
		return p, fmt.Errorf("policy: a length of time is negative, or MaxPause %v is below MinPause %v", p.MaxPause, p.MinPause)
	}
	return p, nil
}

// pause is what the n-th death within the window costs.
func (p Policy) pause(n int) time.Duration {
	d := p.MinPause
	for range n - 1 {
		if d *= 2; d >= p.MaxPause {
			return p.MaxPause
		}
	}
	return d
}

// progress decides whether a node hangs, from the number of beats seen at each look. It counts the time between looks only
// as far as looks came in time, so that a stopped or starved warden finds nobody guilty.
type progress struct {
	first, limit time.Duration // until the first beat, and between two; not positive: for ever
	every        time.Duration
	last         uint64
	looked       time.Duration
	silent       time.Duration
}

// look says whether beats have been the same for longer than the limit.
func (p *progress) look(now time.Duration, beats uint64) bool {
	gap := now - p.looked
	p.looked = now
	if beats != p.last {
		p.last, p.silent = beats, 0
		return false
	}
	limit := p.limit
	if beats == 0 {
		limit = p.first
	}
	p.silent += min(gap, 2*p.every)
	return limit > 0 && p.silent > limit
}
