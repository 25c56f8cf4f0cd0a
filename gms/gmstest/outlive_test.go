package gmstest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// What is parked, and what waits for somebody who has the component, is there after everybody has died: the next runs try it
// again, under larger tokens; what they cannot do is parked again until an operator has it retried, and what waits is done by
// whoever comes with the component.
func TestParkedAndWaitingOutliveEverybody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("rare", "work")
		a.only = func(node, component string) bool { return component == "work" || node == "n3" }
		var works atomic.Bool
		a.act = func(ctx context.Context, _ *Node, s signals.FailureRecoverySignal) error {
			if works.Load() {
				_, err := freeAll(ctx, s)
				return err
			}
			_, err := s.Acquire(ctx)
			return errors.Join(err, errors.New("cannot do it yet"))
		}
		w := Cluster(t, 3, a.option())
		run := w.Node("n3").Run()
		for _, c := range a.components {
			if _, err := w.Node("n3").Group.Claim(t.Context(), c, "item", 1); err != nil {
				t.Fatal(err)
			}
		}
		w.Kill("n3")
		w.AwaitGone("n3")
		open := func() map[string]gms.Recovery {
			found := map[string]gms.Recovery{}
			list, _ := w.Living()[0].Group.Recoveries()
			for _, r := range list {
				if r.Run == run {
					found[r.Component] = r
				}
			}
			return found
		}
		left := func() bool {
			r := open()
			return r["work"].State == "parked" && len(r["work"].Tried) == 2 && r["rare"].State == "waiting"
		}
		w.Await("one is parked, one waits", left)
		first := open()["work"]

		w.Kill("n1", "n2")
		Advance(time.Minute)
		w.Start("n1")
		w.Start("n2")
		w.Await("the new runs have tried it", func() bool { return left() && open()["work"].Token > first.Token })
		again := open()["work"]
		if again.Since != first.Since || len(again.Steps) <= len(first.Steps) || open()["rare"].Since != first.Since {
			t.Errorf("after the restart: %+v, before: %+v", again, first)
		}
		if n := len(w.Living()[0].Group.Claims()); n != 2 {
			t.Errorf("%d orphans are left, want 2", n)
		}
		Advance(10 * time.Minute)
		if now := open()["work"]; !left() || now.Token != again.Token {
			t.Errorf("later: %+v", open())
		}

		works.Store(true)
		if err := w.Living()[0].Group.RetryRecovery(t.Context(), "work", run); err != nil {
			t.Fatal(err)
		}
		w.Await("it is done when it is retried", func() bool { r := open(); return len(r) == 1 && r["rare"].State == "waiting" })
		w.Start("n3")
		awaitRecovered(w)
		if list := w.Living()[0].Group.Claims(); len(list) > 0 || len(open()) > 0 {
			t.Errorf("left: %+v, %+v", list, open())
		}
	})
}
