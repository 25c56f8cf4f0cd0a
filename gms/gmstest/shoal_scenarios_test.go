package gmstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// The original's own test scenarios (SEEDS.md section 1), as far as the calls they use exist here.

func nodesOf(list []signals.Facts) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.Member.Node)
	}
	slices.Sort(names)
	return names
}

// Ten members and a spectator start: n joins and n+1 ready marks on the first. One is added late; the middle one is
// stopped, and comes back; is killed, and comes back; is killed and comes back at once.
func TestScenarioTenMembersAndASpectator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 10
		a := newApp("work")
		w := New(t, a.option(), WithConfig(func(node string, c *gms.Config) {
			if node == "watcher" {
				c.Role = signals.Spectator
			}
		}))
		w.Found("m1")
		for i := range n {
			w.Start(fmt.Sprintf("m%d", i+1))
		}
		w.Start("watcher")
		w.AwaitView(w.Names()...)
		for _, node := range w.Living() {
			must(t, node.Group.SetReady(t.Context(), true))
		}
		w.Await("the marks", func() bool {
			return len(a.signalsOf("m1", signals.JoinNotification)) == n && len(a.signalsOf("m1", signals.JoinedAndReadyNotification)) == n+1
		})
		w.Start("late")
		w.AwaitView(w.Names()...)
		w.Await("the late one's joins", func() bool { return len(a.signalsOf("late", signals.JoinNotification)) == n+1 })
		if got := nodesOf(a.signalsOf("late", signals.JoinNotification)); len(slices.Compact(got)) != n+1 {
			t.Errorf("the late one heard of %v", got)
		}
		middle(t, w, a, "m5")
		awaitRecovered(w)
		once(w, a, "m5")
		for _, d := range a.done(w.Names()...) {
			if d.By == "watcher" {
				t.Errorf("the spectator recovered: %+v", d)
			}
		}
	})
}

// middle stops and kills a member, and counts what the first member hears.
func middle(t *testing.T, w *World, a *app, name string) {
	t.Helper()
	steps := []struct {
		what         string
		end          func()
		wait         time.Duration
		planned      int
		failed, join int
	}{
		{"stop", func() { w.Stop(name) }, 10 * time.Second, 1, 0, 1},
		{"kill", func() { w.Kill(name) }, 10 * time.Second, 0, 1, 1},
		{"kill and restart at once", func() { w.Kill(name) }, 0, 0, 1, 1},
	}
	for _, s := range steps {
		a.forget()
		s.end()
		if s.wait > 0 {
			Advance(s.wait)
			if m, here := w.Node("m1").Group.View().Member(name); here {
				t.Errorf("%s: still in the view: %+v", s.what, m)
			}
		}
		w.Start(name)
		w.AwaitView(w.Names()...)
		Advance(time.Second)
		planned, failed := a.signalsOf("m1", signals.PlannedShutdown), a.signalsOf("m1", signals.FailureNotification)
		joins := a.signalsOf("m1", signals.JoinNotification)
		if len(planned) != s.planned || len(failed) != s.failed || len(joins) != s.join {
			t.Errorf("%s: the first heard %d planned shutdowns, %d failures, %d joins", s.what, len(planned), len(failed), len(joins))
		}
		for _, f := range joins {
			if !f.Rejoin || f.Member.Node != name {
				t.Errorf("%s: a join of %s, rejoin %v", s.what, f.Member.Node, f.Rejoin)
			}
		}
	}
}

