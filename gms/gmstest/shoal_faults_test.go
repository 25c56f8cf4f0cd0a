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

// The faults that were measured in the Java original (SEEDS.md section 1), by their numbers. Number 11 (a watchdog's false
// report) waits for the call it is about.

// A pause of 19 s leaves a suspicion behind; at the next real failure two members both recover it.
func TestFault01PauseLeavesSuspicion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 4, a.option(), profile(gms.ProfilePatient))
		victim, other := w.Others(w.Leader())[0], w.Others(w.Leader())[1]
		w.Pause(victim)
		Advance(19 * time.Second)
		if got := len(a.signalsOf(other, signals.FailureSuspected)); got != 1 {
			t.Errorf("%d suspicions of a node that was paused for 19 s", got)
		}
		w.Resume(victim)
		w.Await("the withdrawal", func() bool { return len(a.signalsOf(other, signals.FailureNoLongerSuspected)) == 1 })
		Advance(10 * time.Second)
		for _, m := range w.Node(other).Group.Members() {
			if m.Suspected {
				t.Errorf("%s is still suspected", m.Node)
			}
		}
		w.Kill(other)
		w.AwaitGone(other)
		awaitRecovered(w)
		once(w, a, other)
		if did := a.done(other); len(did) != 1 {
			t.Errorf("%d members recovered %s: %+v", len(did), other, did)
		}
	})
}

// Leader and second die together: the leader's failure is never signalled; of three dead out of four, one is.
func TestFault02LeaderAndSecondDieTogether(t *testing.T) {
	for _, c := range []struct{ nodes, dead int }{{5, 2}, {7, 3}} {
		t.Run(fmt.Sprintf("%d of %d", c.dead, c.nodes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work", "more")
				w := Cluster(t, c.nodes, a.option(), voters(c.nodes))
				awaitVoters(w, c.nodes)
				leader := w.Leader()
				dead := append([]string{leader}, w.Others(leader)[:c.dead-1]...)
				w.Kill(dead...)
				closed := w.AwaitGone(dead...)
				done := closed + awaitRecovered(w)
				t.Logf("leader %s and %v dead: closed after %v, recovered after %v", leader, dead[1:], closed, done)
				once(w, a, dead...)
				for _, name := range w.Others() {
					if got := len(a.signalsOf(name, signals.FailureNotification)); got != c.dead {
						t.Errorf("%s heard of %d failures, not %d", name, got, c.dead)
					}
				}
				for _, name := range dead {
					if did := a.done(name); len(did) != len(a.components) {
						t.Errorf("%s was recovered by %+v", name, did)
					}
				}
				// The others stand for election 150 ms apart; the new leader then pings, at its next tick, the runs that have no
				// session with it yet.
				if closed > 150*time.Millisecond+time.Duration(c.dead)*200*time.Millisecond {
					t.Errorf("closed after %v", closed)
				}
			})
		})
	}
}

// stuck is a recovery that waits for its context on one node, and frees all on the others.
type stuck struct {
	mu  sync.Mutex
	on  string // set by the first
	did []string
}

func (s *stuck) act(ctx context.Context, n *Node, sig signals.FailureRecoverySignal) error {
	fence, err := sig.Acquire(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	first := s.on == ""
	if first {
		s.on = n.Name
	}
	s.mu.Unlock()
	if first {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if _, err := freeAll(ctx, sig); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, fmt.Sprint(n.Name, " ", fence.Token()))
	return nil
}

func (s *stuck) at() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

// The recoverer stops as planned: its recovery is silently lost.
func TestFault03RecovererStopsAsPlanned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &stuck{}
		a := newApp("work")
		a.act = s.act
		w := Cluster(t, 4, a.option())
		if _, err := w.Node("n4").Group.Claim(t.Context(), "work", "item", 1); err != nil {
			t.Fatal(err)
		}
		w.Kill("n4")
		w.Await("a recoverer", func() bool { return s.at() != "" && len(raised(w)) == 1 })
		before := raised(w)
		recoverer := s.at()
		w.Stop(recoverer, "work")
		took := awaitRecovered(w)
		t.Logf("%s stopped, taken over and done after %v", recoverer, took)
		once(w, a, "n4", recoverer)
		if len(s.did) == 0 {
			t.Fatalf("taken over by %v, fences before %v", s.did, before)
		}
		var token uint64
		if _, err := fmt.Sscanf(s.did[0], "n%d %d", new(int), &token); err != nil || token <= before[0].Token {
			t.Errorf("the second token %d is not above the first %d: %v", token, before[0].Token, err)
		}
		if list := w.Living()[0].Group.Claims(); len(list) != 0 {
			t.Errorf("claims left: %+v", list)
		}
	})
}

