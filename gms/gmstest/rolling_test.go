package gmstest

import (
	"testing"
	"time"
)

// FIELD.md R19, L10: a rolling restart, in which nobody waits for anybody, costs no voter its vote and the group nothing: who
// restarts is a voter still, and nothing is removed. Twice over all five, with 200 ms between two.
func TestRollingRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 5, a.option(), voters(3))
		awaitVoters(w, 3)
		before := votersOf(w)
		for range 2 {
			for _, name := range w.Names() {
				w.Restart(name)
				Advance(200 * time.Millisecond)
			}
		}
		t.Logf("all stand again after %v", w.AwaitView(w.Names()...))
		awaitRecovered(w)
		awaitVoters(w, 3)
		for name := range before {
			if !votersOf(w)[name] {
				t.Errorf("%s votes no more", name)
			}
		}
	})
}

func votersOf(w *World) map[string]bool {
	set := map[string]bool{}
	for _, m := range w.Living()[0].Group.Members() {
		if m.Voter {
			set[m.Node] = true
		}
	}
	return set
}