// The dead member's details are readable in its recoverer, also after the recoverer wiped its own entries.
func TestScenarioDetailsOfTheDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var read []string
		a := newApp("work")
		a.act = func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error {
			if _, err := s.Acquire(ctx); err != nil {
				return err
			}
			own := gms.Key{Component: "work", Member: n.Name, Key: "log"}
			if _, err := n.Group.Cache().Commit(ctx, gms.Txn{Deletes: []gms.Key{own}}); err != nil {
				return err
			}
			dead := s.Facts().Member
			e, err := n.Group.Cache().Get(ctx, gms.Key{Component: "work", Member: dead.Node, Key: "log"})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			read = append(read, fmt.Sprintf("%s %s %s", dead.Details["log"], e.Value, dead.Node))
			return nil
		}
		w := Cluster(t, 3, a.option(), WithConfig(func(node string, c *gms.Config) {
			c.Details = map[string][]byte{"log": []byte("/logs/" + node)}
		}))
		for _, n := range w.Living() {
			k := gms.Key{Component: "work", Member: n.Name, Key: "log"}
			_, err := n.Group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: k, Value: []byte("entry of " + n.Name), Bound: true}}})
			must(t, err)
		}
		w.Kill("n2")
		w.AwaitGone("n2")
		awaitRecovered(w)
		if want := []string{"/logs/n2 entry of n2 n2"}; !slices.Equal(read, want) {
			t.Errorf("the recoverer read %q, not %q", read, want)
		}
		if _, err := w.Living()[0].Group.Cache().Get(t.Context(), gms.Key{Component: "work", Member: "n2", Key: "log"}); !errors.Is(err, gms.ErrNotFound) {
			t.Errorf("after the recovery the bound entry is still there: %v", err)
		}
	})
}

// raise → isFenced → lower → not; raise when raised → error; a fence goes with its raiser.
func TestScenarioMaintenanceFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		one, two := w.Node("n1").Group, w.Node("n2").Group
		fenced := func(want bool) {
			t.Helper()
			for _, n := range w.Living() {
				must(t, n.Group.Sync(t.Context()))
				if got, _, err := n.Group.IsFenced(t.Context(), "work", "n3"); got != want || err != nil {
					t.Errorf("%s: fenced %v: %v", n.Name, got, err)
				}
			}
		}
		fenced(false)
		token, err := one.RaiseFence(t.Context(), "work", "n3")
		must(t, err)
		fenced(true)
		if _, err := two.RaiseFence(t.Context(), "work", "n3"); !errors.Is(err, gms.ErrBusy) {
			t.Errorf("raised when raised: %v", err)
		}
		if err := two.LowerFence(t.Context(), "work", "n3", token); !errors.Is(err, gms.ErrNotHolder) {
			t.Errorf("lowered by another: %v", err)
		}
		must(t, one.LowerFence(t.Context(), "work", "n3", token))
		fenced(false)
		_, err = two.RaiseFence(t.Context(), "work", "n3")
		must(t, err)
		fenced(true)
		w.Kill("n2")
		w.AwaitGone("n2")
		fenced(false)
	})
}

// Two groups on one network do not mix, though their seeds name each other.
func TestScenarioTwoGroups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		red, blue := []string{"r1", "r2", "r3"}, []string{"b1", "b2", "b3"}
		w := New(t, a.option(), WithConfig(func(node string, c *gms.Config) {
			c.Group, c.Bootstrap = "red", red
			if slices.Contains(blue, node) {
				c.Group, c.Bootstrap = "blue", blue
			}
		}))
		w.Found(append(red, blue...)...)
		for _, name := range w.Names() {
			w.Start(name)
		}
		w.AwaitView(red...)
		w.AwaitView(blue...)
		Advance(time.Minute)
		w.Kill("r2")
		w.AwaitView("r1", "r3")
		Advance(time.Minute)
		w.AwaitView(blue...)
		if r, b := w.Node("r1").Group.ClusterID(), w.Node("b1").Group.ClusterID(); r == b {
			t.Errorf("both are cluster %s", r)
		}
		for _, f := range a.signalsOf("b1") {
			if !slices.Contains(blue, f.Member.Node) {
				t.Errorf("blue heard of %s: %s", f.Member.Node, f.Kind)
			}
		}
	})
}

// Alive-and-ready windows through start, stop, restart, kill and rejoin: a run is ready from its own word to its end.
func TestScenarioReadyWindows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		ready := func(want ...string) {
			t.Helper()
			w.Await(fmt.Sprintf("%v to be ready", want), func() bool {
				for _, n := range w.Living() {
					var got []string
					for _, m := range n.Group.View().Members {
						if m.Ready {
							got = append(got, m.Node)
						}
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						return false
					}
				}
				return true
			})
		}
		say := func(name string, is bool) {
			t.Helper()
			must(t, w.Node(name).Group.SetReady(t.Context(), is))
		}
		ready()
		say("n1", true)
		say("n2", true)
		ready("n1", "n2")
		say("n1", false)
		ready("n2")
		say("n1", true)
		w.Stop("n2", "work")
		ready("n1")
		w.Start("n2")
		w.AwaitView(w.Names()...)
		ready("n1")
		say("n2", true)
		ready("n1", "n2")
		w.Kill("n1")
		ready("n2")
		w.Start("n1")
		w.AwaitView(w.Names()...)
		ready("n2")
		say("n1", true)
		ready("n1", "n2")
		if got := nodesOf(a.signalsOf("n3", signals.JoinedAndReadyNotification)); !slices.Equal(got, []string{"n1", "n1", "n1", "n2", "n2"}) {
			t.Errorf("n3 heard that %v are ready", got)
		}
	})
}

