package gms

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

const ttl = 3 * time.Second

// sessionOf runs a session in the present bubble until stop is called.
type runningSession struct {
	*session
	stop func() error  // ends keep and gives its error
	kept chan struct{} // closed when keep has ended

	mu    sync.Mutex
	broke []string
}

func startSession(t *testing.T, to members) *runningSession {
	cfg := Config{Node: "me", Timing: Timing{TTL: ttl}, FenceTTL: 30 * time.Second, Clock: newBubbleClock()}.withDefaults()
	r := &runningSession{kept: make(chan struct{})}
	r.session = newSession([16]byte{7}, cfg, to, func(leader string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.broke = append(r.broke, leader)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	var err error
	tasks.Go(func() {
		defer close(r.kept)
		err = r.keep(ctx)
	})
	tasks.Go(func() { r.watchDeadlines(ctx) })
	r.stop = func() error {
		cancel()
		tasks.Wait()
		return err
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *runningSession) now() Standing {
	st, _ := r.standing()
	return st
}

func (r *runningSession) breaks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.broke)
}

// pass lets time go by in the bubble, and everything that is due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestSessionRenewsAtAThirdOfTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a", "b")
		to.clients["a"].renewal = acknowledge
		s := startSession(t, to)
		pass(10*ttl + time.Millisecond)
		streams := to.clients["a"].opened()
		if len(streams) != 1 {
			t.Fatalf("%d streams", len(streams))
		}
		if n := len(streams[0].renewals()); n < 30 || n > 33 {
			t.Errorf("%d renewals in ten TTLs", n)
		}
		if got := streams[0].renewals()[5]; got.GetApplied() != 42 || string(got.GetRun()) != string(s.run[:]) {
			t.Errorf("renewal %v", got)
		}
		if s.now() != Held || len(to.clients["b"].detours()) != 0 || len(s.breaks()) != 0 {
			t.Errorf("standing %v, %d detours, breaks %v", s.now(), len(to.clients["b"].detours()), s.breaks())
		}
	})
}

// PROTOCOL.md 5: a stopped leader breaks no connection, so what it leaves unanswered goes through another member.
func TestRule05_RoundASilentLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a", "b")
		to.clients["b"].renew = ack
		s := startSession(t, to)
		pass(ttl/9 + time.Millisecond)
		if n := len(to.clients["b"].detours()); n != 1 {
			t.Errorf("%d detours after a third of the interval", n)
		}
		for range 20 {
			pass(ttl / 3)
			if s.now() != Held {
				t.Fatalf("standing %v though another member passes the renewals on", s.now())
			}
		}
	})
}

func TestRule05_WhileNoStreamCanBeOpened(t *testing.T) {
	for name, prepare := range map[string]func(*fakeMembers){
		"refused":       func(to *fakeMembers) { to.clients["a"].refuse = errors.New("refused") },
		"hangs":         func(to *fakeMembers) { to.clients["a"].hang = true },
		"is not taken":  func(to *fakeMembers) { to.clients["a"].reluctant = true },
		"unknown":       func(to *fakeMembers) { delete(to.clients, "a") },
		"none is known": func(to *fakeMembers) { to.leader = "" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := newFakeMembers("a", "a", "b")
				prepare(to)
				delete(to.clients, "c")
				if to.leader == "" {
					to.clients = map[string]*fakeClient{"b": to.clients["b"]}
				}
				to.clients["b"].renew = ack
				s := startSession(t, to)
				pass(ttl)
				for range 10 {
					pass(ttl / 3)
					if s.now() != Held {
						t.Fatalf("standing %v", s.now())
					}
				}
				if c := to.clients["a"]; c != nil {
					for _, stream := range c.opened() { // a sender would wait with the library for another connection
						if n := len(stream.renewals()); n > 0 {
							t.Errorf("%d renewals were sent on a stream that was not taken", n)
						}
					}
				}
			})
		})
	}
}

