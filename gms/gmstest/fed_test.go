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

func followers(n int) Option {
	return WithConfig(func(_ string, c *gms.Config) { c.Followers = n })
}

// fed lists the living members that are not in the Raft configuration.
func fed(w *World) (list []string) {
	w.t.Helper()
	for _, n := range w.Living() {
		if !n.Group.Follows() {
			list = append(list, n.Name)
		}
	}
	return list
}

// Twelve members, of which three vote and two follow: all see the same views, whoever of the others dies, and a member that
// is fed starts again like any other.
func TestFedMembersSeeTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 12, a.option(), followers(2))
		if list := fed(w); len(list) != 7 {
			t.Fatalf("%v are fed", list)
		}
		victim, again := fed(w)[3], fed(w)[5]
		w.Kill(victim)
		if took := w.AwaitGone(victim); took > time.Second {
			t.Errorf("gone from all views after %v", took)
		}
		w.Restart(again)
		w.AwaitView(w.Others()...)
		w.Start(victim)
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a, victim, again)
		for _, n := range w.Living() {
			if joins := a.signalsOf(n.Name, signals.JoinNotification); len(joins) < 12 {
				t.Errorf("%s heard of %d joins", n.Name, len(joins))
			}
		}
	})
}

// spoonfed makes a group of three voters, two followers and fed members, and gives one that is fed.
func spoonfed(t *testing.T, a *app, size int, more ...Option) (w *World, one string) {
	t.Helper()
	w = Cluster(t, size, append([]Option{a.option(), followers(2)}, more...)...)
	w.Await("a feeder for each", func() bool {
		return !slices.ContainsFunc(fed(w), func(name string) bool { return w.Node(name).Group.Feeder() == "" })
	})
	return w, fed(w)[0]
}

// A feeder that is killed, stops, is paused or is cut off from its consumer, or from everybody else, is exchanged: the fed
// member misses no change and keeps its lease.
func TestFedMemberChangesItsFeeder(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "paused", "link cut", "feeder sends nothing", "feeder cut off from the others", "feeder cut off from the leader", "leader"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				limit, timing := 3*time.Second, gms.ProfileLAN
				if how == "link cut" { // a lease of a minute: the leader seldom tells how far it is
					limit, timing = 5*time.Second, gms.ProfilePatient
				}
				w, one := spoonfed(t, a, 8, profile(timing))
				n := w.Node(one)
				run, feeder := n.Run(), n.Group.Feeder()
				if how == "leader" {
					feeder = w.Leader()
				}
				watched := watchAll(t, n)
				hurt(t, w, how, feeder, one)
				var writer *Node
				for _, m := range w.Living() {
					if m.Name != one && m.Name != feeder && m.Group.Feeder() != feeder {
						writer = m
					}
				}
				put(t, writer, 0)
				if took := w.Await("the first change", func() bool { return watched.count() == 1 }); took > limit {
					t.Errorf("the first change came after %v", took)
				}
				for i := 1; i < 20; i++ {
					put(t, writer, i)
					Advance(200 * time.Millisecond)
				}
				w.Await("the last change", func() bool { return watched.count() == 20 })
				watched.inOrder(t)
				if n.Run() != run || !n.Standing() {
					t.Errorf("%s lost its run", one)
				}
				w.Heal()
				if w.Node(feeder).lifeNow() == paused {
					w.Resume(feeder)
				}
				w.AwaitView(w.Others()...)
				awaitRecovered(w)
			})
		})
	}
}

func hurt(t *testing.T, w *World, how, feeder, one string) {
	t.Helper()
	switch how {
	case "killed", "leader":
		w.Kill(feeder)
	case "stopped":
		w.Stop(feeder)
	case "paused":
		w.Pause(feeder)
	case "link cut":
		w.CutOneWay(feeder, one)
		w.CutOneWay(one, feeder)
	case "feeder sends nothing":
		w.CutOneWay(feeder, one)
	case "feeder cut off from the others":
		for _, other := range w.Others(feeder, one) {
			w.CutOneWay(feeder, other)
			w.CutOneWay(other, feeder)
		}
	case "feeder cut off from the leader":
		w.CutOneWay(feeder, w.Leader())
		w.CutOneWay(w.Leader(), feeder)
	default:
		t.Fatalf("no such fault: %s", how)
	}
}

func put(t *testing.T, n *Node, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := n.Group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{{Key: gms.Key{Component: "work", Key: "k"}, Value: fmt.Append(nil, i)}}})
	must(t, err)
}

// watched is what a watch of the state cache has brought.
type watched struct {
	mu     sync.Mutex
	values []string
	err    error
}

// watchAll watches from now on, in a goroutine that ends with the test.
func watchAll(t *testing.T, n *Node) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watched{}
	_, from := n.Group.Cache().ReadAll("work")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := range n.Group.Cache().Watch(ctx, "work", from) {
			w.mu.Lock()
			if w.err = err; err == nil {
				for _, e := range c.Events {
					w.values = append(w.values, string(e.Value))
				}
			}
			w.mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.values)
}

func (w *watched) inOrder(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, v := range w.values {
		if v != fmt.Sprint(i) {
			t.Fatalf("change %d is %s; %v", i, v, w.values)
		}
	}
	if w.err != nil {
		t.Error(w.err)
	}
}

