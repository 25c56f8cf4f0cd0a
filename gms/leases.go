package gms

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
)

// maxLease bounds TTL and FenceTTL.
const maxLease = state.MaxLease * time.Millisecond

// leases are how long a run goes on after a leader was last heard of, and a fence after it was renewed. Each run says at its
// opening what it reckons with, and everybody reckons with that of it: nodes of one group may be set differently, as while a
// setting is rolled out, and then a leader's own would close a run that renews in time, or a recoverer's own end its wait
// before the dead run's lease has. These here are for runs that did not say.
type leases struct{ ttl, fence time.Duration }

func (g *Group) leases() leases { return leases{ttl: g.cfg.Timing.TTL, fence: g.cfg.FenceTTL} }

// of are the leases of a run.
func (l leases) of(r state.Run) leases {
	if ms := r.Open.GetTtlMs(); ms > 0 {
		l.ttl = time.Duration(ms) * time.Millisecond
	}
	if ms := r.Open.GetFenceTtlMs(); ms > 0 {
		l.fence = time.Duration(ms) * time.Millisecond
	}
	return l
}

// longest is how long the run may hold anything.
func (l leases) longest() time.Duration { return max(l.ttl, l.fence) }

// longestOf is how long any run that is known may hold anything.
func (l leases) longestOf(m *state.Machine) time.Duration {
	most := l.longest()
	for _, r := range m.Runs() {
		most = max(most, l.of(r).longest())
	}
	return most
}

// millis rounds up, so that nobody reckons with less than this node does.
func millis(d time.Duration) uint32 { return uint32((d + time.Millisecond - 1) / time.Millisecond) }
