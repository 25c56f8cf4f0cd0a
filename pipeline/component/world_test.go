package component

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// seed is random and printed; FENCEPOST_SEED repeats a run.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("FENCEPOST_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FENCEPOST_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// crew are the runners of one process.
type crew struct {
	p       *proc
	runners []*Runner
}

// TestEightRunnersThreeNodes: 500 items, both procedures on the same component, an index that lags five seconds, while
// processes are killed and paused and the group and the store go away for moments. Each item gets exactly one success.
func TestEightRunnersThreeNodes(t *testing.T) {
	rnd := seed(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lag = 5 * time.Second
		w.add(numbered(500)...)
		var mu sync.Mutex
		chance := func(n int) bool { mu.Lock(); defer mu.Unlock(); return rnd.IntN(n) == 0 }
		span := func(most time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rnd.Int64N(int64(most)))
		}
		start := func(node string, n int) *crew {
			out := &crew{p: w.boot(node)}
			for i := range n {
				out.runners = append(out.runners, startRunner(t, out.p, i, chance, span))
			}
			return out
		}
		crews := []*crew{start("n1", 3), start("n2", 3), start("n3", 2)}
		var ending sync.WaitGroup
		stop := func(c *crew) {
			for _, r := range c.runners {
				ending.Go(func() {
					if err := r.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		kills, pauses, began := 0, 0, time.Now()
		for !allDone(w) {
			if time.Since(began) > 24*time.Hour {
				t.Errorf("not done after a day; claims %v", w.claimed())
				for _, f := range w.items {
					if successes(f) == 0 {
						t.Logf("%s: %+v", f.ID, f.seen("ingest", time.Now()))
					}
				}
				break
			}
			time.Sleep(span(8 * time.Second))
			i := int(span(3))
			switch {
			case chance(3):
				kills++
				crews[i].p.kill()
				stop(crews[i])
				time.Sleep(span(5 * time.Second))
				crews[i] = start(crews[i].p.node, len(crews[i].runners))
			case chance(2):
				pauses++
				crews[i].p.pause(span(12*time.Second), 3*time.Second)
			case chance(2):
				w.set(func() { w.groupOff = true })
				time.Sleep(span(2 * time.Second))
				w.set(func() { w.groupOff = false })
			default:
				w.set(func() { w.storeOff = true })
				time.Sleep(span(4 * time.Second))
				w.set(func() { w.storeOff = false })
			}
		}
		time.Sleep(15 * time.Second) // what was paused wakes, and what is late is refused
		total := Counts{}
		for _, c := range crews {
			stop(c)
		}
		ending.Wait()
		for _, c := range crews {
			for _, r := range c.runners {
				total.add(r.Totals())
			}
		}
		time.Sleep(w.recovery)
		t.Logf("%s of virtual time, %d kills, %d pauses, last runners: %+v", time.Since(began), kills, pauses, total)
		checkWorld(t, w)
	})
}

// startRunner starts runner i of a node: the first is of procedure 2, the others of procedure 1.
func startRunner(t *testing.T, p *proc, i int, chance func(int) bool, span func(time.Duration) time.Duration) *Runner {
	cfg, c := p.config("ingest", nil)
	c.name = fmt.Sprintf("%s#%d", c.name, i)
	cfg.Worker = c.watched(func(ctx context.Context, j Job) (Report, error) {
		timer := time.NewTimer(time.Second + span(20*time.Second))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return Report{}, context.Cause(ctx)
		case <-timer.C:
		}
		if err := c.enter(); err != nil { // a stopped process goes on when it wakes
			return Report{}, err
		}
		c.w.mu.Unlock()
		if chance(20) {
			return Report{}, errors.New("bad luck")
		}
		return Report{}, nil
	})
	cfg.Procedure, cfg.SimultaneousProcesses = Many, 4
	if i > 0 {
		cfg.Procedure, cfg.SimultaneousProcesses, c.beside = One, 3, true
	}
	cfg.Every, cfg.Fairness = 10*time.Second, Fairness{BackOff: 5 * time.Second, QuarantineAfter: -1}
	cfg.Random = func() float64 { return float64(span(1000)) / 1000 }
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func successes(f *fakeItem) (n int) {
	for _, e := range f.events {
		if e.value.Success {
			n++
		}
	}
	return n
}

func allDone(w *world) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.items {
		if successes(f) == 0 {
			return false
		}
	}
	return true
}

func checkWorld(t *testing.T, w *world) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, f := range w.items {
		if n := successes(f); n != 1 {
			t.Errorf("%s: %d successes, want 1", id, n)
		}
		tokens := map[uint64]bool{}
		for _, e := range f.events {
			if tokens[e.value.Token] {
				t.Errorf("%s: two events under token %d", id, e.value.Token)
			}
			tokens[e.value.Token] = true
		}
	}
	for key := range w.claims {
		t.Errorf("claim left: %s", key)
	}
	for name := range w.locks {
		t.Errorf("lock left: %s", name)
	}
	for _, p := range w.problems {
		t.Error(p)
	}
}
