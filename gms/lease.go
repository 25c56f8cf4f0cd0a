package gms

import "time"

// Standing says what a run may do.
type Standing int

// Standings of a run. Held: all. Suspect: start nothing new, the lease is about to run out. Expired: nothing that
// excludes by lease may go on; guarded writes wait. Closed: the run is over for ever.
const (
	Expired Standing = iota
	Suspect
	Held
	Closed
)

// String names the standing for logs and pages.
func (s Standing) String() string {
	switch s {
	case Held:
		return "held"
	case Suspect:
		return "suspect"
	case Closed:
		return "closed"
	}
	return "expired"
}

// lease is the holder's side of a lease: pure, time is an argument. A renewal counts from before it was sent, less a
// margin, so that the holder always stops before the leader may act.
type lease struct {
	ttl      time.Duration
	margin   time.Duration
	deadline time.Duration // 0: never held
	closed   bool
}

// leaseMargin covers the difference of two clocks' rates over a TTL and the scheduling of the holder.
func leaseMargin(ttl time.Duration) time.Duration { return ttl / 10 }

func newLease(ttl time.Duration) *lease { return &lease{ttl: ttl, margin: leaseMargin(ttl)} }

// renewed takes the acknowledgement of a renewal that was sent at sent. Older ones never shorten it.
func (l *lease) renewed(sent time.Duration) {
	if mutant == "lease" {
		sent += time.Hour
	}
	l.deadline = max(l.deadline, sent+l.ttl-l.margin)
}

func (l *lease) standing(now time.Duration) Standing {
	switch {
	case l.closed:
		return Closed
	case l.deadline == 0 || now >= l.deadline:
		return Expired
	case now >= l.deadline-l.ttl/3:
		return Suspect
	}
	return Held
}

// next is the time of the next change of standing if no renewal is acknowledged; 0 when none is due.
func (l *lease) next(now time.Duration) time.Duration {
	switch l.standing(now) {
	case Held:
		return l.deadline - l.ttl/3
	case Suspect:
		return l.deadline
	}
	return 0
}