// The deadline counts from before the renewal was sent, whenever its answer arrives.
func TestSessionDeadlineCountsFromSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a")
		answered := 0
		to.clients["a"].renewal = func(s *fakeStream, r *wire.Renewal) {
			if answered++; answered > 1 {
				return
			}
			time.AfterFunc(ttl/2, func() { acknowledge(s, r) })
		}
		s := startSession(t, to)
		pass(ttl/2 + time.Millisecond)
		if s.now() != Held && s.now() != Suspect {
			t.Fatalf("standing %v", s.now())
		}
		_, changed := s.standing()
		pass(ttl - leaseMargin(ttl) - ttl/2 - 2*time.Millisecond)
		if s.now() != Suspect {
			t.Errorf("just before sent + TTL − margin: %v", s.now())
		}
		select {
		case <-changed:
		default:
			t.Error("the change to suspect was not announced")
		}
		_, changed = s.standing()
		pass(time.Millisecond)
		select {
		case <-changed:
		default:
			t.Error("the end was not announced at the deadline")
		}
		if s.now() != Expired {
			t.Errorf("at sent + TTL − margin: %v", s.now())
		}
	})
}

func TestSessionOfAClosedRunEnds(t *testing.T) {
	closed := func(r *wire.Renewal) *wire.RenewReply { return &wire.RenewReply{Seq: r.GetSeq(), RunClosed: true} }
	for name, prepare := range map[string]func(*fakeMembers){
		"by the leader's answer": func(to *fakeMembers) {
			to.clients["a"].renewal = func(s *fakeStream, r *wire.Renewal) {
				s.down <- &wire.SessionDown{Msg: &wire.SessionDown_Ack{Ack: closed(r)}}
			}
		},
		"by the leader's word": func(to *fakeMembers) {
			to.clients["a"].renewal = func(s *fakeStream, _ *wire.Renewal) { s.down <- ended(&wire.Ended{RunClosed: true}) }
		},
		"by the detour": func(to *fakeMembers) { to.clients["b"].renew = closed },
		"by the detour, no stream": func(to *fakeMembers) {
			to.clients["a"].hang = true
			to.clients["b"].renew = closed
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := newFakeMembers("a", "a", "b")
				prepare(to)
				s := startSession(t, to)
				pass(ttl)
				select {
				case <-s.kept:
				default:
					t.Error("a closed run goes on renewing")
				}
				if err := s.stop(); !errors.Is(err, ErrRunClosed) {
					t.Errorf("keep ended with %v", err)
				}
				if len(s.breaks()) != 0 {
					t.Errorf("breaks %v", s.breaks())
				}
			})
		})
	}
}

// A leader's word of the end of its term leads to the next one; only an end without a word is a hint of its death.
func TestSessionFollowsTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a", "b")
		to.clients["a"].renewal, to.clients["b"].renewal = acknowledge, acknowledge
		s := startSession(t, to)
		pass(ttl)
		to.lead("b")
		pass(ttl / 10)
		if n := to.clients["a"].opened()[0].goodbyes(); n != 1 {
			t.Errorf("%d goodbyes to the former leader", n)
		}
		if len(to.clients["b"].opened()) != 1 {
			t.Error("no stream to the new leader")
		}
		to.lead("")
		to.clients["b"].opened()[0].down <- ended(&wire.Ended{NotLeader: true, Leader: "a"})
		pass(ttl / 10)
		if n := len(to.clients["a"].opened()); n != 2 {
			t.Errorf("the leader that was told has %d streams, want 2", n)
		}
		if len(s.breaks()) != 0 || s.now() != Held {
			t.Errorf("breaks %v, standing %v", s.breaks(), s.now())
		}
	})
}

func TestSessionTellsOfABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a", "b")
		to.clients["a"].renewal = acknowledge
		s := startSession(t, to)
		pass(ttl)
		to.clients["a"].opened()[0].end <- errors.New("connection reset")
		pass(ttl)
		if b := s.breaks(); !slices.Equal(b, []string{"a"}) {
			t.Errorf("breaks %v", b)
		}
		if len(to.clients["a"].opened()) != 2 || s.now() != Held {
			t.Errorf("%d streams, standing %v", len(to.clients["a"].opened()), s.now())
		}
		if err := s.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("keep ended with %v", err)
		}
		if n := to.clients["a"].opened()[1].goodbyes(); n != 1 {
			t.Errorf("%d goodbyes at the end", n)
		}
	})
}

func TestSessionStopsWhileAStreamHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a")
		to.clients["a"].hang = true
		s := startSession(t, to)
		pass(time.Second)
		begun := time.Now()
		_ = s.stop()
		if took := time.Since(begun); took > 0 {
			t.Errorf("the end waited %v for a stream to open", took)
		}
	})
}

