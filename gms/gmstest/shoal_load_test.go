package gmstest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Five long recoveries occupy the only five threads: every other signal of that member waits.
func TestFault09LongRecoveriesDelayNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		components := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}
		a := newApp(components...)
		a.act = func(ctx context.Context, _ *Node, s signals.FailureRecoverySignal) error {
			fence, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Minute):
				return nil
			case <-fence.Context().Done():
				return context.Cause(fence.Context())
			}
		}
		w := Cluster(t, 3, a.option())
		w.Kill("n3")
		w.Await("all fences", func() bool { return len(raised(w)) == len(components) })
		a.forget()
		w.Start("n4")
		begun := time.Now()
		w.Await("the joins", func() bool {
			return len(a.signalsOf("n1", signals.JoinNotification)) == 1 && len(a.signalsOf("n2", signals.JoinNotification)) == 1
		})
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("a join was heard after %v", took)
		}
		if took := awaitRecovered(w); took > 62*time.Second {
			t.Errorf("eight recoveries of a minute beside each other took %v", took)
		}
		once(w, a, "n3")
	})
}

// Three members writing the same 300 keys: 254 differ between replicas ten seconds later. Here the observer compares the
// replicas at every index.
func TestFault10ThreeWriters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 3)
		var writers sync.WaitGroup
		begun := time.Now()
		for _, n := range w.Living() {
			for part := range 10 {
				writers.Go(func() {
					for i := part; i < 300; i += 10 {
						k := gms.Key{Component: "work", Key: fmt.Sprint(i)}
						if _, err := n.Group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: k, Value: []byte(n.Name)}}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		writers.Wait()
		wrote := time.Since(begun)
		var want []gms.Entry
		for _, n := range w.Living() { // as soon as a replica has applied them, it is equal
			must(t, n.Group.Sync(t.Context()))
			got := n.Group.Cache().ListLocal("work", "", "")
			if want == nil {
				want = got
			}
			if !slices.EqualFunc(got, want, func(a, b gms.Entry) bool {
				return a.Key == b.Key && a.Version == b.Version && string(a.Value) == string(b.Value)
			}) {
				t.Errorf("%s has other entries", n.Name)
			}
		}
		if len(want) != 300 {
			t.Errorf("%d keys", len(want))
		}
		t.Logf("900 puts took %v, replicas equal after %v more", wrote, time.Since(begun)-wrote)
	})
}

// The leader paused 32 s and resumed: two leaders, hundreds of leadership signals.
func TestFault12LeaderPaused32s(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		old := w.Leader()
		changes := map[string][]string{}
		look := func() {
			for _, n := range w.Living() {
				l := n.Group.Leader()
				if seen := changes[n.Name]; l != "" && (len(seen) == 0 || seen[len(seen)-1] != l) {
					changes[n.Name] = append(seen, l)
				}
			}
		}
		w.Pause(old)
		for range 320 {
			Advance(100 * time.Millisecond)
			look()
		}
		w.Resume(old)
		for range 300 {
			Advance(100 * time.Millisecond)
			look()
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a, old)
		for _, name := range w.Others(old) {
			if got := len(a.signalsOf(name, signals.GroupLeadershipNotification)); got != 2 {
				t.Errorf("%s heard of %d leaders", name, got)
			}
		}
		leaders := map[string]bool{}
		for name, seen := range changes {
			leaders[w.Node(name).Group.Leader()] = true
			if len(seen) > 3 {
				t.Errorf("%s saw leaders %v", name, seen)
			}
		}
		if len(leaders) != 1 || leaders[""] {
			t.Errorf("leaders at the end: %v", leaders)
		}
	})
}

// A view listener sleeps 3 s per joiner; a late joiner's ready-view lacks the leader.
func TestFault13SlowListener(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		slow := WithApp(func(n *Node) (func(), error) {
			return nil, n.Router.AddActionFactory(signals.Handle(func(ctx context.Context, _ signals.Signal) error {
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
				}
				return nil
			}))
		})
		w := Cluster(t, 3, slow, a.option())
		for _, n := range w.Living() {
			must(t, n.Group.SetReady(t.Context(), true))
		}
		var joiners []string
		for i := range 5 {
			joiners = append(joiners, w.Start(fmt.Sprintf("late%d", i)).Name)
		}
		took := w.AwaitView(w.Names()...)
		if took > 5*time.Second {
			t.Errorf("five joiners stood after %v", took)
		}
		a.forget()
		last := joiners[len(joiners)-1]
		must(t, w.Node(last).Group.SetReady(t.Context(), true))
		w.Await("its readiness", func() bool { return len(a.signalsOf(last, signals.JoinedAndReadyNotification)) == 1 })
		f := a.signalsOf(last, signals.JoinedAndReadyNotification)[0]
		if m, ok := f.View.Member(w.Leader()); !ok || !m.Ready {
			t.Errorf("the late joiner's view lacks the leader, or that it is ready: %+v", f.View)
		}
		if len(f.View.Members) != len(w.Names()) {
			t.Errorf("the view has %d members", len(f.View.Members))
		}
	})
}
