package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func nothing(context.Context, Job) (Report, error) { return Report{}, nil }

func TestStartStopLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWorld().boot("n1")
		cfg, _ := p.config("c", nothing)
		r := mustRunner(t, cfg)
		for range 2 { // Stop comes first, and twice
			if err := r.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := r.Start(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("start after stop: %v", err)
		}
		if tick := r.RunOnce(t.Context()); !errors.Is(tick.Err, ErrStopped) {
			t.Errorf("tick after stop: %v", tick.Err)
		}
		r = mustRunner(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		if err := r.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel() // carries values only
		if err := r.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		p.w.add(numbered(1)...)
		time.Sleep(2 * time.Minute)
		if got := r.Totals().Done; got != 1 {
			t.Errorf("%d done", got)
		}
		for range 2 {
			if err := r.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var starts []time.Duration
		began := time.Now()
		cfg, c := w.boot("n1").config("c", nothing)
		cfg.Trigger = Trigger{} // wants them again and again: never eager
		w.add(numbered(5)...)
		cfg.Worker = c.watched(func(context.Context, Job) (Report, error) {
			starts = append(starts, time.Since(began))
			return Report{}, nil
		})
		random := 0.5
		cfg.Random = func() float64 { random = 1.25 - random; return random } // .75 .5 .75 …
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Minute + 30*time.Second)
		r.Wake()
		synctest.Wait()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := "[45s 1m45s 2m48s 3m30s]"; fmt.Sprint(starts) != want {
			t.Errorf("ticks at %v, want %s", starts, want)
		}
	})
}

func TestEagerWhileThereIsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(100)...)
		cfg, _ := w.boot("n1").config("c", nothing)
		cfg.SimultaneousProcesses, cfg.Random = 3, func() float64 { return 0 }
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := r.Totals().Done; got != 100 {
			t.Errorf("%d done in a second", got)
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestProcedures: One takes one item per tick, as many at once as places; Many as many as places, one tick at once.
func TestProcedures(t *testing.T) {
	for _, procedure := range []Procedure{One, Many} {
		t.Run(fmt.Sprint(procedure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.add(numbered(10)...)
				var now, most atomic.Int64
				cfg, c := w.boot("n1").config("c", nil)
				cfg.Worker = Func(func(context.Context, Job) (Report, error) {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					time.Sleep(time.Minute)
					return Report{}, nil
				})
				cfg.Procedure, cfg.SimultaneousProcesses = procedure, 3
				r := mustRunner(t, cfg)
				ticks := make(chan Tick, 5)
				for range 5 {
					go func() { ticks <- r.RunOnce(t.Context()) }()
				}
				synctest.Wait()
				if held := len(w.claimed()); held != 3 {
					t.Errorf("%d claims while 3 can work", held)
				}
				busy, done := 0, 0
				for range 5 {
					tick := <-ticks
					done += tick.Done
					if tick.Code() == ExitBusy {
						busy++
					}
				}
				wantBusy := map[Procedure]int{One: 2, Many: 4}[procedure]
				if done != 3 || busy != wantBusy || most.Load() != 3 {
					t.Errorf("%d done, %d ticks busy, %d at once; want 3, %d, 3", done, busy, most.Load(), wantBusy)
				}
				_ = c
			})
		})
	}
}

// TestEachItemAtItsOwnEnd: a child that is done early gives its item back while others work.
func TestEachItemAtItsOwnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(2)...)
		cfg, _ := w.boot("n1").config("c", func(_ context.Context, j Job) (Report, error) {
			if j.Item.ID == "i001" {
				time.Sleep(time.Minute)
			}
			return Report{}, nil
		})
		cfg.SimultaneousProcesses = 2
		done := make(chan Tick)
		go func() { done <- mustRunner(t, cfg).RunOnce(t.Context()) }()
		synctest.Wait()
		if got := fmt.Sprint(w.claimed()); got != "[c/i001]" {
			t.Errorf("claims: %s", got)
		}
		if tick := <-done; tick.Done != 2 || tick.PollHeld > time.Second {
			t.Errorf("tick: %+v", tick)
		}
	})
}

// journal notes the order of calls.
type journal struct {
	*client
	calls []string
}

func (j *journal) AwaitUnfenced(ctx context.Context, component string) error {
	j.calls = append(j.calls, "fence")
	return nil
}

func (j *journal) LockRun(ctx context.Context, component string, seat int) (Unlock, error) {
	j.calls = append(j.calls, "run lock")
	unlock, err := j.client.LockRun(ctx, component, seat)
	return func(ctx context.Context) error { j.calls = append(j.calls, "run unlock"); return unlock(ctx) }, err
}

