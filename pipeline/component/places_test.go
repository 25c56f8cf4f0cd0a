package component

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Procedure One on a timer: an item that takes long keeps none of the other places waiting.
func TestEachPlaceHasItsTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(20)...)
		release := make(chan struct{})
		cfg, c := w.boot("n1").config("c", func(_ context.Context, j Job) (Report, error) {
			if j.Item.ID == "i000" {
				<-release
			}
			return Report{}, nil
		})
		c.beside = true
		cfg.Procedure, cfg.SimultaneousProcesses, cfg.Peek = One, 2, true
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Wake()
		time.Sleep(time.Second)
		if got := r.Totals().Done; got != 19 {
			t.Errorf("%d done beside one that hangs, want 19", got)
		}
		close(release)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Drain lets what runs end by itself and begins nothing more; Stop then ends the rest.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(3)...)
		cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
			select {
			case <-time.After(time.Minute):
				return Report{}, nil
			case <-ctx.Done():
				return Report{}, ctx.Err()
			}
		})
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Wake()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Drain(short); !errors.Is(err, ErrNotStopped) {
			t.Errorf("drain in a second: %v", err)
		}
		if err := r.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tick := r.RunOnce(t.Context()); !errors.Is(tick.Err, ErrStopped) {
			t.Errorf("a tick after drain: %+v", tick)
		}
		if got := r.Totals(); got.Done != 1 || got.Unpreserved != 0 {
			t.Errorf("totals: %+v, want one done and none cut off", got)
		}
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims left: %v", held)
		}
	})
}

// Whoever pauses, and then sees that no place is taken, knows that none will be: a tick that had begun before looks again
// once it has its place.
func TestNoPlaceIsTakenAfterAPause(t *testing.T) {
	w := newWorld()
	w.add(numbered(1)...)
	cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
		t.Error("worked on after the pause")
		return Report{}, nil
	})
	looks := 0
	cfg.Paused = func() bool { looks++; return looks > 1 } // paused between the tick's begin and its place
	r := mustRunner(t, cfg)
	if tick := r.RunOnce(t.Context()); !errors.Is(tick.Err, ErrPaused) || tick.Claimed != 0 || looks != 2 {
		t.Errorf("%d looks, tick %+v", looks, tick)
	}
	if n := r.Taken(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What was adopted is worked on without a fence, a pause or a poll, one at a time for each place; and when its wait is
// given up, without a place.
func TestResumeWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(3)...)
		p := w.boot("n1")
		cfg, c := p.config("c", func(context.Context, Job) (Report, error) {
			time.Sleep(time.Minute)
			return Report{}, nil
		})
		cfg.Paused = func() bool { return true }
		r := mustRunner(t, cfg)
		waits := make([]context.CancelFunc, 3)
		for i := range 3 {
			id := fmt.Sprintf("i%03d", i)
			claim, err := c.TryClaim(t.Context(), "c", id, 0)
			if err != nil {
				t.Fatal(err)
			}
			var ctx context.Context
			ctx, waits[i] = context.WithCancel(t.Context())
			defer waits[i]()
			if err := r.Resume(ctx, claim, w.item("c", id)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if c.working != 1 {
			t.Errorf("%d at work, there is one place", c.working)
		}
		waits[2]()
		synctest.Wait()
		if c.working != 2 {
			t.Errorf("%d at work after the last gave up its wait", c.working)
		}
		if tick := r.RunOnce(t.Context()); !errors.Is(tick.Err, ErrPaused) || tick.Code() != ExitBusy {
			t.Errorf("a tick while paused: %+v", tick)
		}
		time.Sleep(3 * time.Minute)
		for i := range 3 {
			eventually(t, w, fmt.Sprintf("i%03d", i), "c", "ok")
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Resume(t.Context(), Claim{}, Item{}); !errors.Is(err, ErrStopped) {
			t.Errorf("resume after stop: %v", err)
		}
	})
}

// Work that leaves something to recovery keeps its claim, and nothing is stored.
func TestKeptForRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
			return Report{}, fmt.Errorf("half done: %w", ErrKeep)
		})
		r := mustRunner(t, cfg)
		tick := r.RunOnce(t.Context())
		if tick.Kept != 1 || tick.Code() != ExitCannotRun {
			t.Errorf("tick: %+v", tick)
		}
		if len(w.claimed()) != 1 {
			t.Errorf("claims: %v, want it held", w.claimed())
		}
		eventually(t, w, "i000", "c")
	})
}

// With Peek a tick that finds nothing takes no poll lock; and the timer ticks when the first item's time comes.
func TestPeekAndNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg, c := w.boot("n1").config("c", nothing)
		cfg.Peek, cfg.Every, cfg.Random = true, time.Hour, func() float64 { return 0 }
		var polls atomic.Int32
		cfg.Locks = countLocks{c, &polls}
		cfg.Index = allItems{w}
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			r.Wake()
			synctest.Wait()
		}
		if polls.Load() != 0 {
			t.Errorf("%d polls with nothing to do", polls.Load())
		}
		it := numbered(1)[0]
		it.Record.NotBefore = time.Now().Add(7 * time.Minute)
		w.add(it)
		r.Wake()
		synctest.Wait()
		if got := r.Totals().Done; got != 0 || polls.Load() != 0 {
			t.Errorf("%d done before its time, %d polls", got, polls.Load())
		}
		time.Sleep(7*time.Minute + time.Second)
		if got := r.Totals().Done; got != 1 || polls.Load() != 1 {
			t.Errorf("%d done, %d polls: want one each", got, polls.Load())
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

type countLocks struct {
	Locks
	polls *atomic.Int32
}

func (c countLocks) LockPoll(ctx context.Context, component string) (Unlock, error) {
	c.polls.Add(1)
	return c.Locks.LockPoll(ctx, component)
}

// allItems answers what is not ready too.
type allItems struct{ w *world }

func (a allItems) Query(_ context.Context, q Query) (out []Item, _ error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	for _, f := range a.w.items {
		it := f.seen(q.Component, time.Now())
		if ok, _ := MatchAny(q.Triggers, it); ok {
			out = append(out, it)
		}
	}
	return out, nil
}
