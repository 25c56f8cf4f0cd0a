package gmstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// 30 % of all datagrams are lost for a minute, in both directions between all members, and with the same probability each
// write to a stream comes a retransmission late: nobody is closed.
func TestLossClosesNobody(t *testing.T) {
	for _, p := range []gms.Profile{gms.ProfileLAN, gms.ProfilePatient} {
		t.Run(string(p), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 5, a.option(), profile(p))
				w.Weather(Link{Loss: 0.3, Duplicate: 0.05, Jitter: 2 * time.Millisecond})
				suspected := 0
				for range 60 {
					Advance(time.Second)
					for _, n := range w.Living() {
						if !n.Standing() {
							t.Logf("%v: %s has no lease", time.Since(w.began), n.Name)
						}
					}
				}
				suspected = len(a.signalsOf("n1", signals.FailureSuspected))
				w.Weather(Link{})
				w.AwaitView(w.Names()...)
				once(w, a)
				t.Logf("%d suspicions in a minute", suspected)
			})
		})
	}
}

// Without a majority nothing is granted and leases run out; with it, all returns.
func TestQuorumLostAndRegained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		survivor := w.Others(w.Leader())[0]
		n := w.Node(survivor)
		dead := w.Others(survivor)
		w.Kill(dead...)
		begun := time.Now()
		w.Await("the end of the lease", func() bool { return !n.Standing() })
		if took, ttl := time.Since(begun), 3*time.Second; took > ttl {
			t.Errorf("the survivor held its lease for %v", took)
		}
		Advance(time.Minute)
		if _, err := n.Group.Claim(t.Context(), "work", "item", 1); !errors.Is(err, gms.ErrLeaseExpired) {
			t.Errorf("a claim without a lease: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Group.Cache().Get(ctx, gms.Key{Component: "work", Key: "k"}); !errors.Is(err, gms.ErrNoQuorum) {
			t.Errorf("a read without a quorum: %v", err)
		}
		if got := a.signalsOf(survivor, signals.FailureNotification, signals.FailureRecovery); len(got) > 0 {
			t.Errorf("the survivor heard %+v", got)
		}
		w.Start(dead[0])
		t.Logf("two stand again after %v", w.AwaitView(survivor, dead[0]))
		w.Start(dead[1])
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a, dead...)
		claim, err := n.Group.Claim(t.Context(), "work", "item", 1)
		if err != nil || claim.Token == 0 {
			t.Errorf("a claim with a quorum: %+v, %v", claim, err)
		}
	})
}

// Cuts in one direction, of the leader and of a follower: the group stays or becomes one, and the living are recovered at
// most as runs that had lost their lease.
func TestOneWayCuts(t *testing.T) {
	for _, who := range []string{"leader sends nothing", "leader hears nothing", "follower sends nothing", "follower hears nothing", "leader and one follower"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 4, a.option())
				leader := w.Leader()
				follower := w.Others(leader)[0]
				hurt := follower
				switch who {
				case "leader sends nothing":
					hurt = leader
					w.CutOneWay(leader)
				case "leader hears nothing":
					hurt = leader
					deafen(w, leader)
				case "follower sends nothing":
					w.CutOneWay(follower)
				case "follower hears nothing":
					deafen(w, follower)
				case "leader and one follower":
					w.CutOneWay(leader, follower)
				}
				Advance(30 * time.Second)
				for _, name := range w.Others(hurt) {
					if n := w.Node(name); !n.Standing() {
						t.Errorf("%s does not stand", name)
					}
				}
				w.Heal()
				healed := w.AwaitView(w.Names()...)
				awaitRecovered(w)
				for _, name := range w.Others(hurt) {
					if c := w.observer.closed(name); len(c) > 0 {
						t.Errorf("%s was closed: %+v", name, c)
					}
				}
				t.Logf("%s was closed %d times; together again %v after the heal", hurt, len(w.observer.closed(hurt)), healed)
			})
		})
	}
}

