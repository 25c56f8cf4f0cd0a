package signals

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// testRecovery is a recovery signal without a log behind it.
type testRecovery struct {
	*Notice
	appointment Appointment
}

func (r *testRecovery) Appointment() Appointment { return r.appointment }

func recoveryOf(component string) FailureRecoverySignal {
	return &testRecovery{NewNotice(Facts{Kind: FailureRecovery}), Appointment{Component: component}}
}

func TestRecoveryRunsAndReportsOnce(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		act  func() error
		want func(error) bool
	}{
		"nil":   {func() error { return nil }, func(err error) bool { return err == nil }},
		"error": {func() error { return boom }, func(err error) bool { return errors.Is(err, boom) && !errors.Is(err, ErrStopped) }},
		"panic": {func() error { panic(boom) }, func(err error) bool { _, ok := errors.AsType[*PanicError](err); return ok }},
		"exit":  {func() error { runtime.Goexit(); return nil }, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRouter(t, Options{})
				s := recoveryOf("pay")
				must(t, r.AddRecoveryFactory("pay", HandleRecovery(func(_ context.Context, got FailureRecoverySignal) error {
					if got != s {
						t.Errorf("got %v", got)
					}
					return tc.act()
				})))
				start(t, r)
				var results []error
				must(t, r.DeliverRecovery(t.Context(), s, func(err error) { results = append(results, err) }))
				synctest.Wait()
				if len(results) != 1 || !tc.want(results[0]) {
					t.Errorf("results %v", results)
				}
			})
		})
	}
}

// Neither other recoveries of the same factory nor other signals wait for a recovery.
func TestRecoveriesDoNotQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		running := 0
		proceed := make(chan struct{})
		must(t, r.AddRecoveryFactory("pay", HandleRecovery(func(context.Context, FailureRecoverySignal) error {
			<-proceed
			return nil
		})))
		var others recorder
		must(t, r.AddActionFactory(&others))
		start(t, r)
		done := make(chan error, 20)
		for range 20 {
			must(t, r.DeliverRecovery(t.Context(), recoveryOf("pay"), func(err error) { done <- err }))
			running++
		}
		must(t, r.Deliver(notice(JoinNotification, 1)))
		synctest.Wait()
		others.want(t, "join 1")
		close(proceed)
		synctest.Wait()
		if len(done) != running {
			t.Errorf("%d of %d ended", len(done), running)
		}
	})
}

func TestContextOfARecovery(t *testing.T) {
	moved := errors.New("moved")
	for name, end := range map[string]func(*Router, context.CancelCauseFunc){
		"the caller's": func(_ *Router, cancel context.CancelCauseFunc) { cancel(moved) },
		"the router's": func(r *Router, _ context.CancelCauseFunc) { r.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRouter(t, Options{})
				must(t, r.AddRecoveryFactory("pay", HandleRecovery(func(ctx context.Context, _ FailureRecoverySignal) error {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return context.Cause(ctx)
				})))
				start(t, r)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var result error
				must(t, r.DeliverRecovery(ctx, recoveryOf("pay"), func(err error) { result = err }))
				synctest.Wait()
				end(r, cancel)
				r.Stop()
				want := ErrStopped
				if name == "the caller's" {
					want = moved
				}
				if !errors.Is(result, want) {
					t.Errorf("result %v, want %v", result, want)
				}
			})
		})
	}
}

