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

// The faults at the end of SEEDS.md section 3, one test each; the two about child processes are in exec_unix_test.go.

func mustRunner(t *testing.T, cfg Config) *Runner {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func eventually(t *testing.T, w *world, item, eventType string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := w.events(item, eventType); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("events of %s: %q, want %q", item, got, want)
	}
}

// Work timed out is taken for finished while it still runs, locks freed, success reported.
func TestFaultTimedOutIsNotFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		release := make(chan struct{})
		cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
			<-release // deaf to its context
			return Report{}, nil
		})
		var alarms []Alarm
		cfg.Alarm = func(a Alarm) { alarms = append(alarms, a) }
		r := mustRunner(t, cfg)
		began := time.Now()
		tick := r.RunOnce(t.Context())
		if d := time.Since(began); d != time.Hour+40*time.Second {
			t.Errorf("the tick took %s: want limit, grace and proof", d)
		}
		if tick.Code() != ExitNotStopped || tick.Report.Outcome != Failed {
			t.Errorf("tick is %+v", tick)
		}
		if len(alarms) != 1 || alarms[0].Kind != AlarmNotStopped || !errors.Is(alarms[0].Err, ErrTimeLimit) {
			t.Errorf("alarms: %+v", alarms)
		}
		eventually(t, w, "i000", "c")
		other, _ := w.boot("n2").config("c", func(context.Context, Job) (Report, error) {
			t.Error("worked on by another while it still runs")
			return Report{}, nil
		})
		if tick := mustRunner(t, other).RunOnce(t.Context()); tick.Busy != 1 || tick.Code() != ExitDone {
			t.Errorf("another node: %+v", tick)
		}
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitNotStopped || tick.Queried != 0 {
			t.Errorf("the node itself, whose only place is taken: %+v", tick)
		}
		close(release)
		eventually(t, w, "i000", "c", "it did not end within its time limit")
		if held := w.claimed(); len(held) > 0 || len(r.Stuck()) > 0 {
			t.Errorf("claims after the proven end: %v, stuck: %v", held, r.Stuck())
		}
		if got := r.Totals(); got.Failed != 1 || got.Done != 0 || got.NotStopped != 0 {
			t.Errorf("totals: %+v", got)
		}
	})
}

// A worker that lost its lock can still store: not by a process that slept, nor by one that was never told.
func TestFaultLostClaimCannotStore(t *testing.T) {
	slow := func(c *client) Func {
		return func(ctx context.Context, j Job) (Report, error) {
			<-time.After(10 * time.Second)
			return Report{}, nil
		}
	}
	for name, lose := range map[string]func(w *world, p *proc){
		"slept": func(w *world, p *proc) {
			p.pause(time.Minute, 3*time.Second)
		},
		"never told": func(w *world, p *proc) {
			w.set(func() { w.closeRun(p.run) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.add(numbered(1)...)
				p := w.boot("n1")
				cfg, c := p.config("c", nil)
				cfg.Worker = c.watched(slow(c))
				var late Tick
				done := make(chan struct{})
				go func() { late = mustRunner(t, cfg).RunOnce(t.Context()); close(done) }()
				time.Sleep(time.Second)
				lose(w, p)
				time.Sleep(4500 * time.Millisecond) // closed after at most 3 s, recovered after 1 s
				cfg2, c2 := w.boot("n2").config("c", nil)
				cfg2.Worker = c2.watched(slow(c2))
				if tick := mustRunner(t, cfg2).RunOnce(t.Context()); tick.Done != 1 {
					t.Errorf("the other node: %+v", tick)
				}
				<-done
				if late.Lost != 1 || late.Code() != ExitLeaseLost || !errors.Is(late.Err, ErrLost) {
					t.Errorf("who lost it: %+v", late)
				}
				eventually(t, w, "i000", "c", "ok")
				if e := w.item("c", "i000").Events[0]; e.Agent != "c@n2" {
					t.Errorf("the event is of %s", e.Agent)
				}
				if got := strings.Join(w.granted, " "); got != "/c/Bi000-RT1 /c/Bi000-RT2" {
					t.Errorf("claims: %s", got)
				}
				if held := w.claimed(); len(held) > 0 {
					t.Errorf("claims left: %v", held)
				}
			})
		})
	}
}

// A lagging index hands out finished items again.
func TestFaultLaggingIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lag = 5 * time.Second
		w.add(numbered(3)...)
		worked := map[string]int{}
		cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
			worked[j.Item.ID]++
			return Report{}, nil
		})
		cfg.Fairness.BackOff = time.Second // so that it asks for stale ones again while the index lags
		cfg.Procedure = One
		r := mustRunner(t, cfg)
		began := time.Now()
		for time.Since(began) < 10*time.Second {
			if tick := r.RunOnce(t.Context()); tick.Code() != ExitDone {
				t.Errorf("tick: %+v", tick)
			}
			time.Sleep(300 * time.Millisecond)
		}
		got := r.Totals()
		if got.Done != 3 || got.Stale == 0 || fmt.Sprint(worked) != "map[i000:1 i001:1 i002:1]" {
			t.Errorf("totals %+v, worked %v", got, worked)
		}
		for i := range 3 {
			eventually(t, w, fmt.Sprintf("i%03d", i), "c", "ok")
		}
	})
}

