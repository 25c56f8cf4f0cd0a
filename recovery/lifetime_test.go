package recovery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/signals"
)

func TestStopWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		var cause error
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			if _, err := s.Acquire(ctx); err != nil {
				return err
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}))
		startNode(t, g, "c", backup(settleAll))
		k := g.close("backup", "a", "a1", "B1")
		synctest.Wait()
		n.Stop()
		if !errors.Is(cause, ErrStopped) {
			t.Errorf("cause %v, want ErrStopped", cause)
		}
		rec, open := g.look(k)
		if !open || rec.appointee != "b" || rec.failures != 0 || len(rec.why) != 0 {
			t.Errorf("after a stop: %+v, want it untouched", rec)
		}
		g.leave("b")
		synctest.Wait()
		wantEnded(t, g, k)
	})
}

func TestWorkDoneWhileStoppingIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			if err := settleAll(ctx, s); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}))
		g.latency = time.Second
		k := g.close("backup", "a", "a1", "B1")
		pass(time.Minute)
		n.Stop()
		wantEnded(t, g, k)
	})
}

func TestStopDoesNotWaitForTheQuorumForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			err := settleAll(ctx, s)
			g.setDown(true)
			return err
		}))
		g.close("backup", "a", "a1", "B1")
		synctest.Wait()
		start := time.Now()
		n.Stop()
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("stop took %v", d)
		}
	})
}

func TestRouterStoppedFirstIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			_, err := s.Acquire(ctx)
			<-ctx.Done()
			return errors.Join(err, ctx.Err())
		}))
		k := g.close("backup", "a", "a1")
		synctest.Wait()
		n.router.Stop()
		synctest.Wait()
		if g.leasesOf("b") != 0 {
			t.Error("the fence is renewed though nobody works under it")
		}
		if rec, _ := g.look(k); len(rec.why) != 0 {
			t.Errorf("failures %q", rec.why)
		}
	})
}

func TestDeliveredAgainAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			_, err := s.Acquire(ctx)
			<-ctx.Done()
			return errors.Join(err, ctx.Err())
		}))
		k := g.close("backup", "a", "a1", "B1")
		synctest.Wait()
		n.stop()
		startNode(t, g, "b", backup(settleAll))
		synctest.Wait()
		wantEnded(t, g, k)
	})
}

func TestStartStopLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		fresh := func() *Manager {
			m, err := New(Options{Log: g.member("b"), Router: signals.NewRouter(signals.Options{}), Node: "b"})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		first := fresh()
		first.Stop()
		first.Stop()
		if err := first.Start(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("start after stop: %v", err)
		}
		second := fresh()
		if err := second.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := second.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		second.Stop()
		second.Stop()
	})
}

func TestOptionsAreChecked(t *testing.T) {
	g := newFakeGroup(t, "b")
	good := Options{Log: g.member("b"), Router: signals.NewRouter(signals.Options{}), Node: "b"}
	if _, err := New(good); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, spoil := range map[string]func(*Options){
		"no log":    func(o *Options) { o.Log = nil },
		"no router": func(o *Options) { o.Router = nil },
		"no node":   func(o *Options) { o.Node = "" },
		"back-off":  func(o *Options) { o.MinBackoff, o.MaxBackoff = time.Second, time.Millisecond },
		"negative":  func(o *Options) { o.MinBackoff = -1 },
		"grace":     func(o *Options) { o.StopGrace = -1 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRule10_AwaitUnfenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		proceed := make(chan struct{})
		n := startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			<-proceed
			return settleAll(ctx, s)
		}))
		if err := n.AwaitUnfenced(t.Context(), "backup"); err != nil {
			t.Errorf("not fenced: %v", err)
		}
		g.close("backup", "b", "b0", "B1")
		got := make(chan error, 1)
		go func() { got <- n.AwaitUnfenced(t.Context(), "backup") }()
		pass(time.Hour)
		if fenced, err := n.IsFenced(t.Context(), "backup", "b"); !fenced || err != nil {
			t.Errorf("IsFenced = %v, %v", fenced, err)
		}
		if fenced, err := n.IsFenced(t.Context(), "payments", "b"); fenced || err != nil {
			t.Errorf("IsFenced of another component = %v, %v", fenced, err)
		}
		if len(got) != 0 {
			t.Fatal("did not wait")
		}
		g.setDown(true)
		pass(time.Hour)
		if _, err := n.IsFenced(t.Context(), "backup", "b"); !errors.Is(err, signals.ErrUnavailable) {
			t.Errorf("IsFenced without quorum: %v", err)
		}
		close(proceed)
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("took \"unknown\" for \"no\"")
		}
		g.setDown(false)
		if err := <-got; err != nil {
			t.Errorf("await: %v", err)
		}
	})
}

// Each component waits for its own recovery only: whoever starts while another one's is going on begins its work.
func TestRule10_AwaitUnfencedIsPerComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		proceed := map[string]chan struct{}{"backup": make(chan struct{}), "restore": make(chan struct{})}
		actions := map[string]recoverFunc{}
		for c, p := range proceed {
			actions[c] = func(ctx context.Context, s signals.FailureRecoverySignal) error {
				<-p
				return settleAll(ctx, s)
			}
		}
		n := startNode(t, g, "b", actions)
		unfenced := map[string]chan error{}
		for c := range proceed {
			g.close(c, "b", "b0", "item of "+c)
		}
		for _, c := range []string{"backup", "restore", "verify"} {
			got := make(chan error, 1)
			go func() { got <- n.AwaitUnfenced(t.Context(), c) }()
			unfenced[c] = got
		}
		ended := func(when string, want ...string) {
			t.Helper()
			pass(time.Minute)
			for c, got := range unfenced {
				if ended := len(got) == 1; ended != slices.Contains(want, c) {
					t.Errorf("%s: the wait of %s has ended: %t", when, c, ended)
				}
			}
		}
		ended("both fences are raised", "verify")
		close(proceed["restore"])
		ended("one was lowered", "verify", "restore")
		close(proceed["backup"])
		ended("both were lowered", "verify", "restore", "backup")
		for c, got := range unfenced {
			if err := <-got; err != nil {
				t.Errorf("%s: %v", c, err)
			}
		}
	})
}

func TestAwaitUnfencedGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t)
		n := startNode(t, g, "b", nil)
		g.close("backup", "b", "b0")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := n.AwaitUnfenced(ctx, "backup"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("await: %v", err)
		}
		if !slices.Equal(g.calls, nil) {
			t.Errorf("calls %q: asking changes nothing", g.calls)
		}
	})
}

// Start and Stop from ten goroutines at once: one Start at most works, every Stop waits.
func TestStartStopStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		for range 50 {
			m, err := New(Options{Log: g.member("b"), Router: signals.NewRouter(signals.Options{}), Node: "b"})
			if err != nil {
				t.Fatal(err)
			}
			var started atomic.Int32
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					if i%2 == 0 && m.Start(t.Context()) == nil {
						started.Add(1)
					}
					m.Stop()
					if err := m.Start(t.Context()); !errors.Is(err, ErrStopped) {
						t.Errorf("start after stop: %v", err)
					}
				})
			}
			all.Wait()
			if n := started.Load(); n > 1 {
				t.Errorf("%d starts", n)
			}
		}
	})
}
