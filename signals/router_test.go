package signals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder notes the positions of the signals it gets.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (r *recorder) NewAction() Action { return r }

func (r *recorder) Consume(_ context.Context, s Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, fmt.Sprintf("%s %d", s.Kind(), s.Facts().Position))
	return nil
}

func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.got, want) {
		t.Errorf("got %q, want %q", r.got, want)
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newRouter(t *testing.T, opts Options) *Router {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet()
	}
	r := NewRouter(opts)
	t.Cleanup(r.Stop)
	return r
}

func start(t *testing.T, r *Router) {
	t.Helper()
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func notice(k Kind, position uint64) *Notice {
	return NewNotice(Facts{Kind: k, Position: position, Member: Member{Node: "a"}})
}

func TestEachFactoryGetsWhatItWantsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var all, failures recorder
		must(t, r.AddActionFactory(&all))
		must(t, r.AddActionFactory(&failures, FailureNotification, PlannedShutdown))
		must(t, r.Deliver(notice(JoinNotification, 1))) // before Start: kept
		start(t, r)
		must(t, r.Deliver(notice(FailureNotification, 2)))
		must(t, r.Deliver(notice(JoinNotification, 3)))
		must(t, r.Deliver(notice(PlannedShutdown, 4)))
		synctest.Wait()
		all.want(t, "join 1", "failure 2", "join 3", "planned-shutdown 4")
		failures.want(t, "failure 2", "planned-shutdown 4")
	})
}

func TestFactoryAddedLaterGetsWhatComesThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		start(t, r)
		var late recorder
		must(t, r.Deliver(notice(JoinNotification, 1)))
		must(t, r.AddActionFactory(&late))
		must(t, r.Deliver(notice(JoinNotification, 2)))
		synctest.Wait()
		late.want(t, "join 2")
	})
}

func TestSlowActionDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var fast recorder
		must(t, r.AddActionFactory(Handle(func(ctx context.Context, _ Signal) error {
			<-ctx.Done()
			return ctx.Err()
		})))
		must(t, r.AddActionFactory(&fast))
		start(t, r)
		for i := range uint64(3) {
			must(t, r.Deliver(notice(JoinNotification, i)))
		}
		synctest.Wait()
		fast.want(t, "join 0", "join 1", "join 2")
	})
}

func TestBadActionIsContained(t *testing.T) {
	for name, bad := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var reported []error
				r := newRouter(t, Options{
					Logger:  slog.New(slog.NewTextHandler(&log, nil)),
					OnError: func(_ Signal, err error) { reported = append(reported, err) },
				})
				handled := 0
				must(t, r.AddActionFactory(Handle(func(_ context.Context, s Signal) error {
					if handled++; handled == 1 {
						return bad()
					}
					return nil
				})))
				start(t, r)
				must(t, r.Deliver(notice(JoinNotification, 1)))
				must(t, r.Deliver(notice(JoinNotification, 2)))
				synctest.Wait()
				if handled != 2 || len(reported) != 1 {
					t.Errorf("handled %d, reported %v", handled, reported)
				}
				p, panicked := errors.AsType[*PanicError](reported[0])
				if panicked != (name == "panic") || panicked && !strings.Contains(string(p.Stack), "TestBadActionIsContained") {
					t.Errorf("reported %#v", reported[0])
				}
				if out := log.String(); !strings.Contains(out, "action failed") || strings.Contains(out, "stack=") != panicked {
					t.Errorf("log %q", out)
				}
			})
		})
	}
}

func TestFactoryThatPanicsIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		r := newRouter(t, Options{OnError: func(_ Signal, err error) { reported = append(reported, err) }})
		must(t, r.AddActionFactory(FactoryFunc(func() Action { return nil })))
		start(t, r)
		must(t, r.Deliver(notice(JoinNotification, 1)))
		synctest.Wait()
		if len(reported) != 1 {
			t.Errorf("reported %v", reported)
		}
	})
}

func TestEachSignalHasAnActionOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var made, most int
		must(t, r.AddActionFactory(FactoryFunc(func() Action {
			made++
			calls := 0
			return ActionFunc(func(context.Context, Signal) error {
				calls++
				most = max(most, calls)
				return nil
			})
		})))
		start(t, r)
		for range 3 {
			must(t, r.Deliver(notice(JoinNotification, 1)))
		}
		synctest.Wait()
		if made != 3 || most != 1 {
			t.Errorf("%d actions for 3 signals, at most %d signals each", made, most)
		}
	})
}

// An action that writes into what it was given changes nothing for the others, nor for who made the signal.
func TestActionsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var handled atomic.Int32
		spoil := Handle(func(_ context.Context, s Signal) error {
			handled.Add(1)
			f := s.Facts()
			if got := string(f.View.Members[0].Details["dir"]) + string(f.Member.Components[0]); got != "/logpay" {
				t.Errorf("another action wrote %q", got)
			}
			f.View.Members[0].Details["dir"][0] = 'X'
			f.View.Members[0].Node = "X"
			f.Member.Components[0] = "X"
			if m, ok := s.(*Message); ok {
				p := m.Payload()
				if string(p) != "hello" {
					t.Errorf("payload %q", p)
				}
				p[0] = 'X'
			}
			return nil
		})
		must(t, r.AddActionFactory(spoil))
		must(t, r.AddActionFactory(spoil))
		must(t, r.AddMessageFactory("pay", spoil))
		start(t, r)
		m := Member{Node: "a", Components: []string{"pay"}, Details: map[string][]byte{"dir": []byte("/log")}}
		facts := Facts{Kind: JoinNotification, Member: m, View: View{Members: []Member{m}}}
		s, msg := NewNotice(facts), NewMessage(facts, "pay", []byte("hello"))
		m.Details["dir"][0] = 'Y'
		for range 2 {
			must(t, r.Deliver(s))
			must(t, r.Deliver(msg))
			synctest.Wait()
		}
		if n := handled.Load(); n != 6 {
			t.Errorf("%d actions, want 6", n)
		}
	})
}

