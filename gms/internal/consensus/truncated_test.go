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

// FIELD.md W2: a log whose end was taken back, as after a change of leaders, is opened again and read whole, wherever the
// ends of its segments lie: small entries, of which all are in one segment, and large ones, of which it takes some 8.
func TestDiskLogIsReadAfterItsEndWasTakenBack(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "large": MaxEntry} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var want []uint64 // the round in which each entry was stored, from index 1 on
			for round := uint64(1); round <= 20; round++ {
				s, err := diskStores{}.open(dir, hclog.NewNullLogger(), nil)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				readWhole(t, s.logs, want, size)
				for range 3 {
					want = append(want, round)
					if err := s.logs.StoreLog(&raft.Log{Index: uint64(len(want)), Term: round, Data: bytes.Repeat([]byte{byte(round)}, size)}); err != nil {
						t.Fatal(err)
					}
				}
				last := uint64(len(want))
				if err := s.logs.DeleteRange(last-round%3, last); err != nil {
					t.Fatal(err)
				}
				want = want[:last-round%3-1]
				readWhole(t, s.logs, want, size)
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
			}
			if len(want) < 16 {
				t.Errorf("the last entry is %d: no segment has been filled", len(want))
			}
		})
	}
}

// readWhole compares a log with the terms of its entries, from index 1 on.
func readWhole(t *testing.T, logs raft.LogStore, want []uint64, size int) {
	t.Helper()
	if last, err := logs.LastIndex(); last != uint64(len(want)) || err != nil {
		t.Fatalf("the last entry is %d, %v, want %d", last, err, len(want))
	}
	for i, term := range want {
		var l raft.Log
		if err := logs.GetLog(uint64(i+1), &l); err != nil {
			t.Fatalf("entry %d of %d: %v", i+1, len(want), err)
		}
		if l.Term != term || !bytes.Equal(l.Data, bytes.Repeat([]byte{byte(term)}, size)) {
			t.Fatalf("entry %d has term %d and %d bytes, want term %d and %d bytes", i+1, l.Term, len(l.Data), term, size)
		}
	}
	if err := logs.GetLog(uint64(len(want)+1), &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Fatalf("behind the last entry: %v", err)
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
