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

// A follower must not wait for CommitTimeout to hear of a commit that nothing follows.
func TestIsolatedCommitReachesFollowersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		start := time.Now()
		last := c.propose(leader, "x")
		c.applied(last, abc...)
		if took := time.Since(start); took > 20*time.Millisecond {
			t.Errorf("followers applied after %v", took)
		}
	})
}

// Under load barriers would double the log.
func TestBusyLogHasNoBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		first := c.propose(leader, "0")
		var last uint64
		for i := range 200 {
			last = c.propose(leader, fmt.Sprint(i))
		}
		c.applied(last, abc...)
		if extra := last - first - 200; extra > 5 {
			t.Errorf("200 entries brought %d entries of Raft's own", extra)
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

func TestStalledDiskMakesSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		stalled := make(chan error, 3)
		c.edit = func(cfg *Config) { cfg.OnStall = func(err error) { stalled <- err } }
		leader := c.form(abc...)
		c.applied(c.propose(leader, "x"), abc...)
		rest := others(abc, leader)

		c.mem[leader].Stall()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		lost := make(chan error, 1)
		go func() {
			_, _, err := c.nodes[leader].Propose(ctx, []byte("lost?"))
			lost <- err
		}()
		if err := <-stalled; !errors.Is(err, ErrDiskStalled) {
			t.Errorf("OnStall got %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the stall was noticed after %v", took)
		}
		next := c.leader(rest...) // fails the test when the old leader goes on sending heartbeats
		c.applied(c.propose(next, "y"), rest...)
		if err := <-lost; !errors.Is(err, ErrUnknown) {
			t.Errorf("the proposal that hangs in the disk ended with %v", err)
		}

		// The disk comes back, the node does not.
		c.mem[leader].Resume()
		advance(10 * time.Second)
		if got := c.tapes[leader].String(); got != "x" {
			t.Errorf("the silent node has applied %q", got)
		}
		c.stop()
	})
}

// The process must be able to end although a write hangs for ever.
func TestStopDoesNotWaitForStalledDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		stalled := make(chan error, 1)
		c.edit = func(cfg *Config) { cfg.OnStall = func(err error) { stalled <- err } }
		c.form("a")
		c.mem["a"].Stall()
		go func() { _, _, _ = c.nodes["a"].Propose(context.Background(), []byte("x")) }()
		<-stalled
		start := time.Now()
		c.nodes["a"].Stop()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Stop took %v", took)
		}
		c.mem["a"].Resume() // lets the goroutines of the bubble end
	})
}

// The disk may also hang only while Stop is under way.
func TestDiskThatStallsDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.form("a")
		c.mem["a"].Stall()
		go func() { _, _, _ = c.nodes["a"].Propose(context.Background(), []byte("x")) }()
		synctest.Wait()
		start := time.Now()
		c.nodes["a"].Stop()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("Stop took %v", took)
		}
		c.mem["a"].Resume()
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

// A heartbeat that left before the call proves nothing about the time after it, even when its answer arrives later.
func TestVerifyNeedsCallsThatBeganAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		rest := others(abc, leader)
		c.applied(c.propose(leader, "x"), abc...)
		n := c.nodes[leader]
		if err := n.Verify(t.Context()); err != nil {
			t.Fatalf("with all links whole: %v", err)
		}

		for _, o := range rest { // answers stay on the way, each peer has a heartbeat under way
			c.wires.hold(o, leader)
		}
		advance(100 * time.Millisecond)
		for _, o := range rest { // and now the leader is cut off
			c.wires.hold(leader, o)
		}
		library, ours := make(chan error, 1), make(chan error, 1)
		go func() { library <- n.raft.VerifyLeader().Error() }()
		go func() { ours <- n.Verify(context.Background()) }()
		synctest.Wait()
		for _, o := range rest {
			c.wires.release(o, leader)
		}
		if err := <-library; err != nil {
			t.Errorf("the library's own check no longer believes old answers (%v): Verify may become simpler", err)
		}
		if err := <-ours; !errors.Is(err, ErrNotLeader) {
			t.Errorf("a leader that was cut off before the call was proven: %v", err)
		}
		for _, o := range rest {
			c.wires.release(leader, o)
		}
		c.leader(abc...)
	})
}

// Callers that come while a round is under way must not share it.
func TestVerifyAfterIsolationIsNotSharedWithOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		rest := others(abc, leader)
		n := c.nodes[leader]
		if err := n.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, o := range rest {
			c.wires.hold(o, leader)
		}
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- n.Verify(context.Background()) }()
		advance(100 * time.Millisecond) // every peer got, and answers, a heartbeat that began after the first call
		for _, o := range rest {
			c.wires.hold(leader, o)
		}
		go func() { second <- n.Verify(context.Background()) }()
		synctest.Wait()
		for _, o := range rest {
			c.wires.release(o, leader)
		}
		if err := <-first; err != nil {
			t.Errorf("the call from before the isolation: %v", err)
		}
		if err := <-second; !errors.Is(err, ErrNotLeader) {
			t.Errorf("the call from after the isolation: %v", err)
		}
		for _, o := range rest {
			c.wires.release(leader, o)
		}
		c.leader(abc...)
	})
}

func TestDeposedLeadersProposalIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		old := c.form(abc...)
		rest := others(abc, old)
		c.applied(c.propose(old, "x"), abc...)
		for _, o := range rest {
			c.wires.hold(o, old)
			c.wires.hold(old, o)
		}
		_, _, err := c.nodes[old].Propose(context.Background(), []byte("lost"))
		if !errors.Is(err, ErrUnknown) || errors.Is(err, ErrNotLeader) {
			t.Errorf("a proposal that was logged and not committed: %v", err)
		}
		_, _, err = c.nodes[old].Propose(context.Background(), []byte("refused"))
		if !errors.Is(err, ErrNotLeader) || errors.Is(err, ErrUnknown) {
			t.Errorf("a proposal to a node that has stepped down: %v", err)
		}
		if _, err := c.nodes[old].ReadIndex(context.Background()); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a read index from a node that has stepped down: %v", err)
		}
		next := c.leader(rest...)
		c.propose(next, "y")
		for _, o := range rest {
			c.wires.release(o, old)
			c.wires.release(old, o)
		}
		next = c.leader(abc...)
		c.applied(c.propose(next, "z"), abc...)
		if got := c.tapes[old].String(); got != "x,y,z" {
			t.Errorf("the deposed leader has applied %q", got)
		}
	})
}

func TestReadIndexCoversEarlierAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.stop()
		leader := c.form(abc...)
		for i := range 20 {
			wrote := c.propose(leader, fmt.Sprint(i))
			if i%5 == 0 {
				advance(50 * time.Millisecond) // barriers come in between, which no FSM sees
			}
			read, err := c.nodes[leader].ReadIndex(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if read < wrote {
				t.Fatalf("read index %d is before the answered entry %d", read, wrote)
			}
			c.applied(read, abc...)
		}
		next := others(abc, leader)[0]
		settle()
		if err := c.nodes[next].ElectNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.leads(next)
		read, err := c.nodes[next].ReadIndex(t.Context()) // in a new term, with no entry of anybody's
		if err != nil {
			t.Fatal(err)
		}
		c.applied(read, abc...)
		if got := c.nodes[next].Applied(); read != got {
			t.Errorf("read index %d, applied %d", read, got)
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
