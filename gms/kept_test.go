package gms

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestKeptEntriesAreBounded(t *testing.T) {
	var k kept
	for i := uint64(1); i <= keptEntries+10; i++ {
		k.add(keptEntry{before: 2 * (i - 1), index: 2 * i, data: make([]byte, 10)})
	}
	if list, ok := k.since(k.floor, 1<<20); !ok || len(list) != keptEntries || list[0].before != k.floor || k.floor != 20 {
		t.Errorf("%d entries from %d, %v", len(list), k.floor, ok)
	}
	if _, ok := k.since(k.floor-1, 1<<20); ok {
		t.Error("entries that are gone were given")
	}
	if list, _ := k.since(100, 35); len(list) != 3 || list[0].index != 102 {
		t.Errorf("%d entries within the limit", len(list))
	}
	if list, _ := k.since(100, 1); len(list) != 1 {
		t.Errorf("%d entries, one is larger than the limit", len(list))
	}
	k.add(keptEntry{index: 1 << 20, data: make([]byte, keptEntryBytes)})
	if len(k.list) != 1 || k.size != keptEntryBytes {
		t.Errorf("%d entries of %d bytes", len(k.list), k.size)
	}
	k.restored(1 << 21)
	if list, ok := k.since(1<<21, 100); !ok || len(list) != 0 {
		t.Errorf("after a snapshot: %v, %v", list, ok)
	}
	if _, ok := k.since(1<<20, 100); ok {
		t.Error("entries from before the snapshot were given")
	}
}

func encoded(t *testing.T, c *wire.Command) []byte {
	t.Helper()
	data, err := proto.Marshal(&wire.Entry{Version: wire.Protocol, Commands: []*wire.Command{c}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What a feeder brings and what the own log brings make one history, whatever comes twice.
func TestReplicaIsFedThenFollowsItsLog(t *testing.T) {
	entries := []*wire.FedEntry{
		{Before: 0, Index: 2, Data: encoded(t, formCommand())},
		{Before: 2, Index: 3, Data: encoded(t, openCommand(1, "n1", 0, "c"))},
		{Before: 3, Index: 7, Data: encoded(t, openCommand(2, "n2", 0, "c"))},
		{Before: 7, Index: 8, Data: encoded(t, openCommand(3, "n3", 0, "c"))},
	}
	g := newLooseGroup(t)
	r := g.rep
	r.beginFeed()
	feed := func(e *wire.FedEntry, want error) {
		t.Helper()
		if err := r.feedEntry(e); !errors.Is(err, want) {
			t.Fatalf("entry %d: %v, want %v", e.GetIndex(), err, want)
		}
	}
	feed(entries[0], nil)
	feed(entries[0], nil)
	feed(entries[2], errFeedGap)
	feed(entries[1], nil)
	feed(&wire.FedEntry{Before: 1, Index: 4}, ErrDiverged)
	early := g.snapshot()
	feed(entries[2], nil)
	before := g.snapshot()

	// The own log begins where the home's is: behind.
	if err := r.Restore(bytes.NewReader(early)); err != nil || !bytes.Equal(g.snapshot(), before) {
		t.Fatalf("an old snapshot of the log changed the state: %v", err)
	}
	for _, e := range entries[1:3] {
		if a := r.Apply(e.GetIndex(), e.GetData()); a != nil {
			t.Errorf("entry %d, known already, was answered with %v", e.GetIndex(), a)
		}
	}
	if !bytes.Equal(g.snapshot(), before) {
		t.Fatal("entries that came twice changed the state")
	}
	r.Apply(entries[3].GetIndex(), entries[3].GetData())
	feed(&wire.FedEntry{Before: 8, Index: 9, Data: encoded(t, closeCommand(3, "n3", wire.Evidence_EVIDENCE_LAPSED))}, errOwnLog)
	if err := r.feedSnapshot(before); !errors.Is(err, errOwnLog) {
		t.Errorf("a feeder's snapshot beside the own log: %v", err)
	}
	r.read(func(m *state.Machine) {
		if m.Index() != 8 || len(m.View().Members) != 3 {
			t.Errorf("index %d, view %+v", m.Index(), m.View())
		}
	})
}

// A consumer that takes nothing is cut off: one message waits for it, no more.
func TestSlowConsumerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := feeder{stream: stuckStream{ctx: ctx}, out: make(chan *wire.FollowReply), failed: make(chan error, 1)}
		go f.send()
		begun, given := time.Now(), 0
		var err error
		for err == nil {
			if err = f.give(ctx, &wire.FollowReply{}); err == nil {
				given++
			}
		}
		if !errors.Is(err, errSlowConsumer) || given != 1 || time.Since(begun) != feedPatient {
			t.Errorf("%v after %v and %d messages", err, time.Since(begun), given)
		}
		cancel()
		synctest.Wait()
		if err := f.give(t.Context(), &wire.FollowReply{}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the stream: %v", err)
		}
	})
}