func TestRule13_AFenceIsALeaseToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a")
		to.clients["a"].renewal = acknowledge
		s := startSession(t, to)
		s.fenceTTL = 1200 * time.Millisecond // shorter than the TTL: it sets the pace
		pass(ttl / 2)
		due := true
		var mu sync.Mutex
		lease, stop := s.renewFence(fenceRef{component: "c", run: [16]byte{1}, index: 9}, s.clock.Now(), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return due
		})
		defer stop()
		pass(10 * ttl)
		if lease.Err() != nil {
			t.Fatalf("a renewed fence ended: %v", context.Cause(lease))
		}
		mu.Lock()
		due = false // the action that promised progress made none
		mu.Unlock()
		pass(s.fenceTTL)
		if err := context.Cause(lease); !errors.Is(err, signals.ErrFenceLost) {
			t.Errorf("an overdue fence: %v", err)
		}
		if s.now() != Held {
			t.Errorf("standing %v", s.now())
		}
	})
}

// A fence that the leader does not name in its answer has moved on: its lease ends though the session goes on.
func TestRule13_AFenceThatTheLeaderDoesNotRenewEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a")
		to.clients["a"].renewal = func(s *fakeStream, r *wire.Renewal) {
			s.down <- &wire.SessionDown{Msg: &wire.SessionDown_Ack{Ack: &wire.RenewReply{Seq: r.GetSeq(), Acknowledged: true}}}
		}
		s := startSession(t, to)
		pass(ttl)
		sent := s.clock.Now()
		lease, stop := s.renewFence(fenceRef{component: "c"}, sent, func() bool { return true })
		defer stop()
		pass(s.fenceTTL - leaseMargin(s.fenceTTL) - time.Millisecond)
		if lease.Err() != nil {
			t.Errorf("ended early: %v", context.Cause(lease))
		}
		pass(2 * time.Millisecond)
		if !errors.Is(context.Cause(lease), signals.ErrFenceLost) {
			t.Errorf("fence_ttl − margin after Acquire was sent: %v", context.Cause(lease))
		}
	})
}

// A fence's deadline counts from before the renewal that named it was sent, however late the answer comes.
func TestFenceDeadlineCountsFromSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, newFakeMembers("", "a"))
		lease, stop := s.renewFence(fenceRef{component: "c"}, s.clock.Now(), func() bool { return true })
		defer stop()
		pass(time.Second)
		r := s.renewal()
		pass(ttl / 2)
		if len(r.GetFences()) != 1 || !s.acknowledged(ack(r)) {
			t.Fatalf("renewal %v", r)
		}
		pass(s.fenceTTL - leaseMargin(s.fenceTTL) - ttl/2 - time.Millisecond)
		if lease.Err() != nil {
			t.Errorf("ended early: %v", context.Cause(lease))
		}
		pass(2 * time.Millisecond)
		if lease.Err() == nil {
			t.Error("it counts from the answer")
		}
	})
}

func TestClosingEndsFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, newFakeMembers("", "a"))
		lease, stop := s.renewFence(fenceRef{component: "c"}, s.clock.Now(), func() bool { return true })
		other, stopOther := s.renewFence(fenceRef{component: "d"}, s.clock.Now(), func() bool { return true })
		stopOther()
		if !errors.Is(context.Cause(other), context.Canceled) {
			t.Errorf("stopped: %v", context.Cause(other))
		}
		s.close()
		if !errors.Is(context.Cause(lease), signals.ErrFenceLost) {
			t.Errorf("after the run's end: %v", context.Cause(lease))
		}
		stop()
		if s.now() != Closed {
			t.Errorf("standing %v", s.now())
		}
	})
}

// The holder may take its own lock in due while it stops another fence under it.
func TestDueIsAskedWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a")
		to.clients["a"].renewal = acknowledge
		s := startSession(t, to)
		var mine sync.Mutex
		_, stop := s.renewFence(fenceRef{component: "c"}, s.clock.Now(), func() bool {
			mine.Lock()
			defer mine.Unlock()
			return true
		})
		pass(ttl / 3)
		mine.Lock()
		stop()
		mine.Unlock()
		pass(ttl)
		if s.now() != Held {
			t.Errorf("standing %v", s.now())
		}
	})
}

func TestAnAnswerWithAMalformedFenceIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSession(t, newFakeMembers("", "a"))
		r := s.renewal()
		a := ack(r)
		a.Fences = []*wire.FenceRenewal{{Component: "c", Run: []byte("short")}}
		if !s.acknowledged(a) || s.now() != Held {
			t.Errorf("standing %v", s.now())
		}
	})
}