func TestDeliverFromManyGoroutines(t *testing.T) {
	r := newRouter(t, Options{})
	var mu sync.Mutex
	last := map[string]uint64{}
	var all sync.WaitGroup
	all.Add(8 * 500)
	must(t, r.AddActionFactory(Handle(func(_ context.Context, s Signal) error {
		defer all.Done()
		mu.Lock()
		defer mu.Unlock()
		f := s.Facts()
		if f.Position != last[f.Member.Node]+1 {
			t.Errorf("%s: %d after %d", f.Member.Node, f.Position, last[f.Member.Node])
		}
		last[f.Member.Node] = f.Position
		return nil
	})))
	start(t, r)
	for i := range 8 {
		go func() {
			for p := range uint64(500) {
				if err := r.Deliver(NewNotice(Facts{Kind: JoinNotification, Position: p + 1, Member: Member{Node: fmt.Sprint(i)}})); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
}

func TestSlowActionIsNamedInTheLog(t *testing.T) {
	var log bytes.Buffer
	r := newRouter(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, r.AddActionFactory(&recorder{}))
	for range 5 * backlogWarning {
		must(t, r.Deliver(notice(JoinNotification, 1)))
	}
	if n := strings.Count(log.String(), "signals wait"); n != 3 {
		t.Errorf("%d warnings for %d waiting signals, want 3:\n%s", n, 5*backlogWarning, log.String())
	}
}

func TestStopEndsActionsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRouter(t, Options{})
		var cause error
		handled := 0
		must(t, r.AddActionFactory(Handle(func(ctx context.Context, _ Signal) error {
			handled++
			<-ctx.Done()
			time.Sleep(time.Minute) // it takes its time
			cause = context.Cause(ctx)
			return nil
		})))
		start(t, r)
		for range 3 {
			must(t, r.Deliver(notice(JoinNotification, 1)))
		}
		synctest.Wait()
		r.Stop()
		if !errors.Is(cause, ErrStopped) || handled != 1 {
			t.Errorf("after Stop: cause %v, %d handled, want ErrStopped and 1", cause, handled)
		}
		if err := r.Deliver(notice(JoinNotification, 1)); !errors.Is(err, ErrStopped) {
			t.Errorf("deliver: %v", err)
		}
		for what, err := range map[string]error{
			"notices":  r.AddActionFactory(&recorder{}),
			"messages": r.AddMessageFactory("c", &recorder{}),
			"recovery": r.AddRecoveryFactory("c", &recorder{}),
			"start":    r.Start(t.Context()),
		} {
			if !errors.Is(err, ErrStopped) {
				t.Errorf("%s after Stop: %v", what, err)
			}
		}
		r.Stop()
	})
}

func TestStopMayComeFirst(t *testing.T) {
	r := NewRouter(Options{})
	r.Stop()
	r.Stop()
	if err := r.Start(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("start: %v", err)
	}
}

func TestSecondStartIsAnError(t *testing.T) {
	r := newRouter(t, Options{})
	start(t, r)
	if err := r.Start(t.Context()); err == nil {
		t.Error("started twice")
	}
}

func TestKindsThatAreDeliveredOtherwise(t *testing.T) {
	r := newRouter(t, Options{})
	for _, k := range []Kind{FailureRecovery, MessageReceived, "no such kind"} {
		if err := r.AddActionFactory(&recorder{}, k); err == nil {
			t.Errorf("%s: accepted", k)
		}
	}
	for _, k := range Kinds() {
		if err := r.AddActionFactory(&recorder{}, k); (err == nil) == (k == FailureRecovery || k == MessageReceived) {
			t.Errorf("%s: %v", k, err)
		}
	}
}

// Start and Stop from ten goroutines at once, with signals on the way: one Start at most works, every Stop waits.
func TestStartStopStress(t *testing.T) {
	for range 50 {
		r := NewRouter(Options{})
		if err := r.AddActionFactory(Handle(func(context.Context, Signal) error { return nil })); err != nil {
			t.Fatal(err)
		}
		var started atomic.Int32
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if i%2 == 0 && r.Start(t.Context()) == nil {
					started.Add(1)
				}
				_ = r.Deliver(NewNotice(Facts{Kind: JoinNotification, Member: Member{Node: "n1"}})) // refused before Start and after Stop
				r.Stop()
				if err := r.Deliver(NewNotice(Facts{Kind: JoinNotification})); err == nil {
					t.Error("delivered after Stop")
				}
			})
		}
		all.Wait()
		if n := started.Load(); n > 1 {
			t.Errorf("%d starts", n)
		}
	}
}
