package gms

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A member that does not read what it is answered holds up nobody else's lease, and is answered again once it reads.
func TestWhoDoesNotReadHoldsUpNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		ctx, cancel := context.WithCancel(context.Background())
		s := &upStream{ctx: rpc.WithPeer(ctx, rpc.Peer{Node: "n2"}), up: make(chan *wire.SessionUp, 200), down: make(chan *wire.SessionDown)}
		renewal := func(seq uint64) *wire.Renewal { return &wire.Renewal{Run: runOf(2).Bytes(), Seq: seq} }
		done := make(chan error, 1)
		go func() { done <- handler{g: x.h.Group}.attended(s, x.leading, runOf(2), renewal(1)) }()
		for seq := range uint64(200) {
			s.up <- &wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: renewal(seq + 2)}}
			pass(time.Millisecond)
		}
		if r := answered(x.ask(3, 1)); !r.GetAcknowledged() {
			t.Errorf("another run: %v", r)
		}
		for read := true; read; { // until all that was kept for it is read: whatever is answered beyond that is lost
			select {
			case <-s.down:
			case <-time.After(time.Second):
				read = false
			}
		}
		s.up <- &wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: renewal(1000)}}
		last := uint64(0)
		for last != 1000 {
			select {
			case m := <-s.down:
				last = m.GetAck().GetSeq()
			case <-time.After(time.Minute):
				t.Fatalf("not answered any more, last %d", last)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}
