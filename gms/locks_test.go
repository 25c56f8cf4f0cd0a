package gms_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/recovery"
)

// waiting is a WaitLock under way.
type waiting struct {
	lock gms.Lock
	err  error
	over chan struct{}
}

func wait(ctx context.Context, n *gmstest.Node, name string) *waiting {
	x := &waiting{over: make(chan struct{})}
	go func() {
		defer close(x.over)
		x.lock, x.err = n.Group.WaitLock(ctx, name)
	}()
	return x
}

func (x *waiting) done() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}

func try(t *testing.T, n *gmstest.Node, name string) gms.Lock {
	t.Helper()
	l, err := n.Group.TryLock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, n *gmstest.Node, l gms.Lock) {
	t.Helper()
	if err := n.Group.Unlock(t.Context(), l); err != nil {
		t.Error(err)
	}
	if !errors.Is(context.Cause(l.Context()), context.Canceled) {
		t.Errorf("after unlocking, the lock's context ended by %v", context.Cause(l.Context()))
	}
}

func TestLocksAreGrantedFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		n1, n2, n3 := w.Node("n1"), w.Node("n2"), w.Node("n3")
		l := try(t, n1, "l")
		var queue []*waiting
		for _, n := range []*gmstest.Node{n3, n2, n3, n3} { // the latter two wait behind the first of their process
			queue = append(queue, wait(t.Context(), n, "l"))
			gmstest.Advance(20 * time.Millisecond)
		}
		holder, last := n1, l
		for i, n := range []int{0, 1, 2, 3} {
			for _, x := range queue[n:] {
				if x.done() {
					t.Fatalf("granted while another holds it: %+v, %v", x.lock, x.err)
				}
			}
			unlock(t, holder, last)
			w.Await("the next in the queue", queue[n].done)
			if queue[n].err != nil || queue[n].lock.Token <= last.Token {
				t.Fatalf("%d: %+v after token %d, %v", i, queue[n].lock, last.Token, queue[n].err)
			}
			holder, last = []*gmstest.Node{n3, n2, n3, n3}[n], queue[n].lock
		}
		unlock(t, holder, last)
		unlock(t, n1, try(t, n1, "l"))
	})
}

func TestABusyLockNamesItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 2)
		l := try(t, w.Node("n1"), "l")
		for _, n := range []string{"n2", "n1"} { // from elsewhere, and from another thread of the holder
			_, err := w.Node(n).Group.TryLock(t.Context(), "l")
			h, ok := errors.AsType[*gms.HolderError](err)
			if !errors.Is(err, gms.ErrBusy) || !ok || h.Node != "n1" || h.Run != w.Node("n1").Run() {
				t.Errorf("%s: %v", n, err)
			}
		}
		unlock(t, w.Node("n1"), l)
		if err := w.Node("n1").Group.Unlock(t.Context(), l); !errors.Is(err, gms.ErrNotHolder) {
			t.Errorf("unlocked twice: %v", err)
		}
		if err := w.Node("n1").Group.Unlock(t.Context(), gms.Lock{Name: "l"}); !errors.Is(err, gms.ErrNotHolder) {
			t.Errorf("unlocked what was not locked: %v", err)
		}
	})
}

// PROTOCOL.md 21: a wait that is given up leaves nothing held, whether the lock was granted meanwhile or not.
func TestRule21_AWaitThatIsGivenUpLeavesNothingHeld(t *testing.T) {
	for name, granted := range map[string]bool{"waiting": false, "granted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := gmstest.Cluster(t, 3)
				l := try(t, w.Node("n1"), "l")
				ctx, cancel := context.WithCancel(t.Context())
				x := wait(ctx, w.Node("n2"), "l")
				gmstest.Advance(50 * time.Millisecond)
				if granted {
					w.SetLink(w.Leader(), "n2", gmstest.Link{Cut: true}) // n2 does not learn of it
					unlock(t, w.Node("n1"), l)
				}
				cancel()
				w.Await("the end of the wait", x.done)
				if !granted && !errors.Is(x.err, context.Canceled) {
					t.Errorf("error %v", x.err)
				}
				w.Heal()
				if !granted {
					unlock(t, w.Node("n1"), l)
				}
				next := wait(t.Context(), w.Node("n3"), "l")
				w.Await("the lock for the next", next.done)
				if next.err != nil {
					t.Fatal(next.err)
				}
				unlock(t, w.Node("n3"), next.lock)
			})
		})
	}
}