// deafen cuts what the others send to a node.
func deafen(w *World, name string) {
	for _, other := range w.Others(name) {
		w.CutOneWay(other, name)
	}
}

// A member that cannot reach the leader, while both reach a third: it renews through the third, and nobody is closed.
func TestBridgeKeepsAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		leader := w.Leader()
		far, bridge := w.Others(leader)[0], w.Others(leader)[1]
		w.Bridge(bridge, []string{leader}, []string{far})
		Advance(time.Minute)
		w.Heal()
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
		once(w, a)
	})
}

// All nodes die together and come back: open recoveries go on, and every run is recovered once.
func TestAllDieAndComeBack(t *testing.T) {
	for round := range 5 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 3, a.option())
				if _, err := w.Node("n2").Group.Claim(t.Context(), "work", "item", 1); err != nil {
					t.Fatal(err)
				}
				w.Kill(w.Names()...)
				Advance(time.Hour)
				for _, name := range w.Names() {
					w.Start(name)
				}
				t.Logf("all stand again after %v", w.AwaitView(w.Names()...))
				awaitRecovered(w)
				once(w, a, w.Names()...)
				if list := w.Living()[0].Group.Claims(); len(list) > 0 {
					t.Errorf("claims left: %+v", list)
				}
			})
		})
	}
}

// All nodes stop as planned and come back, in another order.
func TestAllStopAndComeBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newApp("work")
		w := Cluster(t, 3, a.option())
		for _, name := range w.Names() {
			w.Stop(name, "work")
		}
		Advance(time.Hour)
		for _, name := range []string{"n3", "n1", "n2"} {
			w.Start(name)
			Advance(10 * time.Second)
		}
		w.AwaitView(w.Names()...)
		awaitRecovered(w)
	})
}

// All nodes stop as planned at one moment and come back at another: no home is refused, the group goes on.
func TestAllStopTogetherAndComeBack(t *testing.T) {
	for round := range 10 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 3+round%3, a.option())
				if _, err := w.Node("n1").Group.Claim(t.Context(), "work", "item", 1); err != nil {
					t.Fatal(err)
				}
				cluster := w.Node("n1").Group.ClusterID()
				begun := time.Now()
				w.StopTogether(w.Names()...)
				stopped := time.Since(begun)
				for _, name := range w.Names() {
					w.Start(name)
				}
				t.Logf("all had stopped after %v, and stand again after %v", stopped, w.AwaitView(w.Names()...))
				awaitRecovered(w)
				if got := w.Node("n1").Group.ClusterID(); got != cluster {
					t.Errorf("cluster %s, before %s", got, cluster)
				}
				if list := w.Living()[0].Group.Claims(); len(list) > 0 {
					t.Errorf("claims left: %+v", list)
				}
			})
		})
	}
}

// A disk that does not answer any more makes its node silent: the others elect a leader, the group of the node fails, and
// its work is recovered once.
func TestStalledDisk(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := newApp("work")
				w := Cluster(t, 3, a.option())
				name := w.Leader()
				if who == "follower" {
					name = w.Others(name)[0]
				}
				n, rest := w.Node(name), w.Others(name)
				w.StallDisk(name)
				writing := w.Node(rest[0]).Group
				go func() { _ = writing.SetReady(context.Background(), true) }() // something to write
				took := w.Await("the stall to be noticed", func() bool { return errors.Is(n.Group.Err(), gms.ErrDiskStalled) })
				silent := took + w.AwaitView(rest...)
				if n.Standing() {
					t.Errorf("%s holds a lease", name)
				}
				w.Kill(name)
				awaitRecovered(w)
				once(w, a, name)
				w.Start(name)
				w.AwaitView(w.Names()...)
				awaitRecovered(w)
				t.Logf("noticed after %v, closed after %v", took, silent)
			})
		})
	}
}