func TestRecoveryThatCannotBeDelivered(t *testing.T) {
	r := newRouter(t, Options{})
	must(t, r.AddRecoveryFactory("pay", &recorder{}))
	never := func(err error) { t.Errorf("done called: %v", err) }
	if err := r.DeliverRecovery(t.Context(), recoveryOf("pay"), never); !errors.Is(err, ErrNotStarted) {
		t.Errorf("before Start: %v", err)
	}
	start(t, r)
	if err := r.DeliverRecovery(t.Context(), recoveryOf("other"), never); !errors.Is(err, ErrNoFactory) {
		t.Errorf("unknown component: %v", err)
	}
	if err := r.Deliver(recoveryOf("pay")); err == nil {
		t.Error("a recovery was queued")
	}
	r.Stop()
	if err := r.DeliverRecovery(t.Context(), recoveryOf("pay"), never); !errors.Is(err, ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
}

func TestComponentsAndTheirChange(t *testing.T) {
	r := newRouter(t, Options{})
	must(t, r.AddRecoveryFactory("pay", &recorder{}, WithExclusion(ExclusionLease), WithProgress(time.Second), WithSelector(Successor)))
	list, changed := r.Components()
	want := Component{Name: "pay", Exclusion: ExclusionLease, Progress: time.Second, Selector: Successor}
	if !slices.Equal(list, []Component{want}) {
		t.Errorf("components %+v", list)
	}
	select {
	case <-changed:
		t.Error("changed without a change")
	default:
	}
	if err := r.AddRecoveryFactory("pay", &recorder{}); !errors.Is(err, ErrRegistered) {
		t.Errorf("second factory: %v", err)
	}
	must(t, r.AddRecoveryFactory("backup", &recorder{}))
	<-changed
	list, _ = r.Components()
	if !slices.Equal(list, []Component{{Name: "backup", Exclusion: ExclusionToken}, want}) {
		t.Errorf("components %+v", list)
	}
	if got, ok := r.Component("pay"); !ok || got != want {
		t.Errorf("component %+v", got)
	}
	if got, ok := r.Component("other"); ok {
		t.Errorf("component %+v", got)
	}
}

func TestComponentsAreChecked(t *testing.T) {
	r := newRouter(t, Options{})
	for name, add := range map[string]func() error{
		"no name":   func() error { return r.AddRecoveryFactory("", &recorder{}) },
		"long name": func() error { return r.AddRecoveryFactory(strings.Repeat("x", 65), &recorder{}) },
		"exclusion": func() error { return r.AddRecoveryFactory("c", &recorder{}, WithExclusion("luck")) },
		"selector":  func() error { return r.AddRecoveryFactory("c", &recorder{}, WithSelector("luck")) },
		"progress":  func() error { return r.AddRecoveryFactory("c", &recorder{}, WithProgress(0)) },
	} {
		if err := add(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if list, _ := r.Components(); len(list) != 0 {
		t.Errorf("registered %+v", list)
	}
}

func TestHandleRecoveryRefusesOthers(t *testing.T) {
	a := HandleRecovery(func(context.Context, FailureRecoverySignal) error { return nil }).NewAction()
	if err := a.Consume(t.Context(), notice(JoinNotification, 1)); err == nil {
		t.Error("a join was taken for a recovery")
	}
}

func TestFenceOfOtherSignalsMeansNothing(t *testing.T) {
	ctx := t.Context()
	for _, s := range []Signal{notice(JoinNotification, 1), message("pay", 1)} {
		f, err := s.Acquire(ctx)
		if err != nil || f.Token() != 0 || f.Context().Err() != nil {
			t.Errorf("%s: fence %v, %v", s.Kind(), f, err)
		}
		f.Progress()
		f.Hold(time.Hour)
		if list, err := f.Orphans(ctx); list != nil || err != nil {
			t.Errorf("%s: orphans %v, %v", s.Kind(), list, err)
		}
		_, err = f.Adopt(ctx, Orphan{})
		for _, err := range []error{err, f.Free(ctx, Orphan{}), f.End(ctx, Claim{}, Complete)} {
			if !errors.Is(err, ErrNotAcquired) {
				t.Errorf("%s: %v", s.Kind(), err)
			}
		}
		if err := s.Release(ctx); err != nil {
			t.Errorf("%s: release: %v", s.Kind(), err)
		}
	}
}

func TestViewFindsAMember(t *testing.T) {
	v := View{Members: []Member{{Node: "a", Run: "1"}, {Node: "b", Run: "2"}}}
	if m, ok := v.Member("b"); !ok || m.Run != "2" {
		t.Errorf("b: %+v, %v", m, ok)
	}
	if m, ok := v.Member("c"); ok {
		t.Errorf("c: %+v", m)
	}
}
