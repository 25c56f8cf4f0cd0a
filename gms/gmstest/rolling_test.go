package gmstest

import (
	"testing"
	"time"
)

// FIELD.md R19, L10: a rolling restart, in which nobody waits for anybody, costs the group nothing: a voter that restarts is
// one still, or another that has caught up votes in its place, and there are never fewer. Twice over all five, with 200 ms
// between two.
func TestRollingRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 5, a.option(), voters(3))
		awaitVoters(w, 3)
		for range 2 {
			for _, name := range w.Names() {
				w.Restart(name)
				Advance(200 * time.Millisecond)
				voting := 0
				for _, m := range w.Living()[0].Group.Members() {
					if m.Voter {
						voting++
					}
				}
				if voting > 4 { // one more while the successor of a dead one is on its way
					t.Errorf("%d vote", voting)
				}
			}
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		awaitVoters(w, 3)
		once(w, a, w.Names()...)
	})
}
