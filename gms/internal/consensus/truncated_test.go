package consensus

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// FIELD.md W2: a log whose last entry was taken back, as after a change of leaders, is opened again, wherever the ends of its
// segments lie.
func TestDiskLogIsOpenedAfterItsEndWasTakenBack(t *testing.T) {
	dir := t.TempDir()
	entry := bytes.Repeat([]byte{7}, MaxEntry)
	store := func(logs raft.LogStore, from, to uint64) {
		t.Helper()
		for i := from; i <= to; i++ {
			if err := logs.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: entry}); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := uint64(0)
	for round := uint64(1); round <= 20; round++ { // a segment takes some 8 entries
		s, err := diskStores{}.open(dir, hclog.NewNullLogger())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got, err := s.logs.LastIndex(); got != last || err != nil {
			t.Fatalf("round %d: the last entry is %d, %v, want %d", round, got, err, last)
		}
		store(s.logs, last+1, last+3)
		last += 3
		if err := s.logs.DeleteRange(last-round%3, last); err != nil {
			t.Fatal(err)
		}
		last -= round%3 + 1
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	if last < 16 {
		t.Errorf("the last entry is %d: no segment has been filled", last)
	}
}

// FIELD.md R7: what bounds a proposal is its caller's context, not how soon Raft takes it: here its disk hangs.
func TestAProposalEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.form("a")
		c.propose(n, "x")
		c.mem["a"].Stall()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.nodes[n].Propose(ctx, []byte("y")); !errors.Is(err, ErrUnknown) || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		c.mem["a"].Resume()
		c.stop()
	})
}
