package gms

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// settle brings a loose group to three open runs, 1 to 3 of n1 to n3, that recover component c.
func (g *looseGroup) settle() {
	g.must(formCommand())
	for n := byte(1); n <= 3; n++ {
		g.must(openCommand(n, "n"+string('0'+n), 0, "c"))
	}
}

func (g *looseGroup) snapshot() []byte {
	g.t.Helper()
	w, err := g.rep.Snapshot()
	if err != nil {
		g.t.Fatal(err)
	}
	var b bytes.Buffer
	n, err := w.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		g.t.Fatalf("%d bytes of %d, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

func TestReplicaSnapshotRoundTrip(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_REFUSED))
	data := g.snapshot()
	g.must(closeCommand(3, "n3", wire.Evidence_EVIDENCE_LAPSED)) // what is taken is of its moment

	other := newLooseGroup(t)
	if err := other.rep.Restore(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(other.snapshot(), data) {
		t.Error("the restored state gives another snapshot")
	}
	if v := other.View(); len(v.Members) != 2 || other.ClusterID() != g.ClusterID() {
		t.Errorf("view %+v, cluster %q", v, other.ClusterID())
	}
	feed, _ := other.rep.take()
	if len(feed) != 1 || !feed[0].gap || len(feed[0].changes) != 0 {
		t.Errorf("the feed after a restore: %+v", feed)
	}
}

func TestReplicaRefusesABrokenSnapshot(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	before := g.snapshot()
	for _, data := range [][]byte{before[:len(before)-3], []byte("no snapshot"), bytes.Repeat([]byte{0xff}, 100)} {
		if err := g.rep.Restore(bytes.NewReader(data)); err == nil {
			t.Errorf("%d bytes were restored", len(data))
		}
		if !bytes.Equal(g.snapshot(), before) {
			t.Fatal("a failed restore changed the state")
		}
	}
}

func TestReplicaFeedHasEachEntryOnceInOrder(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	first, changed := g.rep.take()
	g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
	select {
	case <-changed:
	default:
		t.Error("the entry after take was not announced")
	}
	second, _ := g.rep.take()
	var last uint64
	opened, closed := 0, 0
	for _, f := range append(first, second...) {
		if f.position <= last {
			t.Errorf("position %d after %d", f.position, last)
		}
		last = f.position
		for _, c := range f.changes {
			switch c.(type) {
			case state.RunOpened:
				opened++
			case state.RunClosed:
				closed++
			}
		}
	}
	if opened != 3 || closed != 1 || len(second) != 1 {
		t.Errorf("%d opened, %d closed, %d entries in the second take", opened, closed, len(second))
	}
	if rest, _ := g.rep.take(); len(rest) != 0 {
		t.Errorf("taken twice: %+v", rest)
	}
}

func TestReplicaTakesAnEntryThatCannotBeRead(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	g.index++
	if r := g.rep.Apply(g.index, []byte{0xff, 0xff}).([]*wire.Result); len(r) != 0 {
		t.Errorf("results %v", r)
	}
	g.rep.read(func(m *state.Machine) {
		if m.Index() != g.index {
			t.Errorf("index %d, want %d", m.Index(), g.index)
		}
	})
}

func TestReplicaThatDivergesEndsTheGroup(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	g.must(&wire.Command{Op: &wire.Command_Audit{Audit: &wire.Audit{}}})
	var at uint64
	g.rep.read(func(m *state.Machine) { at = m.Position() })
	g.must(&wire.Command{Op: &wire.Command_Audit{Audit: &wire.Audit{Position: at, Hash: make([]byte, 32)}}})
	if err := g.Err(); !errors.Is(err, ErrDiverged) {
		t.Errorf("Err is %v", err)
	}
}

// PROTOCOL.md 22: the wait counts from the last entry that ended a holder, and a snapshot in between counts as one. Who
// was appointed without having raised the fence held nothing; who held it may go on for the fence's own TTL, which can be
// longer than its run's lease.
func TestRule22_LeaseWaitCountsFromTheLastHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, fence = 3 * time.Second, 30 * time.Second
		g := newLooseGroup(t)
		g.settle()
		wait := func() time.Duration {
			left, _ := g.rep.leaseWait("c", runOf(2), leases{ttl: ttl, fence: fence})
			return left
		}
		g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
		if w := wait(); w != ttl {
			t.Errorf("at the closing: %v", w)
		}
		pass(time.Second)
		if w := wait(); w != 2*time.Second {
			t.Errorf("a second later: %v", w)
		}
		pass(5 * time.Second)
		if w := wait(); w != 0 {
			t.Errorf("after the TTL: %v", w)
		}
		g.must(g.move("c", 2))
		if w := wait(); w != 0 {
			t.Errorf("after an appointment that was never acquired: %v", w)
		}
		g.raise("c", 2)
		g.must(g.move("c", 2))
		if w := wait(); w != fence {
			t.Errorf("right after a hand-over: %v", w)
		}
		pass(time.Second)
		if w := wait(); w != fence-time.Second {
			t.Errorf("a second after a hand-over: %v", w)
		}
		data := g.snapshot()
		pass(5 * time.Second)
		if err := g.rep.Restore(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if w := wait(); w != fence {
			t.Errorf("after a snapshot that may hide hand-overs: %v", w)
		}
	})
}

