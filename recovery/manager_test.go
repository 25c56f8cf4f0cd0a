package recovery

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/signals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type recoverFunc = func(ctx context.Context, s signals.FailureRecoverySignal) error

func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// node is one member of a fake group with its router and manager.
type node struct {
	*Manager
	router *signals.Router
}

func startNode(t *testing.T, g *fakeGroup, name string, actions map[string]recoverFunc, opts ...signals.ComponentOption) *node {
	t.Helper()
	quiet := quietLogger()
	n := &node{router: signals.NewRouter(signals.Options{Logger: quiet})}
	for component, f := range actions {
		if err := n.router.AddRecoveryFactory(component, signals.HandleRecovery(f), opts...); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	n.Manager, err = New(Options{Log: g.member(name), Router: n.router, Node: name, Logger: quiet, MaxBackoff: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.router.Start(t.Context()), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.stop()
		if leases := g.leasesOf(name); leases != 0 {
			t.Errorf("%s leaves %d fences renewed", name, leases)
		}
	})
	return n
}

func (n *node) stop() {
	n.Stop()
	n.router.Stop()
}

// pass lets that time of the bubble go by, and everything that is due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// settleAll frees every orphan under the fence.
func settleAll(ctx context.Context, s signals.FailureRecoverySignal) error {
	f, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	orphans, err := f.Orphans(ctx)
	if err != nil {
		return err
	}
	for _, o := range orphans {
		if err := f.Free(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// backup is the component of most tests.
func backup(f recoverFunc) map[string]recoverFunc { return map[string]recoverFunc{"backup": f} }

func wantEnded(t *testing.T, g *fakeGroup, k key) {
	t.Helper()
	if rec, open := g.look(k); open {
		t.Errorf("recovery of %v is open: %+v", k, rec)
	}
	if n := g.released(k); n != 1 {
		t.Errorf("%d releases of %v, want exactly 1", n, k)
	}
}

func TestRule14_ReturningNilIsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		var got signals.FailureRecoverySignal
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			got = s
			return settleAll(ctx, s)
		}))
		k := g.close("backup", "a", "a1", "B1", "B2")
		synctest.Wait()
		wantEnded(t, g, k)
		want := signals.Appointment{Component: "backup", Node: "a", Run: "a1", Index: 101, Attempt: 1}
		if got.Appointment() != want {
			t.Errorf("appointment %+v, want %+v", got.Appointment(), want)
		}
		if f := got.Facts(); got.Kind() != signals.FailureRecovery || f.Kind != got.Kind() || f.Member.Node != "a" || f.Evidence != signals.Refused {
			t.Errorf("facts %+v", f)
		}
		if want := []string{"b acquire", "b orphans", "b free", "b free", "b release"}; !slices.Equal(g.calls, want) {
			t.Errorf("calls %q, want %q", g.calls, want)
		}
	})
}

func TestActionMayGoOnAfterItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		proceed := make(chan struct{})
		var fenceErr, actionErr error
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err = errors.Join(err, s.Release(ctx)); err != nil {
				return err
			}
			fenceErr = context.Cause(f.Context())
			<-proceed
			actionErr = ctx.Err()
			return errors.New("too late to matter")
		}))
		k := g.close("backup", "a", "a1")
		synctest.Wait()
		wantEnded(t, g, k)
		pass(time.Hour)
		close(proceed)
		synctest.Wait()
		if actionErr != nil || !errors.Is(fenceErr, signals.ErrNotAcquired) {
			t.Errorf("action's context %v, fence's %v", actionErr, fenceErr)
		}
		if slices.Contains(g.calls, "b fail") {
			t.Errorf("calls %q: a lowered fence cannot fail", g.calls)
		}
	})
}

func TestWrongOrderOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		late := make(chan signals.FailureRecoverySignal, 1)
		var fence signals.Fence
		check := func(what string, err error) {
			if !errors.Is(err, signals.ErrNotAcquired) {
				t.Errorf("%s: %v, want ErrNotAcquired", what, err)
			}
		}
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			check("release before acquire", s.Release(ctx))
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			again, err := s.Acquire(ctx)
			if err != nil || again.Token() != f.Token() {
				t.Errorf("second acquire: %v, %v", again, err)
			}
			if err := s.Release(ctx); err != nil {
				return err
			}
			check("second release", s.Release(ctx))
			_, err = s.Acquire(ctx)
			check("acquire after release", err)
			_, err = f.Adopt(ctx, signals.Orphan{})
			check("adopt after release", err)
			fence = f
			late <- s
			return nil
		}))
		k := g.close("backup", "a", "a1")
		s := <-late
		synctest.Wait()
		wantEnded(t, g, k)
		_, err := s.Acquire(t.Context())
		if err == nil {
			t.Error("acquired after the action returned")
		}
		check("free after return", fence.Free(t.Context(), signals.Orphan{}))
		if err := s.Release(t.Context()); err == nil {
			t.Error("released after the action returned")
		}
	})
}

func TestHandOverWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		var token uint64
		var cause, fenceCause, late, lateEnd error
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			token = f.Token()
			<-ctx.Done()
			cause, fenceCause = context.Cause(ctx), context.Cause(f.Context())
			late = s.Release(context.Background())
			lateEnd = f.Free(context.Background(), signals.Orphan{Claim: signals.Claim{Item: "B1"}})
			return nil
		}))
		var second uint64
		startNode(t, g, "c", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			f, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			second = f.Token()
			return settleAll(ctx, s)
		}))
		k := g.close("backup", "a", "a1", "B1")
		synctest.Wait()
		g.handOver(k)
		synctest.Wait()
		for what, err := range map[string]error{"context": cause, "fence": fenceCause, "late release": late, "late free": lateEnd} {
			if !errors.Is(err, signals.ErrNotAppointed) {
				t.Errorf("%s: %v, want ErrNotAppointed", what, err)
			}
		}
		wantEnded(t, g, k)
		if second <= token {
			t.Errorf("token %d after %d", second, token)
		}
		if slices.Contains(g.calls, "b release") || slices.Contains(g.calls, "b fail") {
			t.Errorf("calls %q: b has nothing more to say", g.calls)
		}
	})
}

func TestAppointmentThatComesBackWaitsForTheOldAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		stubborn := make(chan struct{})
		running, most := 0, 0
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			running++
			most = max(most, running)
			defer func() { running-- }()
			if s.Appointment().Index == 101 {
				<-stubborn
				return ctx.Err()
			}
			return settleAll(ctx, s)
		}))
		k := g.close("backup", "a", "a1")
		synctest.Wait()
		g.mu.Lock()
		g.appoint(g.recs[k])
		g.mu.Unlock()
		synctest.Wait()
		if _, open := g.look(k); !open {
			t.Fatal("recovered while the old action runs")
		}
		close(stubborn)
		synctest.Wait()
		wantEnded(t, g, k)
		if most != 1 {
			t.Errorf("%d actions of one recovery at once", most)
		}
	})
}

func TestRedeliveryWithBackoff(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { redelivery(t, fail) })
		})
	}
}

func redelivery(t *testing.T, fail func() error) {
	g := newFakeGroup(t, "b", "c")
	go g.lead(t.Context())
	var attempts []int
	var tokens []uint64
	var times []time.Duration
	start := time.Now()
	startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
		f, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		attempts = append(attempts, s.Appointment().Attempt)
		tokens = append(tokens, f.Token())
		times = append(times, time.Since(start))
		return fail()
	}))
	startNode(t, g, "c", backup(settleAll))
	k := g.close("backup", "a", "a1", "B1")
	pass(time.Minute)
	if !slices.Equal(attempts, []int{1, 2, 3}) {
		t.Errorf("attempts %v", attempts)
	}
	if want := []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond}; !slices.Equal(times, want) {
		t.Errorf("delivered at %v, want %v", times, want)
	}
	if len(slices.Compact(tokens)) != 1 {
		t.Errorf("tokens %v: an error keeps the fence", tokens)
	}
	wantEnded(t, g, k)
	if last := g.calls[len(g.calls)-1]; last != "c release" {
		t.Errorf("last call %q: want the next candidate to have released", last)
	}
}

