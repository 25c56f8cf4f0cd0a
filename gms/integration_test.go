package gms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// recoveriesFor lists "component state" of the recoveries of a run.
func recoveriesFor(n *testNode, run string) (list []string) {
	for _, r := range recoveriesOf(n) {
		if r.Run == run {
			list = append(list, r.Component+" "+r.State)
		}
	}
	slices.Sort(list)
	return list
}

// TestPlannedStop: what a leaver still claims is an orphan and is recovered, what it names as settled is not; the rest
// goes on, also when it was the leader.
func TestPlannedStop(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	leader, others := tg.leaderAmong(tg.names...)
	for _, name := range []string{others[0], leader} {
		node := tg.nodes[name]
		_, run := node.Self()
		if _, err := node.Claim(tg.ctx, "work", "item of "+name, 1); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := node.Stop(tg.ctx, "work", "rest"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("the stop of %s took %v", name, took)
		}
		node.router.Stop()
		delete(tg.nodes, name)
		if name == leader {
			break // one of three is left: what it can see is checked after the first comes back
		}
		for _, other := range []string{others[1], leader} {
			seen := tg.nodes[other]
			tg.await(seen, "the recovery of "+name, func() bool { return len(recoveriesFor(seen, run)) > 0 })
			if got := recoveriesFor(seen, run); !slices.Equal(got, []string{"work appointed"}) {
				t.Errorf("%s sees recoveries %v of %s", other, got, name)
			}
			orphans, err := seen.Orphans("work", run)
			if err != nil || len(orphans) != 1 || orphans[0].Item != "item of "+name {
				t.Errorf("%s sees orphans %+v, %v", other, orphans, err)
			}
			tg.await(seen, "the shutdown's signal", func() bool {
				return slices.ContainsFunc(seen.heard(), func(f signals.Facts) bool {
					return f.Kind == signals.PlannedShutdown && f.Member.Node == name
				})
			})
		}
		back := tg.start(name)
		tg.awaitStanding(name)
		tg.await(back, "all members", func() bool { return len(back.View().Members) == 3 })
	}
	left := tg.nodes[others[1]]
	tg.await(left, "the leader's recovery", func() bool {
		return slices.ContainsFunc(recoveriesOf(left), func(r Recovery) bool { return r.Node == leader && r.Component == "work" })
	})
	if len(left.View().Members) != 2 {
		t.Errorf("view %v", viewNames(left.View()))
	}
	next, _ := tg.leaderAmong(others...)
	if next == leader {
		t.Errorf("%s leads though it has stopped", leader)
	}
}

func (n *testNode) heard() []signals.Facts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.signals)
}

// TestCutOff: a follower, then the leader, is cut off from the others. The majority closes its run as lapsed and recovers
// it; the one that is cut off stops starting work at its deadline, recovers nobody, and stands with a new run after the heal.
func TestCutOff(t *testing.T) {
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			tg := formed(t, 3)
			victim, others := tg.leaderAmong(tg.names...)
			if who == "follower" {
				victim, others = others[0], []string{victim, others[1]}
			}
			cutOff(t, tg, victim, others)
		})
	}
}

