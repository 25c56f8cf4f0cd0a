package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStopEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(3)...)
		var causes []error
		cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
			<-ctx.Done()
			w.set(func() { causes = append(causes, context.Cause(ctx)) })
			if j.Item.ID == "i001" {
				return Report{}, nil // it was done in time after all
			}
			return Report{}, ctx.Err()
		})
		cfg.SimultaneousProcesses = 3
		r := mustRunner(t, cfg)
		done := make(chan Tick, 1)
		go func() { done <- r.RunOnce(t.Context()) }()
		synctest.Wait()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		tick := <-done
		if tick.Unpreserved != 2 || tick.Done != 1 || tick.Code() != ExitDone {
			t.Errorf("tick: %+v", tick)
		}
		for _, cause := range causes {
			if !errors.Is(cause, ErrStopping) {
				t.Errorf("cause is %v", cause)
			}
		}
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims left: %v", held)
		}
		eventually(t, w, "i000", "c") // as if it had never been
		eventually(t, w, "i001", "c", "ok")
		if f := w.item("c", "i000").Record.Failures; f != 0 {
			t.Errorf("a stop counted as %d failures", f)
		}
	})
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		release := make(chan struct{})
		cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) { <-release; return Report{}, nil })
		r := mustRunner(t, cfg)
		go r.RunOnce(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := r.Stop(ctx); !errors.Is(err, ErrNotStopped) {
			t.Errorf("stop: %v", err)
		}
		if held := w.claimed(); len(held) != 1 {
			t.Errorf("claims: %v, want the one that is not proven stopped", held)
		}
		close(release)
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if held := w.claimed(); len(held) != 0 {
			t.Errorf("claims left: %v", held)
		}
		eventually(t, w, "i000", "c", "ok") // it was a success, only late for the stop
	})
}

// deaf is work that ends by force only.
type deaf struct{ killed chan struct{} }

func (d deaf) Start(context.Context, Job) (Work, error) { return d, nil }
func (d deaf) Wait() (Report, error)                    { <-d.killed; return Report{}, errors.New("signal: killed") }
func (d deaf) Kill()                                    { close(d.killed) }

func TestCancelGraceKillProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", nil)
		cfg.Worker, cfg.Limit = deaf{make(chan struct{})}, 10*time.Minute
		began := time.Now()
		tick := mustRunner(t, cfg).RunOnce(t.Context())
		if d := time.Since(began); d != 10*time.Minute+30*time.Second || tick.Failed != 1 || tick.Code() != ExitFailed {
			t.Errorf("after %s: %+v", d, tick)
		}
		eventually(t, w, "i000", "c", "it did not end within its time limit (and 1 more failures)")
		for _, e := range w.item("c", "i000").Events {
			if !e.Start.Equal(began) || e.Attempt != 1 {
				t.Errorf("event: %+v: its time is the start of the work", e)
			}
		}
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims left: %v", held)
		}
	})
}

// TestStoreAway: a finished result is offered until the store takes it; one whose answer got lost is stored once.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
			w.set(func() { w.storeOff = true })
			time.AfterFunc(5*time.Hour, func() { w.set(func() { w.storeOff = false }) })
			return Report{}, nil
		})
		began := time.Now()
		tick := mustRunner(t, cfg).RunOnce(t.Context())
		if d := time.Since(began); tick.Done != 1 || d < 5*time.Hour || d > 5*time.Hour+time.Minute {
			t.Errorf("after %s: %+v", d, tick)
		}
		eventually(t, w, "i000", "c", "ok")
	})
}

func TestStopWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		w.refuse = func(Claim, Result) error { return nil }
		cfg, c := w.boot("n1").config("c", nil)
		cfg.Worker = c.watched(func(context.Context, Job) (Report, error) {
			w.set(func() { w.groupOff = true })
			return Report{}, nil
		})
		r := mustRunner(t, cfg)
		done := make(chan Tick, 1)
		go func() { done <- r.RunOnce(t.Context()) }()
		time.Sleep(time.Hour)
		began := time.Now()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tick := <-done; tick.NotStored != 1 || tick.Code() != ExitCannotRun || time.Since(began) > 4*time.Minute {
			t.Errorf("after %s: %+v", time.Since(began), tick)
		}
		eventually(t, w, "i000", "c")
	})
}

// TestSuspendedGroup: while the group is out of reach a result waits, and is stored when it is back.
func TestSuspendedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
			w.set(func() { w.groupOff = true })
			time.AfterFunc(20*time.Second, func() { w.set(func() { w.groupOff = false }) })
			return Report{}, nil
		})
		began := time.Now()
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Done != 1 || time.Since(began) != 20*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), tick)
		}
	})
}

func TestFailuresBackOffAndQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		var starts []time.Time
		cfg, _ := w.boot("n1").config("c", func(_ context.Context, j Job) (Report, error) {
			starts = append(starts, time.Now())
			if j.Attempt != len(starts) {
				t.Errorf("attempt %d is the %dth", j.Attempt, len(starts))
			}
			panic("broken item")
		})
		var alarms []Alarm
		cfg.Alarm = func(a Alarm) { alarms = append(alarms, a) }
		cfg.Random, cfg.Jitter = func() float64 { return 0 }, -1
		r := mustRunner(t, cfg)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		var gaps []time.Duration
		for i := range len(starts) - 1 {
			gaps = append(gaps, starts[i+1].Sub(starts[i]).Round(time.Minute))
		}
		if fmt.Sprint(gaps) != "[1m0s 2m0s 4m0s 8m0s]" {
			t.Errorf("tries are %v apart", gaps)
		}
		if len(alarms) != 1 || alarms[0].Kind != AlarmQuarantined {
			t.Errorf("alarms: %+v", alarms)
		}
		rec := w.item("c", "i000").Record
		if !rec.Quarantined || len(w.events("i000", "c")) != 5 || w.events("i000", "c")[0] != "worker panicked: broken item" {
			t.Errorf("record %+v, events %q", rec, w.events("i000", "c"))
		}
	})
}

func TestNoRetryAndUnpreservableAndAble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(3)...)
		tries := map[string]int{}
		cfg, _ := w.boot("n1").config("c", func(_ context.Context, j Job) (Report, error) {
			w.set(func() { tries[j.Item.ID]++ })
			if j.Item.ID == "i001" {
				return Report{Unpreservable: true}, nil
			}
			return Report{}, errors.New("no")
		})
		cfg.NoRetry, cfg.SimultaneousProcesses = true, 3
		cfg.Able = func(it Item) bool { return it.ID != "i002" }
		r := mustRunner(t, cfg)
		for range 10 {
			r.RunOnce(t.Context())
			time.Sleep(time.Minute)
		}
		if fmt.Sprint(tries) != "map[i000:1 i001:4]" { // at 0, 1, 3 and 7 minutes
			t.Errorf("tries: %v", tries)
		}
		eventually(t, w, "i000", "c", "no")
		eventually(t, w, "i001", "c")
		if rec := w.item("c", "i001").Record; rec.Failures != 0 {
			t.Errorf("as if it had never been: %+v", rec)
		}
	})
}

// TestLateEndIsStoredWithPatience: work that ends long after its tick is stored like any other, also when the group is
// out of reach just then.
func TestLateEndIsStoredWithPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", func(context.Context, Job) (Report, error) {
			time.Sleep(5 * time.Hour)
			return Report{}, nil
		})
		r := mustRunner(t, cfg)
		if tick := r.RunOnce(t.Context()); tick.NotStopped != 1 {
			t.Errorf("tick: %+v", tick)
		}
		w.set(func() { w.groupOff = true })
		time.Sleep(10 * time.Hour)
		eventually(t, w, "i000", "c")
		w.set(func() { w.groupOff = false })
		eventually(t, w, "i000", "c", "it did not end within its time limit")
		if held := w.claimed(); len(held) > 0 {
			t.Errorf("claims left: %v", held)
		}
	})
}

// TestQuarantineIsSeenUnderTheClaim: the index does not know yet that an item waits for an operator.
func TestQuarantineIsSeenUnderTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lag = time.Minute
		w.add(numbered(2)...)
		for i, rec := range []Record{{Quarantined: true}, {NotBefore: time.Now().Add(time.Hour)}} {
			f := w.items[fmt.Sprintf("i%03d", i)]
			f.records["c"] = append(f.records["c"], at[Record]{time.Now(), rec})
		}
		cfg, _ := w.boot("n1").config("c", func(_ context.Context, j Job) (Report, error) {
			t.Errorf("%s is worked on", j.Item.ID)
			return Report{}, nil
		})
		cfg.SimultaneousProcesses = 2
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Stale != 2 {
			t.Errorf("tick: %+v", tick)
		}
	})
}

// fenced is a node whose last run is being recovered.
type fenced struct{ *client }

func (f fenced) AwaitUnfenced(ctx context.Context, component string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestFencedNodeClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, c := w.boot("n1").config("c", nothing)
		cfg.Gate = fenced{c}
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Code() != ExitBusy || len(w.granted) > 0 {
			t.Errorf("tick: %+v, claims %v", tick, w.granted)
		}
	})
}

func TestStartOfWorkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, _ := w.boot("n1").config("c", nil)
		cfg.Worker = Exec{Path: "/does/not/exist"}
		if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Failed != 1 {
			t.Errorf("tick: %+v", tick)
		}
		if got := w.events("i000", "c"); len(got) != 1 || !strings.HasPrefix(got[0], "start work: ") {
			t.Errorf("events: %q", got)
		}
	})
}