func (j *journal) LockPoll(ctx context.Context, component string) (Unlock, error) {
	j.calls = append(j.calls, "poll lock")
	unlock, err := j.client.LockPoll(ctx, component)
	return func(ctx context.Context) error { j.calls = append(j.calls, "poll unlock"); return unlock(ctx) }, err
}

func (j *journal) Query(ctx context.Context, q Query) ([]Item, error) {
	j.calls = append(j.calls, "query")
	return j.client.Query(ctx, q)
}

func (j *journal) TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error) {
	j.calls = append(j.calls, "claim "+item)
	return j.client.TryClaim(ctx, component, item, roundTrip)
}

func (j *journal) EndClaim(ctx context.Context, c Claim, done bool) error {
	j.calls = append(j.calls, "release")
	return j.client.EndClaim(ctx, c, done)
}

func (j *journal) Begin(ctx context.Context, c Claim, at time.Time) (Item, error) {
	j.calls = append(j.calls, "re-validate")
	return j.client.Begin(ctx, c, at)
}

func (j *journal) Finish(ctx context.Context, c Claim, r Result) error {
	j.calls = append(j.calls, "store")
	return j.client.Finish(ctx, c, r)
}

func TestOrderOfATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(2)...)
		cfg, c := w.boot("n1").config("c", nothing)
		if _, err := c.TryClaim(t.Context(), "c", "i000", 1); err != nil {
			t.Fatal(err)
		}
		j := &journal{client: c}
		cfg.Locks, cfg.Claims, cfg.Gate, cfg.Index, cfg.Store = j, j, j, j, j
		cfg.Worker = Func(func(context.Context, Job) (Report, error) { j.calls = append(j.calls, "work"); return Report{}, nil })
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Done != 1 {
			t.Errorf("tick: %+v", tick)
		}
		want := "fence, run lock, poll lock, query, claim i000, claim i001, poll unlock, re-validate, work, store, release, run unlock"
		if got := strings.Join(j.calls, ", "); got != want {
			t.Errorf("calls: %s\nwant: %s", got, want)
		}
	})
}

// slowClaims answers no claim at all.
type slowClaims struct{ *client }

func (s slowClaims) TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error) {
	<-ctx.Done()
	return Claim{}, ctx.Err()
}

// oneSilent does not answer the first claim.
type oneSilent struct {
	*client
	asked int
}

func (o *oneSilent) TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error) {
	if o.asked++; o.asked == 1 {
		<-ctx.Done()
		return Claim{}, ctx.Err()
	}
	return o.client.TryClaim(ctx, component, item, roundTrip)
}

func TestOneClaimWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(2)...)
		cfg, c := w.boot("n1").config("c", nothing)
		cfg.Claims = &oneSilent{client: c}
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Unknown != 1 || tick.Done != 1 || tick.Code() != ExitDone {
			t.Errorf("tick: %+v", tick)
		}
	})
}

func TestClaimsWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(50)...)
		cfg, c := w.boot("n1").config("c", nothing)
		cfg.Claims = slowClaims{c}
		began := time.Now()
		tick := mustRunner(t, cfg).RunOnce(t.Context())
		if d := time.Since(began); tick.Unknown != 3 || d != 6*time.Second || tick.PollHeld != d || tick.Code() != ExitCannotRun {
			t.Errorf("after %s: %+v", d, tick)
		}
	})
}

func TestBadConfigs(t *testing.T) {
	ok, _ := newWorld().boot("n1").config("c", nothing)
	for part, change := range map[string]func(*Config){
		"name":         func(c *Config) { c.Component = "a/b" },
		"node":         func(c *Config) { c.Node = "" },
		"Worker":       func(c *Config) { c.Worker = nil },
		"Store":        func(c *Config) { c.Store = nil },
		"procedure":    func(c *Config) { c.Procedure = 3 },
		"Simultaneous": func(c *Config) { c.SimultaneousProcesses = 257 },
		"durations":    func(c *Config) { c.Grace = -1 },
		"QueryLimit":   func(c *Config) { c.QueryLimit = -1 },
		"jitter is":    func(c *Config) { c.Jitter = 1 },
	} {
		cfg := ok
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}

func TestSkipsAreBounded(t *testing.T) {
	s, now := make(skips), t0
	for i := range maxSkips + 5 {
		s.add(Item{ID: fmt.Sprint(i)}, Fairness{}, now)
	}
	if len(s) > maxSkips {
		t.Errorf("%d skips", len(s))
	}
	it := Item{ID: "x"}
	s.add(it, Fairness{}, now)
	if !s.has(it, now) || s.has(it, now.Add(time.Minute)) {
		t.Error("a skip lasts a minute")
	}
	s.add(it, Fairness{}, now)
	if !s.has(it, now.Add(time.Minute)) {
		t.Error("the second skip is longer")
	}
	s.drop(it)
	if s.has(it, now) {
		t.Error("a dropped skip is one")
	}
}
