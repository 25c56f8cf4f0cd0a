package consensus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