// Holding the poll lock for the whole run: one hung worker stops the component everywhere for a day.
func TestFaultHungWorkerStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(5)...)
		hung := make(chan struct{})
		cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
			<-hung
			return Report{Unpreservable: true}, nil
		})
		cfg.Limit = 24 * time.Hour
		go mustRunner(t, cfg).RunOnce(t.Context())
		synctest.Wait()
		other, _ := w.boot("n2").config("c", func(context.Context, Job) (Report, error) { return Report{}, nil })
		other.SimultaneousProcesses = 10
		began := time.Now()
		if tick := mustRunner(t, other).RunOnce(t.Context()); tick.Done != 4 || time.Since(began) > time.Second {
			t.Errorf("the other node, in %s: %+v", time.Since(began), tick)
		}
		w.mu.Lock()
		if _, held := w.locks[PollLock("c")]; held {
			t.Error("the poll lock is held while nobody polls")
		}
		w.mu.Unlock()
		close(hung)
		synctest.Wait()
	})
}

// Two components append to one item's events and lose one.
func TestFaultTwoComponentsOneItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(20)...)
		done := make(chan Tick)
		for _, component := range []string{"left", "right"} {
			cfg, _ := w.boot("n-"+component).config(component, func(context.Context, Job) (Report, error) {
				time.Sleep(time.Second)
				return Report{}, nil
			})
			cfg.SimultaneousProcesses = 20
			go func() { done <- mustRunner(t, cfg).RunOnce(t.Context()) }()
		}
		for range 2 {
			if tick := <-done; tick.Done != 20 {
				t.Errorf("tick: %+v", tick)
			}
		}
		for i := range 20 {
			id := fmt.Sprintf("i%03d", i)
			eventually(t, w, id, "left", "ok")
			eventually(t, w, id, "right", "ok")
		}
	})
}

// Busy and broken share an exit code.
func TestFaultBusyIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(numbered(1)...)
		cfg, c := w.boot("n1").config("c", func(context.Context, Job) (Report, error) { return Report{}, nil })
		r := mustRunner(t, cfg)
		unlock, err := c.LockPoll(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitBusy || time.Since(began) != 5*time.Second {
			t.Errorf("poll lock held, after %s: code %d, %v", time.Since(began), tick.Code(), tick.Err)
		}
		if err := unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		seat, err := c.LockRun(t.Context(), "c", 0)
		if err != nil {
			t.Fatal(err)
		}
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitBusy {
			t.Errorf("run lock held: code %d, %v", tick.Code(), tick.Err)
		}
		if err := seat(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.storeOff = true })
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitCannotRun {
			t.Errorf("index away: code %d, %v", tick.Code(), tick.Err)
		}
		w.set(func() { w.storeOff, w.groupOff = false, true })
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitLeaseLost {
			t.Errorf("group away: code %d, %v", tick.Code(), tick.Err)
		}
		w.set(func() { w.groupOff = false })
		if tick := r.RunOnce(t.Context()); tick.Code() != ExitDone || tick.Done != 1 {
			t.Errorf("at last: code %d, %+v", tick.Code(), tick)
		}
	})
}

// An item that cannot be stored is retried each minute for ever at the head of the queue.
func TestFaultItemThatCannotBeStored(t *testing.T) {
	for name, c := range map[string]struct {
		refuse      func(Claim, Result) error
		quarantined bool
		most        int
	}{
		"not even a failure": {func(c Claim, _ Result) error { return refuse(c.Item == "i000") }, false, 12},
		"only its result":    {func(c Claim, r Result) error { return refuse(c.Item == "i000" && r.Event.Success) }, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.refuse = c.refuse
				w.add(numbered(30)...)
				var order []string
				cfg, _ := w.boot("n1").config("c", func(ctx context.Context, j Job) (Report, error) {
					order = append(order, j.Item.ID)
					return Report{}, nil
				})
				var kinds []string
				cfg.Alarm = func(a Alarm) { kinds = append(kinds, string(a.Kind)) }
				cfg.Procedure = One
				r := mustRunner(t, cfg)
				for range 24 * 60 { // each minute for a day
					r.RunOnce(t.Context())
					time.Sleep(time.Minute)
				}
				if got := r.Totals(); got.Done != 29 {
					t.Errorf("totals: %+v", got)
				}
				again := 0
				for i, id := range order {
					if id == "i000" {
						again++
					}
					if i > 0 && i < 29 && id == "i000" && order[i-1] == "i000" {
						t.Errorf("try %d is at the head again", i)
					}
				}
				if again > c.most {
					t.Errorf("tried %d times in a day", again)
				}
				if it := w.item("c", "i000"); it.Record.Quarantined != c.quarantined {
					t.Errorf("record: %+v", it.Record)
				}
				if !strings.Contains(strings.Join(kinds, " "), string(AlarmNotStored)) {
					t.Errorf("alarms: %v", kinds)
				}
			})
		})
	}
}

func refuse(yes bool) error {
	if yes {
		return errors.New("value is too large")
	}
	return nil
}