// A lock's limit ends it for everybody: its client is told, the next one gets it, and its token is refused.
func TestTheEndOfALockTellsItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		l := try(t, w.Node("n1"), "l")
		x := wait(t.Context(), w.Node("n2"), "l")
		second := wait(t.Context(), w.Node("n1"), "l") // of the same process, behind its own
		gmstest.Advance(25 * time.Second)
		if l.Context().Err() != nil || x.done() {
			t.Fatal("it ended before its limit")
		}
		gmstest.Advance(3 * time.Second)
		if err := context.Cause(l.Context()); !errors.Is(err, gms.ErrStale) || x.done() {
			t.Errorf("its client stops before the group may give it on: %v, %v", err, x.done())
		}
		w.Await("the next holder", x.done)
		if x.err != nil || x.lock.Token <= l.Token {
			t.Fatalf("next: %+v, %v", x.lock, x.err)
		}
		if err := w.Node("n1").Group.Unlock(t.Context(), l); !errors.Is(err, gms.ErrStale) || !errors.Is(err, gms.ErrNotHolder) {
			t.Errorf("unlocked after its end: %v", err)
		}
		unlock(t, w.Node("n2"), x.lock)
		w.Await("the second of the first process", second.done)
		unlock(t, w.Node("n1"), second.lock)
	})
}

func TestALockEndsWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		leader := w.Leader()
		others := w.Others(leader)
		cut, next := w.Node(others[0]), w.Node(others[1])
		l := try(t, cut, "l")
		x := wait(t.Context(), next, "l")
		behind := wait(t.Context(), cut, "l")
		gmstest.Advance(50 * time.Millisecond)
		w.Isolate(cut.Name)
		w.Await("the next holder", x.done)
		w.Heal()
		w.Await("the end of the lock at its client", func() bool { return l.Context().Err() != nil })
		if err := context.Cause(l.Context()); !errors.Is(err, gms.ErrRunClosed) {
			t.Errorf("it ended by %v", err)
		}
		if err := cut.Group.Unlock(t.Context(), l); !errors.Is(err, gms.ErrRunClosed) {
			t.Errorf("unlocked after the run's end: %v", err)
		}
		unlock(t, next, x.lock)
		w.Await("the wait of the run's process", behind.done)
		if behind.err == nil { // its turn came with the next run
			unlock(t, cut, behind.lock)
		} else if !errors.Is(behind.err, gms.ErrRunClosed) && !errors.Is(behind.err, gms.ErrNoQuorum) {
			t.Errorf("the wait behind it: %v", behind.err)
		}
	})
}

// PROTOCOL.md 21: fence before poll lock, never the reverse.
func TestRule21_AFenceIsRefusedUnderAPollLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gmstest.Cluster(t, 3)
		n := w.Node("n1")
		l := try(t, n, "/SBOI/work")
		m, err := recovery.New(recovery.Options{Log: recovery.GroupLog(n.Group), Router: n.Router, Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Group.RaiseFence(l.Context(), "work", "n2"); !errors.Is(err, gms.ErrOrder) {
			t.Errorf("raise a fence under a lock: %v", err)
		}
		if _, err := n.Group.AcquireFence(l.Context(), gms.Appointment{Component: "work", Node: "n2"}); !errors.Is(err, gms.ErrOrder) {
			t.Errorf("acquire a fence under a lock: %v", err)
		}
		if err := m.AwaitUnfenced(l.Context(), "work"); !errors.Is(err, gms.ErrOrder) {
			t.Errorf("wait for a fence under a lock: %v", err)
		}
		unlock(t, n, l)
		token, err := n.Group.RaiseFence(t.Context(), "work", "n2")
		if err != nil {
			t.Fatal(err)
		}
		l = try(t, n, "/SBOI/work")
		unlock(t, n, l)
		if err := n.Group.LowerFence(t.Context(), "work", "n2", token); err != nil {
			t.Error(err)
		}
	})
}