// PROTOCOL.md 22: of a holder that is proven ended nothing is waited for, but only of that one.
func TestRule22_WhoIsProvenEndedNeedsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, fence = 3 * time.Second, 30 * time.Second
		g := newLooseGroup(t)
		g.settle()
		wait := func() time.Duration {
			left, _ := g.rep.leaseWait("c", runOf(2), leases{ttl: ttl, fence: fence})
			return left
		}
		quiesced := func(n byte) *wire.Command {
			return &wire.Command{Op: &wire.Command_NoteQuiesced{NoteQuiesced: &wire.NoteQuiesced{Run: runOf(n).Bytes()}}}
		}
		g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OBITUARY))
		_, changed := g.rep.leaseWait("c", runOf(2), leases{ttl: ttl, fence: fence})
		g.must(quiesced(2))
		select {
		case <-changed:
		default:
			t.Error("who waits is not told")
		}
		if w := wait(); w != 0 {
			t.Errorf("after the proof: %v", w)
		}
		g.raise("c", 2) // by run 3, the successor
		g.must(g.move("c", 2))
		if w := wait(); w != fence {
			t.Errorf("after a hand-over by a run that stands: %v", w)
		}
		g.must(closeCommand(3, "n3", wire.Evidence_EVIDENCE_OBITUARY))
		if w := wait(); w != fence {
			t.Errorf("after that run was closed: %v", w)
		}
		g.must(quiesced(3))
		if w := wait(); w != 0 {
			t.Errorf("after the proof of the second: %v", w)
		}
		data := g.snapshot()
		if err := g.rep.Restore(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if w := wait(); w != fence {
			t.Errorf("after a snapshot that hides who the second was: %v", w)
		}
	})
}

// A snapshot in which nobody was handed over hides nobody: the proof of the dead run is enough.
func TestRule22_AProofOutlivesASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.settle()
		g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OBITUARY))
		restore := func() time.Duration {
			data := g.snapshot()
			if err := g.rep.Restore(bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			left, _ := g.rep.leaseWait("c", runOf(2), leases{ttl: 3 * time.Second, fence: 30 * time.Second})
			return left
		}
		if w := restore(); w != 3*time.Second {
			t.Errorf("without a proof: %v", w)
		}
		g.must(&wire.Command{Op: &wire.Command_NoteQuiesced{NoteQuiesced: &wire.NoteQuiesced{Run: runOf(2).Bytes()}}})
		if w := restore(); w != 0 {
			t.Errorf("with it: %v", w)
		}
	})
}

// move is the leader's command that hands the recovery of run n on.
func (g *looseGroup) move(component string, n byte) *wire.Command {
	g.t.Helper()
	var cmd *wire.Command
	g.rep.read(func(m *state.Machine) {
		r, ok := m.Recovery(component, runOf(n))
		if !ok {
			g.t.Fatalf("no recovery of run %d", n)
		}
		cmd = moveAppointment(proto.CloneOf(r))
	})
	return cmd
}

// raise has the appointee acquire the fence.
func (g *looseGroup) raise(component string, n byte) {
	g.t.Helper()
	var cmd *wire.Command
	g.rep.read(func(m *state.Machine) {
		r, _ := m.Recovery(component, runOf(n))
		cmd = &wire.Command{Run: r.GetAppointee(), Op: &wire.Command_Acquire{Acquire: &wire.Acquire{
			Recovery: &wire.RecoveryRef{Component: component, Run: r.GetRun(), Index: r.GetIndex()},
		}}}
	})
	g.must(cmd)
}

func TestEndingsAreForgottenWithTheirRecovery(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	g.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED))
	g.raise("c", 2)
	g.must(g.move("c", 2))
	if n := len(g.rep.endings.at); n != 2 {
		t.Errorf("%d endings are kept, want that of the run and that of the first appointee", n)
	}
	g.must(&wire.Command{Op: &wire.Command_DropRecovery{DropRecovery: &wire.DropRecovery{Component: "c", Run: runOf(2).Bytes()}}})
	if n := len(g.rep.endings.at); n != 0 {
		t.Errorf("%d endings are kept after the end", n)
	}
	left := closeCommand(3, "n3", wire.Evidence_EVIDENCE_LEFT)
	left.GetCloseRun().Settled = []string{"c"}
	g.must(left)
	if n := len(g.rep.endings.at); n != 0 {
		t.Errorf("%d endings are kept of a run that left nothing", n)
	}
}
