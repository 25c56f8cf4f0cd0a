package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Environment of a run.
const (
	seedEnv    = "FENCEPOST_SEED"    // of the plan; else one of the clock, which is printed
	minutesEnv = "FENCEPOST_MINUTES" // of faults
	hoursEnv   = "FENCEPOST_HOURS"   // plays one plan after the other, of MINUTES each, for so long
	reportEnv  = "FENCEPOST_REPORT"  // a directory for pages; else a temporary one
)

// bound is how long the group may take from the end of all faults until everything is as it should be.
const bound = 3 * time.Minute

// Faults from a seed, for minutes or for hours, and nothing that must not be.
func TestChaos(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" && os.Getenv(minutesEnv) == "" && os.Getenv(hoursEnv) == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 for five minutes of it, or make chaos")
	}
	minutes, hours := number(t, minutesEnv, 5), number(t, hoursEnv, 0)
	seed := uint64(number(t, seedEnv, float64(time.Now().Unix())))
	for begun := time.Now(); ; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			play(t, draw(seed, time.Duration(minutes*float64(time.Minute))))
		})
		if t.Failed() {
			t.Fatalf("repeat it with: make chaos SEED=%d MINUTES=%v", seed, minutes)
		}
		if time.Since(begun).Hours() >= hours {
			return
		}
	}
}

// The shortest history with all parts in it: a node is killed, the host of another one dies, one is cut off. It shows that
// the harness works, on any machine.
func TestChaosInShort(t *testing.T) {
	p := plan{Seed: 1, Nodes: 3, Voters: 3, Until: 10 * time.Second, Faults: []fault{
		{At: 2 * time.Second, For: time.Second, Kind: killNode, Node: 0},
		{At: 3 * time.Second, For: 2 * time.Second, Kind: hostDies, Node: 1},
		{At: 5 * time.Second, For: 4 * time.Second, Kind: isolate, Node: 2},
	}}
	play(t, p)
}

func number(t *testing.T, env string, standard float64) float64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 {
		t.Fatalf("%s: want a number, not %q", env, text)
	}
	return n
}

// play plays a plan and judges what happened.
func play(t *testing.T, p plan) {
	t.Log(p)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := newWorld(t, ctx, p)
	l := newLabour(w)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs and notes are in %s", w.saveLogs())
		}
		page, err := w.report()
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s, in %v", w.said.summary(), w.said.now().Round(time.Second))
		t.Logf("the report is %s", page)
	})
	t.Cleanup(func() {
		w.stopAll()
		w.verdict("hosts: no process and no volatile file is left", w.leftovers())
	})
	for _, name := range w.nodes[:p.Nodes] {
		w.must(w.launch(name))
	}
	for _, name := range w.nodes[:p.Nodes] {
		w.must(w.await(name+" is ready", func() error { return w.ready(name) }))
	}
	if p.Postgres {
		w.must(w.audit())
	}
	began := time.Now()
	w.disturb(l)
	l.rest(began)
	w.judge(l)
}

// ready tells what a node lacks.
func (w *world) ready(name string) error {
	s, err := w.client(name).Status(w.ctx)
	if err == nil && (!s.Ready || s.Lease != "held") {
		err = fmt.Errorf("%s is %s, its lease %s: %s", name, s.State, s.Lease, strings.Join(s.Problems, "; "))
	}
	return err
}

// disturb has the group work under the faults of its plan.
func (w *world) disturb(l *labour) {
	w.said.add(aside, "the group stands; faults begin")
	working, done := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	all.Go(func() { w.keep(working) })
	all.Go(func() { l.run(working) })
	all.Go(func() { l.halfway(working) })
	limited, cancel := context.WithTimeout(w.ctx, w.plan.Until)
	w.afflict(limited)
	<-limited.Done() // faults may be over before
	cancel()
	w.said.add(aside, "all faults are over")
	healed := time.Now()
	w.still("all nodes are ready", func(context.Context) error {
		var lacks error
		for _, name := range w.nodes[:w.plan.Nodes] {
			lacks = errors.Join(lacks, w.ready(name))
		}
		return lacks
	})
	w.said.add(aside, "all nodes are ready %.1f s after the last fault", time.Since(healed).Seconds())
	done()
	all.Wait()
}

// rest waits until no recovery is under way, has the host apps leave, and waits until nothing is under way any more.
func (l *labour) rest(began time.Time) {
	w, from := l.w, time.Now()
	by := w.nodes[0]
	w.still("recoveries end", func(ctx context.Context) error {
		if fences, err := w.client(by).Fences(ctx); err != nil || len(fences) > 0 {
			return fmt.Errorf("%d fences, %+v: %w", len(fences), fences, err)
		}
		return nil
	})
	for _, name := range w.guests { // one that votes is missed until another one does
		w.still(name+" may leave", func(ctx context.Context) error { return w.dispensable(ctx, by, name) })
		w.want(name, -1)
		if err := hit(w.process(name), syscall.SIGTERM); err == nil {
			<-w.process(name).done
		}
	}
	w.still("nothing is under way", func(ctx context.Context) error { return w.busy(ctx, by, w.plan.Nodes) })
	w.said.add(aside, "at rest %.1f s later", time.Since(from).Seconds())
	for _, name := range w.nodes[:w.plan.Nodes] {
		list, err := w.client(name).Recoveries(w.ctx)
		w.must(err)
		l.note(list)
	}
	l.occurrences(by, began, from)
}

// still waits for rest, no longer than the bound.
func (w *world) still(what string, lacks func(context.Context) error) {
	limited, cancel := context.WithTimeout(w.ctx, bound)
	defer cancel()
	last := lacks(limited)
	for last != nil && limited.Err() == nil {
		pause(limited, 100*time.Millisecond)
		if again := lacks(limited); limited.Err() == nil {
			last = again
		}
	}
	var broken []string
	if last != nil {
		broken = append(broken, fmt.Sprintf("it is not so within %v, after all faults were over: %v", bound, last))
	}
	w.verdict("in bounded time: "+what, broken)
}