func cutOff(t *testing.T, tg *testGroup, victim string, others []string) {
	v, m := tg.nodes[victim], tg.nodes[others[0]]
	_, run := v.Self()
	claim, err := v.Claim(tg.ctx, "work", "item", 1)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := v.RunContext()
	before := m.View().Version
	tg.net.cut(victim)
	tg.await(m, "the closing", func() bool {
		_, open := memberIn(m.View(), victim)
		return !open
	})
	if st, _ := v.Standing(); st == Held || st == Suspect {
		t.Errorf("the run is closed and its own lease says %v", st)
	}
	if _, err := v.Claim(tg.ctx, "work", "another", 1); !errors.Is(err, ErrLeaseExpired) && !errors.Is(err, ErrRunClosed) {
		t.Errorf("a claim in the minority: %v", err)
	}
	short, cancel := context.WithTimeout(tg.ctx, 300*time.Millisecond)
	if _, err := v.Cache().Get(short, Key{Component: "work", Key: "k"}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("a read of the present in the minority: %v", err)
	}
	cancel()
	if len(v.View().Members) != 3 || len(recoveriesOf(v)) != 0 || v.View().Version > before {
		t.Errorf("the minority sees %v and recovers %+v", viewNames(v.View()), recoveriesOf(v))
	}
	for _, other := range others {
		n := tg.nodes[other]
		tg.await(n, "the recoveries", func() bool {
			return slices.Equal(recoveriesFor(n, run), []string{"rest appointed", "work appointed"})
		})
		tg.await(n, "the failure's signal", func() bool {
			return slices.ContainsFunc(n.heard(), func(f signals.Facts) bool {
				return f.Kind == signals.FailureNotification && f.Member.Run == run && f.Evidence == signals.Lapsed
			})
		})
	}
	tg.net.cut()
	tg.await(v, "the end of the old run", func() bool { return old.Err() != nil })
	if !errors.Is(context.Cause(old), ErrRunClosed) {
		t.Errorf("the run's context ended with %v", context.Cause(old))
	}
	tg.await(v, "a new run", func() bool { st, _ := v.Standing(); _, r := v.Self(); return st == Held && r != run })
	for _, name := range tg.names {
		n := tg.nodes[name]
		tg.await(n, "one view of all", func() bool {
			return len(n.View().Members) == 3 && n.View().Version == m.View().Version
		})
	}
	if err := v.EndClaim(tg.ctx, claim, signals.Complete); !errors.Is(err, ErrNotHolder) && !errors.Is(err, ErrFenced) {
		t.Errorf("a claim of the closed run is ended: %v", err)
	}
	if fenced, _, err := v.IsFenced(tg.ctx, "work", victim); err != nil || !fenced {
		t.Errorf("the new run is fenced: %v, %v", fenced, err)
	}
	recoverAll(t, tg, run)
}