// raised lists the raised fences.
func raised(w *World) []gms.Recovery {
	list, _ := w.Living()[0].Group.Recoveries()
	return slices.DeleteFunc(list, func(r gms.Recovery) bool { return r.State != "raised" })
}

// A restart within 2 s: no failure, no recovery signal.
func TestFault04FastRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option(), WithConfig(func(_ string, c *gms.Config) { c.NoRefused = true }))
		victim := w.Others(w.Leader())[0]
		other := w.Others(w.Leader(), victim)[0]
		begun := time.Now()
		w.Restart(victim)
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		t.Logf("%s stood again after %v", victim, time.Since(begun))
		once(w, a, victim)
		failures, joins := a.signalsOf(other, signals.FailureNotification), a.signalsOf(other, signals.JoinNotification)
		if len(failures) != 1 || failures[0].Evidence != signals.NewerRun {
			t.Errorf("failures heard: %+v", failures)
		}
		rejoins := slices.DeleteFunc(joins, func(f signals.Facts) bool { return !f.Rejoin })
		if len(rejoins) != 1 || rejoins[0].Member.Node != victim {
			t.Errorf("rejoins heard: %+v", rejoins)
		}
		if did := a.done(victim); len(did) != 1 {
			t.Errorf("recovered by %+v", did)
		}
	})
}

// Split 2|2: both sides recover living members; one isolated member recovers all others.
func TestFault05SplitRecoversTheLiving(t *testing.T) {
	t.Run("halves", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			a := newApp("work")
			w := Cluster(t, 4, a.option(), voters(3))
			voting := votersOf(w)
			var rest []string
			for _, name := range w.Names() {
				if !slices.Contains(voting, name) {
					rest = append(rest, name)
				}
			}
			major := voting[:2]
			minor := append(rest, voting[2])
			judgeSplit(t, w, a, major, minor)
		})
	})
	t.Run("one isolated", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			a := newApp("work")
			w := Cluster(t, 4, a.option())
			follower := w.Others(w.Leader())[0]
			judgeSplit(t, w, a, w.Others(follower), []string{follower})
		})
	})
	t.Run("leader isolated", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			a := newApp("work")
			w := Cluster(t, 4, a.option())
			leader := w.Leader()
			judgeSplit(t, w, a, w.Others(leader), []string{leader})
		})
	})
}

func votersOf(w *World) []string {
	var list []string
	for _, m := range w.Living()[0].Group.Members() {
		if m.Voter {
			list = append(list, m.Node)
		}
	}
	return list
}

// judgeSplit cuts the group in two and holds that the minority recovers nobody and stops, that the majority recovers
// exactly the others, and that all come together again.
func judgeSplit(t *testing.T, w *World, a *app, major, minor []string) {
	t.Helper()
	views := map[string]uint64{}
	for _, name := range minor {
		views[name] = w.Node(name).Group.View().Version
	}
	a.forget()
	w.Partition(minor)
	Advance(30 * time.Second)
	for _, name := range minor {
		n := w.Node(name)
		if n.Standing() {
			t.Errorf("%s holds a lease in the minority", name)
		}
		if v := n.Group.View().Version; v != views[name] {
			t.Errorf("%s saw view %d in the minority, after %d", name, v, views[name])
		}
		if got := a.signalsOf(name, signals.FailureNotification, signals.FailureRecovery); len(got) > 0 {
			t.Errorf("%s heard %+v in the minority", name, got)
		}
		for _, d := range a.done(w.Names()...) {
			if d.By == name {
				t.Errorf("%s recovered %s in the minority", name, d.Node)
			}
		}
	}
	if !w.oneView(major) {
		t.Errorf("the majority %v does not stand:\n%s", major, w)
	}
	once(w, a, minor...)
	w.Heal()
	healed := w.AwaitView(w.Names()...)
	awaitRecovered(w)
	t.Logf("%v against %v: together again %v after the heal", major, minor, healed)
	once(w, a, minor...)
}

