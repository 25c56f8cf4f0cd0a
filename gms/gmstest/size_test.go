package gmstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// Fifty members form one view in a few seconds, and a killed one is gone from all views within a second: all follow the
// log, or sixteen do and the rest is fed.
func TestFiftyMembers(t *testing.T) {
	for _, n := range []int{50, 16} {
		t.Run(fmt.Sprint(n, " followers"), func(t *testing.T) { fiftyMembers(t, n) })
	}
}

func fiftyMembers(t *testing.T, followers int) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		begun := realNow()
		w := Cluster(t, 50, a.option(), WithConfig(func(_ string, c *gms.Config) { c.Followers = followers }))
		w.Await("followers", func() bool { return len(fed(w)) == max(0, 47-followers) })
		t.Logf("one view of 50 after %v, in %v of real time", time.Since(w.began), realSince(begun))
		if took := time.Since(w.began); took > 5*time.Second {
			t.Errorf("one view after %v", took)
		}
		victim := w.Others(w.Leader())[20]
		w.Kill(victim)
		gone := w.AwaitGone(victim)
		done := awaitRecovered(w)
		leader := w.Leader()
		w.Kill(leader)
		headless := w.AwaitGone(leader)
		awaitRecovered(w)
		t.Logf("a member was gone from all views after %v, recovered after %v more; the leader after %v; in %v of real time", gone, done, headless, realSince(begun))
		if gone > time.Second || headless > time.Second {
			t.Errorf("gone after %v and %v", gone, headless)
		}
		once(w, a, victim, leader)
	})
}
