package consensus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

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

// A round that began under a configuration with two dead voters of four counts by the one of three that one of the dead was
// removed from: the log goes on, so its leader must be able to prove itself.
func TestVerifyCountsByThePresentConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []string{"a", "b", "c", "d"}
		c := newCluster(t)
		defer c.stop()
		leader := c.form(all...)
		c.applied(c.propose(leader, "x"), all...)
		n, rest := c.nodes[leader], others(all, leader)
		var gone string
		for _, s := range n.Configuration().Servers {
			if s.Address == rest[0] {
				gone = s.ID
			}
		}
		for _, dead := range rest[:2] {
			c.wires.hold(leader, dead)
			c.wires.hold(dead, leader)
			defer c.wires.release(leader, dead)
			defer c.wires.release(dead, leader)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		proved := make(chan error, 1)
		go func() { proved <- n.Verify(ctx) }()
		synctest.Wait()
		if _, err := n.Remove(t.Context(), gone, 0); err != nil {
			t.Fatal(err)
		}
		if err := <-proved; err != nil {
			t.Errorf("the round during which the voter was removed: %v", err)
		}
		if err := n.Verify(ctx); err != nil {
			t.Errorf("the next one: %v", err)
		}
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
				advance(50 * time.Millisecond) // notices come in between
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