// acquire() excludes nobody; isFenced is false during a recovery; no epoch, no lease.
func TestFault06AcquireExcludes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &stuck{}
		a := newApp("work")
		a.act = s.act
		w := Cluster(t, 4, a.option())
		w.Kill("n4")
		w.Await("a raised fence", func() bool { return len(raised(w)) == 1 })
		fence := raised(w)[0]
		intruder := w.Node(w.Others(fence.AppointeeNode)[0])
		if _, err := intruder.Group.AcquireFence(t.Context(), fence.Appointment); !errors.Is(err, signals.ErrNotAppointed) {
			t.Errorf("another member acquires: %v", err)
		}
		if err := intruder.Group.ReleaseFence(t.Context(), fence.Appointment, fence.Token); err == nil {
			t.Error("another member releases")
		}
		w.Start("n4")
		w.AwaitView(w.Names()...)
		if fenced, _, err := w.Node("n4").Group.IsFenced(t.Context(), "work", "n4"); !fenced || err != nil {
			t.Errorf("fenced during the recovery: %v, %v", fenced, err)
		}
		w.Kill(fence.AppointeeNode)
		awaitRecovered(w)
		if fenced, _, err := w.Node("n4").Group.IsFenced(t.Context(), "work", "n4"); fenced || err != nil {
			t.Errorf("fenced after the recovery: %v, %v", fenced, err)
		}
		k := gms.Key{Component: "work", Key: "effect"}
		_, err := w.Node("n4").Group.Cache().Commit(t.Context(), gms.Txn{
			Conditions: []gms.Condition{gms.FenceHeld("work", "n4", fence.Run, fence.Token)}, Puts: []gms.Put{{Key: k}},
		})
		if !errors.Is(err, gms.ErrFenced) {
			t.Errorf("an effect under the old token: %v", err)
		}
		once(w, a, "n4", fence.AppointeeNode)
	})
}

// An old appointment gets a living member recovered later; inherited signals come twice, with start time 0.
func TestFault07OldAppointment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &stuck{}
		a := newApp("work")
		a.act = s.act
		w := Cluster(t, 5, a.option())
		w.Kill("n5")
		w.Await("a recoverer", func() bool { return s.at() != "" })
		first := s.at()
		w.Start("n5")
		w.Pause(first) // its appointment is old when it comes back
		w.AwaitGone(first)
		awaitRecovered(w)
		w.Resume(first)
		w.AwaitView(w.Names()...)
		Advance(time.Minute)
		once(w, a, "n5", first)
		if n := len(w.observer.closed("n5")); n != 1 {
			t.Errorf("n5, which lives, was closed %d times", n)
		}
		for _, d := range a.done("n5") {
			if d.By == first {
				t.Errorf("the old appointee recovered too: %+v", d)
			}
		}
		if did := a.done("n5"); len(did) != 1 {
			t.Errorf("recovered by %+v", did)
		}
	})
}

// The chosen member lacks the component: nobody recovers, the appointment leaks.
func TestFault08ChosenMemberLacksTheComponent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work", "rare")
		a.only = func(node, component string) bool { return component == "work" || node == "n1" || node == "n4" }
		w := Cluster(t, 4, a.option())
		w.Kill("n4")
		w.AwaitGone("n4")
		awaitRecovered(w)
		for _, d := range a.done("n4") {
			if d.Component == "rare" && d.By != "n1" {
				t.Errorf("recovered by %+v", d)
			}
		}
		once(w, a, "n4")
		w.Kill("n1")
		w.Await("a recovery that waits", func() bool {
			list, _ := w.Living()[0].Group.Recoveries()
			return len(list) == 1 && list[0].Component == "rare" && list[0].State == "waiting"
		})
		Advance(time.Minute)
		must(t, a.register(w.Node("n2"), "rare"))
		took := awaitRecovered(w)
		t.Logf("recovered %v after the first that can", took)
		for _, c := range w.observer.closed("n1") {
			if n := w.observer.releasedOf("rare", c.Run); n != 1 {
				t.Errorf("rare of n1 was released %d times", n)
			}
		}
	})
}

// Everybody who can recover fails: the recovery is parked, stays so, and wakes for the first that has not tried it.
func TestParkedRecoveryWakesForANewcomer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		a.act = func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error {
			if n.Name != "n4" {
				return errors.New("cannot do it here")
			}
			_, err := freeAll(ctx, s)
			return err
		}
		w := Cluster(t, 3, a.option())
		if _, err := w.Node("n3").Group.Claim(t.Context(), "work", "item", 1); err != nil {
			t.Fatal(err)
		}
		w.Kill("n3")
		w.AwaitGone("n3")
		parked := func() bool {
			list, _ := w.Living()[0].Group.Recoveries()
			return len(list) == 1 && list[0].State == "parked" && len(list[0].Tried) == 2
		}
		t.Logf("parked after %v", w.Await("the parking", parked))
		Advance(time.Hour)
		if !parked() {
			t.Errorf("after an hour:\n%s", w)
		}
		w.Start("n4")
		w.Await("the recovery by n4", func() bool { return len(a.done("n3")) == 1 })
		awaitRecovered(w)
		once(w, a, "n3")
		if list := w.Living()[0].Group.Claims(); len(list) > 0 {
			t.Errorf("claims left: %+v", list)
		}
	})
}
