package gmstest

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// Fifty members form one view in a few seconds, and a killed one is gone from all views within a second.
func TestFiftyMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		begun := realNow()
		w := Cluster(t, 50, a.option(), WithConfig(func(_ string, c *gms.Config) { c.Followers = 50 }))
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
