package component

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An operator has a claim given back: its work is ended first, and nobody else works on the item before that is proven.
func TestYieldNeverMakesTwoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		now, most := 0, 0
		release := make(chan struct{})
		deaf := func(ctx context.Context, j Job) (Report, error) {
			w.set(func() { now++; most = max(most, now) })
			defer w.set(func() { now-- })
			if j.Attempt > 1 {
				return Report{}, nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrYielded) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			<-release
			return Report{}, ctx.Err()
		}
		cfg, _ := w.boot("n1").config("c", deaf)
		r := mustRunner(t, cfg)
		done := make(chan Tick, 1)
		go func() { done <- r.RunOnce(t.Context()) }()
		synctest.Wait()
		other, _ := w.boot("n2").config("c", deaf)
		o := mustRunner(t, other)
		if !r.Yield(w.claims["c/i000"].Token) {
			t.Fatal("the work under the claim is not known")
		}
		if tick := <-done; tick.NotStopped != 1 || tick.Code() != ExitNotStopped {
			t.Errorf("who is deaf: %+v", tick)
		}
		if tick := o.RunOnce(t.Context()); tick.Busy != 1 {
			t.Errorf("another, while it is not proven to have ended: %+v", tick)
		}
		close(release)
		synctest.Wait()
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims after the proven end: %v", held)
		}
		if tick := o.RunOnce(t.Context()); tick.Done != 1 {
			t.Errorf("another, after it: %+v", tick)
		}
		if most != 1 {
			t.Errorf("%d workers at once", most)
		}
		eventually(t, w, "i000", "c", "ok")
		if rec := w.item("c", "i000").Record; rec.Failures != 0 {
			t.Errorf("what was given back counts as a failure: %+v", rec)
		}
	})
}

// A claim that nothing works under yet can be ended by whoever asks: nothing begins under it afterwards.
func TestYieldBeforeTheWorkBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, c := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
			t.Error("worked on under a claim that is somebody else's to end")
			return Report{}, nil
		})
		claim, err := c.TryClaim(t.Context(), "c", "i000", 1)
		if err != nil {
			t.Fatal(err)
		}
		r := mustRunner(t, cfg)
		if r.Yield(claim.Token) {
			t.Fatal("work under a claim that was never begun")
		}
		if err := r.Resume(t.Context(), claim, w.item("c", "i000")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims left: %v", held)
		}
		if got := r.Totals(); got.Unpreserved != 1 || len(r.barred) != 0 || len(r.holds) != 0 {
			t.Errorf("totals: %+v, barred %v", got, r.barred)
		}
	})
}
