package consensus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var abc = []string{"a", "b", "c"}

func TestThreeFormProposeAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer func() { c.stop() }()
		leader := c.form(abc...)
		last := c.propose(leader, "x")
		last = max(last, c.propose(leader, "y"))
		c.applied(last, abc...)
		for _, name := range abc {
			if got := c.tapes[name].String(); got != "x,y" {
				t.Errorf("node %s has applied %q", name, got)
			}
		}
		c.stop()
		for _, name := range abc {
			c.start(name)
		}
		leader = c.leader(abc...)
		last = c.propose(leader, "z")
		c.applied(last, abc...)
		if got := c.tapes[leader].String(); got != "x,y,z" {
			t.Errorf("after the restart the leader has applied %q", got)
		}
	})
}

// A follower must not wait for CommitTimeout to hear of a commit that nothing follows; nor must one that came to hold the
// entry only after it was committed.
func TestIsolatedCommitReachesFollowersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		start := time.Now()
		last := c.propose(leader, "x")
		c.applied(last, abc...)
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("followers applied after %v", took)
		}
		slow := others(abc, leader)[0]
		c.wires.hold(leader, slow)
		last = c.propose(leader, "y")
		c.applied(last, others(abc, slow)...)
		c.wires.release(leader, slow)
		start = time.Now()
		c.applied(last, slow)
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("the slow follower applied after %v", took)
		}
	})
}

// While proposals follow one another a follower gets a notice now and then; one that waits for an entry gets its own at once.
func TestWhoWaitsForAnEntryHearsOfItsCommitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		c.applied(c.propose(leader, "x"), abc...)
		n, waits := c.nodes[leader], others(abc, leader)[0]
		n.proposals.Add(1) // as if another one were under way
		defer n.proposals.Add(-1)
		start := time.Now()
		last := c.propose(leader, "y")
		n.Hurry(waits, last)
		c.applied(last, waits)
		if took := time.Since(start); took >= noticePause {
			t.Errorf("applied after %v", took)
		}
	})
}

func TestElectNowElectsTheWantedOneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		c.applied(c.propose(leader, "x"), abc...)
		c.nodes[leader].Stop()
		rest := others(abc, leader)
		for _, wanted := range rest { // the second one takes over from the first, which lives
			settle()
			start := time.Now()
			if err := c.nodes[wanted].ElectNow(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.leads(wanted)
			if took := time.Since(start); took > 50*time.Millisecond {
				t.Errorf("%s led after %v", wanted, took)
			}
			c.leader(rest...)
			c.propose(wanted, "y")
		}
	})
}

// A voter that was away for long comes back without costing the leader its place.
func TestLongDeadVoterComesBackQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer func() { c.stop() }()
		leader := c.form(abc...)
		away := others(abc, leader)[0]
		c.nodes[away].Stop()
		before, _ := c.nodes[leader].Watch()
		var last uint64
		for i := range 50 {
			last = c.propose(leader, fmt.Sprint(i))
			advance(time.Minute)
		}
		c.start(away)
		c.applied(last, abc...)
		advance(time.Minute)
		if after, _ := c.nodes[leader].Watch(); after != before {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

func TestNonvoterIsPromotedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		last := c.propose(leader, "x")
		l, d := c.nodes[leader], c.start("d")
		if err := d.ElectNow(t.Context()); !errors.Is(err, ErrNotVoter) {
			t.Errorf("a node without a configuration stands for election: %v", err)
		}
		seen := l.Configuration().Index
		if _, err := l.AddNonvoter(t.Context(), serverID("d"), "d", seen); err != nil {
			t.Fatal(err)
		}
		c.applied(last, "d")
		if err := d.ElectNow(t.Context()); !errors.Is(err, ErrNotVoter) {
			t.Errorf("a node without a vote stands for election: %v", err)
		}
		if _, err := l.Promote(t.Context(), serverID("d"), "d", seen); !errors.Is(err, ErrStale) {
			t.Errorf("a change upon an old configuration: %v", err)
		}
		if _, err := d.AddNonvoter(t.Context(), serverID("e"), "e", 0); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a change by a follower: %v", err)
		}
		synctest.Wait() // until its answer has arrived
		peer := l.Stats().Peers[serverID("d")]
		if peer.Match < last || peer.LastContact.IsZero() {
			t.Errorf("the leader's note of the newcomer is %+v, want a match of at least %d", peer, last)
		}
		index, err := l.Promote(t.Context(), serverID("d"), "d", l.Configuration().Index)
		if err != nil {
			t.Fatal(err)
		}
		got := l.Configuration()
		if got.Index != index || len(got.Servers) != 4 || !got.Servers[3].Voter {
			t.Errorf("the configuration is %+v", got)
		}
		if _, err := l.Demote(t.Context(), serverID("d"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Remove(t.Context(), serverID("d"), 0); err != nil {
			t.Fatal(err)
		}
		if got := l.Configuration(); len(got.Servers) != 3 {
			t.Errorf("the configuration is %+v", got)
		}
		// It may be added again without a restart.
		if _, err := l.AddNonvoter(t.Context(), serverID("d"), "d", 0); err != nil {
			t.Fatal(err)
		}
		c.applied(c.propose(leader, "y"), "d")
	})
}

func TestLeaderRemovesItselfUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		old := c.form(abc...)
		rest := others(abc, old)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 1000 {
				if _, _, err := c.nodes[old].Propose(context.Background(), []byte(fmt.Sprint(i))); err != nil {
					return
				}
			}
		}()
		if _, err := c.nodes[old].Remove(t.Context(), serverID(old), 0); err != nil {
			t.Fatal(err)
		}
		<-done
		next := c.leader(rest...)
		c.applied(c.propose(next, "end"), rest...)
		if got := c.nodes[old].Stats().State; got != "Follower" {
			t.Errorf("the removed node is %s", got)
		}
		if a, b := c.tapes[rest[0]].String(), c.tapes[rest[1]].String(); a != b {
			t.Errorf("the replicas differ:\n%s\n%s", a, b)
		}
	})
}

func TestTransferLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		old := c.form(abc...)
		rest := others(abc, old)
		c.propose(old, "x")
		if err := c.nodes[old].TransferLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.nodes[old].Stop()
		start := time.Now()
		c.propose(c.leader(rest...), "y")
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the others needed %v", took)
		}
	})
}

func TestSnapshotRestoreAndInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer func() { c.stop() }()
		c.edit = func(cfg *Config) {
			cfg.SnapshotThreshold, cfg.TrailingLogs = 20, 5
			cfg.Timing.SnapshotInterval = 100 * time.Millisecond
		}
		leader := c.form(abc...)
		var last uint64
		for i := range 100 {
			last = c.propose(leader, fmt.Sprint(i))
		}
		advance(time.Second)
		if s := c.nodes[leader].Stats(); s.Snapshot < last || s.Commit < last || s.Applied != last {
			t.Fatalf("no snapshot of index %d: %+v", last, s)
		}
		want := c.tapes[leader].String()
		c.start("d")
		if _, err := c.nodes[leader].AddNonvoter(t.Context(), serverID("d"), "d", 0); err != nil {
			t.Fatal(err)
		}
		c.applied(last, "d")
		if got := c.tapes["d"]; got.String() != want || got.restores() != 1 {
			t.Errorf("after %d restores the newcomer has %q", got.restores(), got)
		}
		if got := c.nodes["d"].Applied(); got != last {
			t.Errorf("the newcomer says that it has applied %d, not %d", got, last)
		}
		c.stop()
		for _, name := range append([]string{"d"}, abc...) {
			n := c.start(name)
			if got := n.Applied(); c.tapes[name].restores() != 1 || got == 0 || got > last {
				t.Errorf("node %s has applied %d after its start, by %d restores", name, got, c.tapes[name].restores())
			}
		}
		c.applied(c.propose(c.leader(abc...), "end"), "a", "b", "c", "d")
		for name, tape := range c.tapes {
			if got := tape.String(); got != want+",end" {
				t.Errorf("node %s has %q", name, got)
			}
		}
	})
}

// A leader that Raft knew before the drain began is known to the group too: nobody announces it again. (A follower that came
// back had its leader's first call in that moment, and told its node of none for as long as the leader lasted.)
func TestALeaderKnownBeforeIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form("a", "b", "c")
		for _, name := range []string{"a", "b", "c"} {
			late, stopping, done := newLeadership(), make(chan struct{}), make(chan struct{})
			go func() {
				late.drain(c.nodes[name].peek(), nil, stopping)
				close(done)
			}()
			synctest.Wait()
			if now, _ := late.get(); now.Address != leader {
				t.Errorf("%s knows %q, %s leads", name, now.Address, leader)
			}
			close(stopping)
			<-done
		}
	})
}

func TestChangesTellLostAndRegained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		before, change := c.nodes[leader].Watch()
		other := others(abc, leader)[0]
		for _, name := range []string{other, leader} {
			settle()
			if err := c.nodes[name].ElectNow(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.leads(name)
			synctest.Wait()
		}
		select {
		case <-change:
		default:
			t.Error("no change was told")
		}
		after, _ := c.nodes[leader].Watch()
		if !before.Leads || !after.Leads || after.Changes < before.Changes+2 || after.Term <= before.Term {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}
