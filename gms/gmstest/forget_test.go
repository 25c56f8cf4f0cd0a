package gmstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// listed tells whether a node has a place in the Raft configuration, as the leader knows it.
func listed(w *World, node string) bool {
	leader := w.Leader()
	return leader == "" || slices.ContainsFunc(w.Node(leader).Group.Servers(), func(s gms.Server) bool { return s.Node == node })
}

// A node is forgotten for good only when its run is closed and recovered. Then its place in the log goes, its home is
// refused, and another home may come under its name without a word of an operator.
func TestForgetNode(t *testing.T) {
	for _, who := range []string{"voter with a successor", "voter without a successor", "follower", "fed member"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) { forgetNode(t, who) })
		})
	}
}

func forgetNode(t *testing.T, who string) {
	a := newApp("work")
	size, room := 5, 2
	if who == "voter without a successor" {
		size = 3
	} else if who == "fed member" {
		room = 1
	}
	w := Cluster(t, size, a.option(), followers(room))
	awaitVoters(w, 3)
	Advance(2 * time.Second)
	leader := w.Leader()
	var victim string
	for _, m := range w.Node(leader).Group.Members() {
		if m.Voter == (size == 3 || who == "voter with a successor") && m.Fed == (who == "fed member") && !m.Leader {
			victim = m.Node
		}
	}
	by := w.Node(leader).Group
	if err := by.ForgetNode(t.Context(), victim); !errors.Is(err, gms.ErrBusy) {
		t.Errorf("a living node was forgotten: %v", err)
	}
	if err := by.ForgetNode(t.Context(), "nobody"); !errors.Is(err, gms.ErrNotFound) {
		t.Errorf("an unknown node was forgotten: %v", err)
	}
	w.Kill(victim)
	w.AwaitGone(victim)
	awaitRecovered(w)
	must(t, by.ForgetNode(t.Context(), victim))
	w.Await("its place to go", func() bool { return !listed(w, victim) })
	if forgotten, forGood := w.observer.forgot(victim); !forgotten || !forGood {
		t.Errorf("forgotten %v, for good %v", forgotten, forGood)
	}
	n := w.Start(victim)
	w.Await("the refusal", func() bool { return n.Group.Err() != nil })
	if err := n.Group.Err(); !errors.Is(err, gms.ErrForgotten) {
		t.Errorf("a burnt home: %v", err)
	}
	w.Kill(victim)
	w.Replace(victim)
	w.Start(victim)
	w.AwaitView(w.Names()...)
	awaitVoters(w, 3)
	once(w, a, victim)
}

// A leader forgets who does not vote and has been gone for long; a voter stays one for ever. Who comes back after all is a
// newcomer with the home that it had.
func TestReaping(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 5, a.option(), roles(map[string]signals.Role{"n5": signals.Spectator}), WithConfig(func(_ string, c *gms.Config) { c.ReapAfter = 10 * time.Minute }))
		awaitVoters(w, 3)
		w.Await("n4 to follow", func() bool { return w.Leader() != "" && listed(w, "n4") })
		w.Kill("n4", "n5")
		w.AwaitGone("n4", "n5")
		Advance(9 * time.Minute)
		if got, _ := w.observer.forgot("n4"); got || !listed(w, "n4") {
			t.Error("n4 was forgotten within ten minutes")
		}
		w.Kill(w.Leader()) // the next one goes on counting
		Advance(2 * time.Minute)
		if got, _ := w.observer.forgot("n4"); got {
			t.Error("n4 was forgotten by a leader that had led for two minutes")
		}
		Advance(10 * time.Minute)
		for _, name := range []string{"n4", "n5"} {
			if forgotten, forGood := w.observer.forgot(name); !forgotten || forGood || listed(w, name) {
				t.Errorf("%s is forgotten %v, for good %v, has a place in the log %v", name, forgotten, forGood, listed(w, name))
			}
		}
		Advance(15 * time.Minute)
		for _, name := range []string{"n1", "n2", "n3"} {
			if got, _ := w.observer.forgot(name); got || !listed(w, name) {
				t.Errorf("the voter %s was forgotten", name)
			}
		}
		for _, name := range w.Names() {
			if !w.Node(name).Alive() {
				w.Start(name)
			}
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
	})
}

// What a member says of itself while it runs is read by all, and by its recoverer after its death.
func TestDetailsAreReadAfterDeath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		read := make(chan string, 10)
		a.act = func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error {
			if n.Alive() {
				read <- fmt.Sprintf("%s %s", s.Facts().Member.Details["log"], s.Facts().Member.Details["first"])
			}
			_, err := freeAll(ctx, s)
			return err
		}
		w := Cluster(t, 3, a.option(), WithConfig(func(node string, c *gms.Config) { c.Details = map[string][]byte{"first": []byte("of " + node)} }))
		g := w.Node("n2").Group
		must(t, g.SetDetail(t.Context(), "log", []byte("/tx/1")))
		must(t, g.SetDetail(t.Context(), "log", []byte("/tx/2")))
		must(t, g.SetDetail(t.Context(), "other", []byte("x")))
		must(t, g.RemoveDetail(t.Context(), "other"))
		if err := g.SetDetail(t.Context(), "big", make([]byte, 9000)); !errors.Is(err, gms.ErrTooLarge) {
			t.Errorf("a large detail: %v", err)
		}
		w.Await("the details", func() bool {
			m, _ := w.Node("n1").Group.View().Member("n2")
			return string(m.Details["log"]) == "/tx/2" && len(m.Details) == 2
		})
		w.Kill("n2")
		w.AwaitGone("n2")
		awaitRecovered(w)
		if got := <-read; got != "/tx/2 of n2" {
			t.Errorf("the recoverer reads %q", got)
		}
	})
}
