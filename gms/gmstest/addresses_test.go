package gmstest

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// R20: members come back with new addresses, one, or a majority at once, or all: addresses are heard by gossip, so nobody has
// to change the configuration of the log, and nobody is refused.
func TestAddressesChange(t *testing.T) {
	for _, who := range []struct {
		name  string
		moves []string
		all   bool // are down before the first comes back
	}{
		{"one", []string{"n2"}, false},
		{"a majority at once", []string{"n1", "n2", "n4"}, false},
		{"all", []string{"n1", "n2", "n3", "n4", "n5"}, true},
		{"a majority while all are down", []string{"n1", "n2"}, true},
	} {
		t.Run(who.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 5, a.option(), followers(1))
				awaitVoters(w, 3)
				_, err := w.Node("n2").Group.Claim(t.Context(), "work", "item", 1)
				must(t, err)
				cluster := w.Node("n1").Group.ClusterID()
				Advance(time.Second) // the homes remember
				if who.all {
					w.Kill(w.Names()...)
				} else {
					w.Kill(who.moves...)
				}
				Advance(10 * time.Minute)
				for _, name := range who.moves {
					w.Move(name)
				}
				for _, name := range w.Names() {
					if !w.Node(name).Alive() {
						w.Start(name)
					}
				}
				took := w.AwaitView(w.Names()...)
				if took > 5*time.Second {
					t.Errorf("together after %v", took)
				}
				awaitRecovered(w)
				awaitVoters(w, 3)
				for _, n := range w.Living() {
					if n.Group.ClusterID() != cluster {
						t.Errorf("%s is of another group", n.Name)
					}
				}
				if list := w.Node("n3").Group.Claims(); len(list) > 0 {
					t.Errorf("claims left: %+v", list)
				}
				t.Logf("together after %v", took)
			})
		})
	}
}

// M5: a partition that outlasts the time for which gossip talks to the dead heals by itself, from what the log and the homes
// know: there are no seeds.
func TestLongPartitionHeals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		seeds := true
		w := Cluster(t, 5, a.option(), WithConfig(func(_ string, c *gms.Config) {
			if !seeds {
				c.Seeds = nil
			}
		}))
		Advance(time.Second) // the homes remember
		seeds = false
		w.StopTogether(w.Names()...)
		for _, name := range w.Names() {
			w.Start(name)
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		w.Partition([]string{"n1", "n2"}, []string{"n3", "n4", "n5"})
		Advance(10 * time.Minute)
		w.Heal()
		took := w.AwaitView(w.Names()...)
		if took > 8*time.Second { // most of it until the next round of joining
			t.Errorf("healed after %v", took)
		}
		awaitRecovered(w)
		t.Logf("healed after %v", took)
	})
}

// R26: a voter that was dead for long comes back and starts no election: the leader and its term stay.
func TestLongDeadVoterComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		leader := w.Leader()
		victim := w.Others(leader)[0]
		w.Kill(victim)
		Advance(30 * time.Minute)
		before := w.Node(leader).Group.Epoch()
		a.forget()
		w.Start(victim)
		w.AwaitView(w.Names()...)
		Advance(time.Minute)
		if w.Leader() != leader || w.Node(leader).Group.Epoch() != before {
			t.Errorf("%s leads, before %s", w.Leader(), leader)
		}
		if heard := a.signalsOf(leader, signals.GroupLeadershipNotification); len(heard) > 0 {
			t.Errorf("leaders changed: %+v", heard)
		}
		awaitRecovered(w)
		once(w, a, victim)
	})
}