func TestRule18_WorkLeftKeepsTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		go g.lead(t.Context())
		var explicit error
		attempt := 0
		startNode(t, g, "b", backup(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			attempt++
			if _, err := s.Acquire(ctx); err != nil {
				return err
			}
			if attempt > 1 {
				return settleAll(ctx, s)
			}
			explicit = s.Release(ctx)
			return nil
		}))
		k := g.close("backup", "a", "a1", "B1")
		synctest.Wait()
		if !errors.Is(explicit, signals.ErrWorkLeft) {
			t.Errorf("release: %v, want ErrWorkLeft", explicit)
		}
		rec, open := g.look(k)
		if !open || !rec.raised || rec.failures != 1 || len(rec.orphans) != 1 {
			t.Errorf("after work was left: %+v", rec)
		}
		pass(time.Minute)
		wantEnded(t, g, k)
	})
}

func TestActionThatNeverAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		startNode(t, g, "b", backup(func(context.Context, signals.FailureRecoverySignal) error { return nil }))
		startNode(t, g, "c", backup(settleAll))
		k := g.close("backup", "a", "a1")
		synctest.Wait()
		rec, open := g.look(k)
		want := []string{"action returned nil without having acquired the fence"}
		if !open || !slices.Equal(rec.why, want) {
			t.Errorf("recovery %+v, want failure %q", rec, want)
		}
		pass(time.Minute)
		wantEnded(t, g, k)
	})
}

// An action that neither acquires nor returns is named in the log of its member when its appointment moves on.
func TestActionThatNeverEvenReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		go g.lead(t.Context())
		var said strings.Builder
		router := signals.NewRouter(signals.Options{Logger: quietLogger()})
		idle := signals.HandleRecovery(func(ctx context.Context, _ signals.FailureRecoverySignal) error { <-ctx.Done(); return nil })
		m, err := New(Options{Log: g.member("b"), Router: router, Node: "b", Logger: slog.New(slog.NewTextHandler(&said, nil))})
		if err = errors.Join(err, router.AddRecoveryFactory("backup", idle), router.Start(t.Context()), m.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		startNode(t, g, "c", backup(settleAll))
		k := g.close("backup", "a", "a1", "B1")
		pass(time.Minute)
		wantEnded(t, g, k)
		m.Stop()
		router.Stop()
		if !strings.Contains(said.String(), `msg="recovery action has not acquired its fence, and the appointment has moved on"`) ||
			!strings.Contains(said.String(), "recovery=backup node=a run=a1") {
			t.Errorf("the log says %s", &said)
		}
	})
}

func TestRule09_RecoveriesRunBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b")
		var all sync.WaitGroup
		all.Add(3)
		together := func(ctx context.Context, s signals.FailureRecoverySignal) error {
			all.Done()
			all.Wait()
			return settleAll(ctx, s)
		}
		startNode(t, g, "b", map[string]recoverFunc{"backup": together, "payments": together})
		ks := []key{
			g.close("backup", "a", "a1", "B1"), g.close("payments", "a", "a1", "P1"), g.close("backup", "d", "d1"),
		}
		synctest.Wait()
		for _, k := range ks {
			wantEnded(t, g, k)
		}
	})
}

// The manager's look at the list may be older than the action's Release.
func TestLoweringTheFenceIsNoHandOver(t *testing.T) {
	j := newJob(Ref{}, signals.Component{})
	j.begin(func(error) { t.Error("ended") }, func(error) { t.Error("ended") })
	if err := j.settling(func() error { j.handOver(); return nil }); err != nil || j.slot().phase != phaseReleased {
		t.Errorf("%v, phase %v", err, j.slot().phase)
	}
	j.handOver()
}

func TestRefusedReleaseLeavesTheJobRunning(t *testing.T) {
	j := newJob(Ref{}, signals.Component{})
	moved := false
	j.begin(func(error) { moved = true }, func(error) {})
	if err := j.settling(func() error { return signals.ErrWorkLeft }); err == nil || j.slot().phase != phaseRunning {
		t.Errorf("%v, phase %v", err, j.slot().phase)
	}
	if j.handOver(); !moved {
		t.Error("not told that the appointment moved")
	}
}

func TestComponentThatIsNotRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup(t, "b", "c")
		startNode(t, g, "b", nil)
		startNode(t, g, "c", backup(settleAll))
		k := g.close("backup", "a", "a1")
		pass(time.Minute)
		wantEnded(t, g, k)
	})
}