// A member that is fed claims, is appointed and recovers like any other, and its own work is recovered.
func TestFedMemberRecoversAndIsRecovered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		a.only = func(string, string) bool { return false }
		w, one := spoonfed(t, a, 12)
		other := fed(w)[1]
		for _, name := range []string{one, other} { // nobody else can recover
			must(t, a.register(w.Node(name), "work"))
			must(t, w.Node(name).Group.AwaitRegistered(t.Context(), "work"))
		}
		claim, err := w.Node(one).Group.Claim(t.Context(), "work", "item", 1)
		must(t, err)
		w.Kill(one)
		w.AwaitGone(one)
		awaitRecovered(w)
		once(w, a, one)
		if done := a.done(one); len(done) != 1 || done[0].By != other || done[0].Token <= claim.Token {
			t.Errorf("%+v", done)
		}
		n := w.Node(other).Group
		must(t, n.Sync(t.Context()))
		if list := n.Claims(); len(list) > 0 {
			t.Errorf("claims left: %+v", list)
		}
		if fenced, _, err := n.IsFenced(t.Context(), "work", one); fenced || err != nil {
			t.Errorf("fenced %v, %v", fenced, err)
		}
		again, err := n.Claim(t.Context(), "work", "item", 2)
		if err != nil || again.Token <= claim.Token {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// When a follower's place is free, a member that was fed follows the log itself, without a restart, and votes when its turn
// comes. A follower that becomes a voter leaves its place; which of those that follow is the next to vote is open, so the
// member may do so after the second loss or after the third.
func TestFedMemberFollowsWhenThereIsRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w, one := spoonfed(t, a, 6)
		n := w.Node(one)
		run := n.Run()
		votes := func() bool {
			return slices.ContainsFunc(n.Group.Members(), func(m gms.MemberDetail) bool { return m.Node == one && m.Voter })
		}
		var out []string
		for len(out) < 3 && !votes() {
			var voter string
			for _, m := range n.Group.Members() {
				if m.Voter && !m.Leader {
					voter = m.Node
				}
			}
			out = append(out, voter)
			w.Kill(voter)
			w.AwaitGone(voter)
			awaitVoters(w, 3)
			w.Await("its place", n.Group.Follows)
			w.Await("the end of the dead one's vote", func() bool {
				return !slices.ContainsFunc(n.Group.Servers(), func(s gms.Server) bool { return s.Node == voter && s.Voter })
			})
			Advance(2 * time.Second) // until it has caught up, and may be the next
		}
		w.Await("its vote", votes)
		awaitRecovered(w)
		if n.Run() != run {
			t.Errorf("%s has another run", one)
		}
		for _, name := range out {
			w.Start(name)
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a, out...)
	})
}

// A home of a member that is fed holds no log. It starts again, after the whole group has stood still, and is refused only
// when it is another home.
func TestFedHomeStartsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w, one := spoonfed(t, a, 7)
		Advance(time.Second) // the home remembers
		w.Kill(w.Names()...)
		Advance(time.Hour)
		for _, name := range w.Names() {
			w.Start(name)
		}
		w.AwaitView(w.Names()...)
		if n := w.Node(one); n.Group.Follows() {
			t.Errorf("%s follows the log", one)
		}
		awaitRecovered(w)
		w.Kill(one)
		w.AwaitGone(one)
		w.Replace(one)
		n := w.Start(one)
		w.Await("the refusal", func() bool { return errors.Is(n.Group.Err(), gms.ErrOtherHome) })
		w.Kill(one)
		must(t, w.Node("n1").Group.ReplaceHome(t.Context(), one))
		w.Start(one)
		w.AwaitView(w.Names()...)
	})
}

// A member that was away for longer than entries are kept gets a snapshot, and its watch says that there is a gap.
func TestFedMemberFarBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w, one := spoonfed(t, a, 6, profile(gms.ProfilePatient))
		n := w.Node(one)
		_, from := n.Group.Cache().ReadAll("work")
		w.Isolate(one)
		for range 8 {
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() {
					_, err := w.Node(w.Leader()).Group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: gms.Key{Component: "work", Key: fmt.Sprint(i)}, Value: make([]byte, 8<<10)}}})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		Advance(5 * time.Second)
		w.Heal()
		w.Await("the state", func() bool { return len(n.Group.Cache().ListLocal("work", "", "")) == 100 })
		for _, err := range n.Group.Cache().Watch(t.Context(), "work", from) {
			if !errors.Is(err, gms.ErrGap) {
				t.Errorf("the watch says %v", err)
			}
			break
		}
		w.AwaitView(w.Names()...)
	})
}

// A spectator is fed though there is room, and keeps no log.
func TestSpectatorsAreFed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 5, a.option(), WithConfig(func(node string, c *gms.Config) {
			if node == "n5" {
				c.Role = signals.Spectator
			}
		}))
		Advance(10 * time.Second)
		if got := fed(w); !slices.Equal(got, []string{"n5"}) {
			t.Errorf("%v are fed", got)
		}
		w.Kill("n4")
		w.AwaitGone("n4")
		awaitRecovered(w)
		once(w, a, "n4")
		if heard := a.signalsOf("n5", signals.FailureNotification); len(heard) != 1 {
			t.Errorf("the spectator heard %+v", heard)
		}
	})
}

// A member that is fed and does not take it, for a minute of heavy writing, holds nobody up and has it all afterwards.
func TestFedMemberThatSleeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w, one := spoonfed(t, a, 7)
		w.Pause(one)
		writer := w.Node(w.Leader())
		for i := range 60 {
			begun := time.Now()
			for range 10 {
				_, err := writer.Group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{{Key: gms.Key{Component: "work", Key: fmt.Sprint(i)}, Value: make([]byte, 16<<10)}}})
				must(t, err)
			}
			if took := time.Since(begun); took > 500*time.Millisecond {
				t.Errorf("ten puts took %v", took)
			}
			Advance(time.Second)
		}
		w.Resume(one)
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a, one)
		if got := len(w.Node(one).Group.Cache().ListLocal("work", "", "")); got != 60 {
			t.Errorf("%d entries", got)
		}
	})
}