// Three founders are started in any order, one late, one twice: one cluster id, never two groups.
func TestScenarioFormingInAnyOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := New(t)
		w.Found("n1", "n2", "n3")
		w.Start("n3")
		Advance(time.Minute)
		w.Start("n1")
		Advance(10 * time.Second)
		w.Restart("n3")
		w.Start("n4") // not a founder
		Advance(10 * time.Second)
		if v := w.Node("n1").Group.View(); len(v.Members) > 0 {
			t.Errorf("a group without all founders: %+v", v)
		}
		w.Start("n2")
		t.Logf("one view %v after the last founder's start", w.AwaitView("n1", "n2", "n3", "n4"))
		ids := map[string]bool{}
		for _, n := range w.Living() {
			ids[n.Group.ClusterID()] = true
		}
		if len(ids) != 1 || ids[""] {
			t.Errorf("cluster ids %v", ids)
		}
	})
}

// A node that comes back with an empty home is refused, and told so.
func TestScenarioEmptyHomeIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 3)
		w.Kill("n2")
		w.AwaitGone("n2")
		w.Replace("n2")
		n := w.Start("n2")
		w.Await("the refusal", func() bool { return n.Group.Err() != nil })
		if err := n.Group.Err(); !errors.Is(err, gms.ErrOtherHome) {
			t.Errorf("refused with %v", err)
		}
		w.AwaitView("n1", "n3")
	})
}

// Group shutdown: n planned-shutdown signals, and all know that it is the group that is shut down (fault 14: there its
// argument is ignored).
func TestFault14GroupShutdownIsKnownToAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 4, a.option())
		last := w.Leader()
		rest := w.Others(last)
		w.Stop(rest[0], "work") // before the announcement: an instance only
		must(t, w.Node(last).Group.AnnounceGroupShutdown(t.Context(), signals.PhaseInitiated))
		w.Await("all to know", func() bool {
			for _, n := range w.Living() {
				if !n.Group.IsGroupBeingShutdown() {
					return false
				}
			}
			return true
		})
		w.StopTogether(rest[1], rest[2])
		w.Await("the planned shutdowns", func() bool { return len(a.signalsOf(last, signals.PlannedShutdown)) == 3 })
		for i, f := range a.signalsOf(last, signals.PlannedShutdown) {
			want := signals.ShutdownGroup
			if i == 0 {
				want = signals.ShutdownInstance
			}
			if f.Shutdown != want {
				t.Errorf("%s left as %q, not %q", f.Member.Node, f.Shutdown, want)
			}
		}
		if got := a.signalsOf(last, signals.GroupShutdown); len(got) != 1 || got[0].Phase != signals.PhaseInitiated {
			t.Errorf("marks of the shutdown: %+v", got)
		}
	})
}

// Exactly two leadership signals over a member's life with one change of leader: the leader at its start, and the next.
func TestScenarioTwoLeadershipSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		n := w.Start("n4")
		w.AwaitView(w.Names()...)
		first := w.Leader()
		Advance(10 * time.Second)
		w.Kill(first)
		w.AwaitGone(first)
		Advance(time.Minute)
		second := w.Leader()
		if second == n.Name {
			t.Fatalf("%s leads itself", n.Name)
		}
		var heard []string
		for _, f := range a.signalsOf(n.Name, signals.GroupLeadershipNotification) {
			heard = append(heard, f.Member.Node)
		}
		if want := []string{first, second}; !slices.Equal(heard, want) {
			t.Errorf("%s heard of leaders %v, not %v", n.Name, heard, want)
		}
	})
}