// recoverAll has whoever is appointed for the run's work recover it: there is exactly one for each component.
func recoverAll(t *testing.T, tg *testGroup, run string) {
	t.Helper()
	any := tg.nodes[tg.names[0]]
	for _, r := range recoveriesOf(any) {
		if r.Run != run {
			continue
		}
		for _, name := range tg.names {
			n := tg.nodes[name]
			if n == nil {
				continue
			}
			_, self := n.Self()
			f, err := n.AcquireFence(tg.ctx, r.Appointment)
			if self != r.Appointee {
				if !errors.Is(err, signals.ErrNotAppointed) {
					t.Errorf("%s acquired the fence of %s: %v", name, r.AppointeeNode, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lease, stop := n.RenewFence(f, func() bool { return true })
			orphans, err := n.Orphans(r.Component, run)
			if err != nil {
				t.Fatal(err)
			}
			if len(orphans) > 0 {
				if err := n.ReleaseFence(tg.ctx, r.Appointment, f.Token); !errors.Is(err, signals.ErrWorkLeft) {
					t.Errorf("released with %d orphans: %v", len(orphans), err)
				}
			}
			for _, o := range orphans {
				c, err := n.Adopt(tg.ctx, r.Appointment, f.Token, o.Item)
				if err != nil || c.Token <= o.Token || c.RoundTrip != o.RoundTrip+1 {
					t.Errorf("adopted %+v from %+v: %v", c, o, err)
				}
				if err := n.EndFencedClaim(tg.ctx, r.Appointment, f.Token, c, signals.Complete); err != nil {
					t.Error(err)
				}
			}
			if lease.Err() != nil {
				t.Errorf("the fence ended: %v", context.Cause(lease))
			}
			if err := n.ReleaseFence(tg.ctx, r.Appointment, f.Token); err != nil {
				t.Error(err)
			}
			stop()
		}
	}
	for name, n := range tg.nodes {
		tg.await(n, "the recoveries' end", func() bool { return len(recoveriesFor(n, run)) == 0 })
		if fenced, _, err := n.IsFenced(tg.ctx, "work", name); err != nil || fenced {
			t.Errorf("%s is fenced: %v, %v", name, fenced, err)
		}
	}
}

// TestRestartOfAll: the state survives, and numbers only grow.
func TestRestartOfAll(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	n := tg.nodes["n1"]
	key := Key{Component: "c", Member: "n1", Key: "k"}
	if _, err := n.Cache().Commit(tg.ctx, Txn{Puts: []Put{{Key: key, Value: []byte("later"), Protocol: Protocol + 1}}}); !errors.Is(err, ErrProtocol) {
		t.Errorf("what not all programs understand was kept: %v", err)
	}
	version, err := n.Cache().Commit(tg.ctx, Txn{Puts: []Put{{Key: key, Value: []byte("v"), Protocol: n.Protocol()}}})
	if err != nil {
		t.Fatal(err)
	}
	view, cluster := n.View().Version, n.ClusterID()
	claim, err := n.Claim(tg.ctx, "work", "item", 1)
	if err != nil {
		t.Fatal(err)
	}
	var stops sync.WaitGroup
	for _, name := range tg.names {
		node := tg.nodes[name]
		delete(tg.nodes, name)
		stops.Go(func() {
			if err := node.Stop(tg.ctx); err != nil {
				t.Error(err)
			}
			node.router.Stop()
		})
	}
	stops.Wait()
	for _, name := range tg.names {
		tg.start(name)
	}
	tg.awaitStanding(tg.names...)
	for _, name := range tg.names {
		node := tg.nodes[name]
		e, err := node.Cache().Get(tg.ctx, key)
		if err != nil || string(e.Value) != "v" || e.Version != version {
			t.Errorf("%s reads %+v, %v", name, e, err)
		}
		tg.await(node, "all members", func() bool { return len(node.View().Members) == 3 })
		if node.View().Version <= view || node.ClusterID() != cluster {
			t.Errorf("%s: view %d after %d, cluster %s after %s", name, node.View().Version, view, node.ClusterID(), cluster)
		}
	}
	again, err := tg.nodes["n2"].Claim(tg.ctx, "work", "other", 1)
	if err != nil || again.Token <= claim.Token {
		t.Errorf("token %d after %d, %v", again.Token, claim.Token, err)
	}
	if _, err := tg.nodes["n2"].Claim(tg.ctx, "work", "item", 1); !errors.Is(err, ErrBusy) {
		t.Errorf("the item of a run that ended: %v", err)
	}
}

// TestWritersOfAllNodes: compare-and-swap lets each increment happen once, reads see every committed write, claims are
// exclusive and tokens grow, over a change of the leader.
func TestWritersOfAllNodes(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	leader, others := tg.leaderAmong(tg.names...)
	const writers, rounds = 8, 15
	key := Key{Component: "c", Key: "counter"}
	var work sync.WaitGroup
	var mu sync.Mutex
	holder := map[string]int{} // item → writer
	var tokens []uint64
	for w := range writers {
		n := tg.nodes[others[w%2]]
		work.Go(func() {
			for i := range rounds {
				mine, err := increment(tg.ctx, n, key)
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				if e, err := n.Cache().Get(tg.ctx, key); err != nil || number(e.Value) < mine {
					t.Errorf("writer %d wrote %d and read %q, %v", w, mine, e.Value, err)
				}
				item := strconv.Itoa(i)
				c, err := claimSoon(tg.ctx, n, item)
				if errors.Is(err, ErrBusy) {
					continue
				}
				mu.Lock()
				if other, taken := holder[item]; taken || err != nil {
					t.Errorf("item %s: writer %d beside %d, %v", item, w, other, err)
				}
				holder[item] = w
				tokens = append(tokens, c.Token)
				mu.Unlock()
			}
		})
	}
	tg.await(tg.nodes[others[0]], "some writes", func() bool {
		e, err := tg.nodes[others[0]].Cache().GetLocal(key)
		return err == nil && number(e.Value) > writers*rounds/4
	})
	tg.stop(leader)
	work.Wait()
	for _, name := range others {
		e, err := tg.nodes[name].Cache().Get(tg.ctx, key)
		if err != nil || number(e.Value) != writers*rounds {
			t.Errorf("%s: counter %q, %v, want %d", name, e.Value, err, writers*rounds)
		}
	}
	slices.Sort(tokens)
	if len(holder) != rounds || len(slices.Compact(tokens)) != rounds {
		t.Errorf("%d items were claimed, under %d tokens", len(holder), len(slices.Compact(tokens)))
	}
	c, err := claimSoon(tg.ctx, tg.nodes[others[0]], "last")
	if err != nil || c.Token <= tokens[len(tokens)-1] {
		t.Errorf("token %d after %d, %v", c.Token, tokens[len(tokens)-1], err)
	}
}

// claimSoon claims; while the leader changes, the lease may be near its end, and nothing new is started.
func claimSoon(ctx context.Context, n *testNode, item string) (signals.Claim, error) {
	for {
		c, err := n.Claim(ctx, "c", item, 1)
		if !errors.Is(err, ErrLeaseExpired) {
			return c, err
		}
		if err := n.AwaitStanding(ctx); err != nil {
			return c, err
		}
	}
}

func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

// increment adds one by compare-and-swap. An unknown outcome cannot come here: the run stays open and ctx is long.
func increment(ctx context.Context, n *testNode, key Key) (int, error) {
	for {
		e, err := n.Cache().Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, fmt.Errorf("read: %w", err)
		}
		next := number(e.Value) + 1
		_, err = n.Cache().Commit(ctx, Txn{
			Conditions: []Condition{VersionIs(key, e.Version)},
			Puts:       []Put{{Key: key, Value: []byte(strconv.Itoa(next))}},
		})
		if errors.Is(err, ErrConflict) {
			continue
		}
		return next, err
	}
}

// TestAFourthNodeReplacesADeadVoter: a newcomer follows first, without a vote, and is promoted when one of the voters is
// gone, which is a voter no more then.
func TestAFourthNodeReplacesADeadVoter(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	_, others := tg.leaderAmong(tg.names...)
	tg.place("n4")
	n4 := tg.start("n4", func(c *Config) { c.Bootstrap = nil })
	tg.awaitStanding("n4")
	votes := func(name string) bool { return slices.Contains(n4.voterNodes(), name) }
	tg.await(n4, "the log", func() bool { return len(n4.View().Members) == 4 && len(n4.voterNodes()) == 3 })
	if votes("n4") {
		t.Error("a newcomer votes beside three voters")
	}
	tg.stop(others[0])
	tg.await(n4, "the vote of the fourth", func() bool { return votes("n4") && !votes(others[0]) })
	if n := len(n4.voterNodes()); n != 3 {
		t.Errorf("%d voters", n)
	}
	tg.stop(others[1]) // two of the three voters are left, one of them the newcomer
	if _, err := claimSoon(tg.ctx, n4, "item"); err != nil {
		t.Errorf("a claim with the newcomer's vote: %v", err)
	}
}

// TestAFailedGroupStandsNoMore: a process whose disk has stalled, or whose replica differs, must end; until it does it
// holds no lease, and the others close its run.
func TestAFailedGroupStandsNoMore(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	_, others := tg.leaderAmong(tg.names...)
	failed, other := tg.nodes[others[0]], tg.nodes[others[1]]
	_, run := failed.Self()
	failed.fail(ErrDiskStalled)
	tg.await(failed, "the end of its standing", func() bool { st, _ := failed.Standing(); return st == Closed })
	if err := failed.AwaitStanding(tg.ctx); !errors.Is(err, ErrDiskStalled) {
		t.Errorf("awaited: %v", err)
	}
	tg.await(other, "the closing", func() bool { return len(other.View().Members) == 2 })
	if got := recoveriesFor(other, run); len(got) != 2 {
		t.Errorf("recoveries %v", got)
	}
	if _, again := failed.Self(); again != "" {
		t.Errorf("a new run %s of a process that must end", again)
	}
}
