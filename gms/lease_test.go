package gms

import (
	"testing"
	"time"
)

const second = time.Second

func TestLeaseStandings(t *testing.T) {
	l := newLease(3 * second) // margin 300 ms
	if got := l.standing(second); got != Expired {
		t.Errorf("before the first acknowledgement: %v", got)
	}
	l.renewed(10 * second)
	for _, c := range []struct {
		at   time.Duration
		want Standing
	}{
		{10 * second, Held},
		{11*second + 699*time.Millisecond, Held},
		{11*second + 700*time.Millisecond, Suspect}, // a third of the TTL before the deadline
		{12*second + 699*time.Millisecond, Suspect},
		{12*second + 700*time.Millisecond, Expired}, // sent + TTL − margin: before the leader's own count has run out
		{99 * second, Expired},
	} {
		if got := l.standing(c.at); got != c.want {
			t.Errorf("at %v: %v, want %v", c.at, got, c.want)
		}
	}
}

func TestLeaseNeverShrinks(t *testing.T) {
	l := newLease(3 * second)
	l.renewed(10 * second)
	l.renewed(9 * second) // an older renewal, answered later
	if got := l.standing(12 * second); got != Suspect {
		t.Errorf("an older acknowledgement changed the deadline: %v", got)
	}
}

func TestLeaseClosedIsForEver(t *testing.T) {
	l := newLease(3 * second)
	l.renewed(10 * second)
	l.closed = true
	l.renewed(11 * second)
	if got := l.standing(11 * second); got != Closed || l.next(11*second) != 0 {
		t.Errorf("%v, next %v", got, l.next(11*second))
	}
}

func TestLeaseNextChange(t *testing.T) {
	l := newLease(3 * second)
	if n := l.next(0); n != 0 {
		t.Errorf("never held: %v", n)
	}
	l.renewed(10 * second)
	suspect, expired := l.next(10*second), l.next(12*second)
	if l.standing(suspect-1) != Held || l.standing(suspect) != Suspect || l.standing(expired-1) != Suspect || l.standing(expired) != Expired {
		t.Errorf("changes at %v and %v", suspect, expired)
	}
}

func TestStandingsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []Standing{Expired, Suspect, Held, Closed} {
		seen[s.String()] = true
	}
	if len(seen) != 4 {
		t.Errorf("names %v", seen)
	}
}
