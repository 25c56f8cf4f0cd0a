package gms

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// fakeProof is this node's leadership. Verify waits for allow to be closed, when there is one.
type fakeProof struct {
	term    atomic.Uint64
	deposed atomic.Bool
	mu      sync.Mutex
	begun   []time.Duration // when each Verify began, by clock
	clock   Clock
	allow   chan struct{}
	err     error
}

func (p *fakeProof) Term() uint64 { return p.term.Load() }

func (p *fakeProof) IsLeader() bool { return !p.deposed.Load() }

func (p *fakeProof) Verify(ctx context.Context) error {
	p.mu.Lock()
	p.begun = append(p.begun, p.clock.Now())
	allow, err := p.allow, p.err
	p.mu.Unlock()
	if allow != nil {
		select {
		case <-allow:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// termOf is a leader's term over a loose group that has settled; submitted commands are applied at once, unless hold is
// set: then they wait for ever.
type termOf struct {
	*leading
	h     *looseGroup
	proof *fakeProof
	end   func()

	mu        sync.Mutex
	committed []*wire.Command
	hold      bool
	fail      error
	asked     map[byte]uint64 // number of the last renewal of each run
}

func startTerm(t *testing.T, run bool) *termOf {
	g := newLooseGroup(t)
	g.settle()
	g.cfg.NoRefused = true // nothing is dialled
	ctx, cancel := context.WithCancelCause(context.Background())
	x := &termOf{h: g, proof: &fakeProof{clock: g.cfg.Clock}}
	x.proof.term.Store(7)
	x.leading = newLeading(ctx, g.Group, 7)
	x.listed = func(string) bool { return true }
	x.leading.proof, x.leading.submit = x.proof, x.submitted
	var loops sync.WaitGroup
	loops.Go(func() {
		if run {
			x.loop(ctx)
		}
	})
	x.end = func() {
		cancel(errTermEnded)
		loops.Wait()
		x.leading.end()
		x.acts.Wait()
	}
	t.Cleanup(x.end)
	x.follow()
	x.acts.Go(x.acknowledge)
	x.acts.Go(func() { x.says.run(ctx, func(c *wire.Command) error { return x.commit(c) }) })
	synctest.Wait()
	return x
}

// loop is run without the voters, which need a consensus.
func (x *termOf) loop(ctx context.Context) {
	tick := time.NewTicker(x.tick)
	defer tick.Stop()
	for {
		changed := x.follow()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
			x.step(detect.Event{Kind: detect.Tick})
			x.expire()
		}
	}
}

func (x *termOf) submitted(ctx context.Context, cmds []*wire.Command) ([]*wire.Result, uint64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range cmds {
		x.committed = append(x.committed, proto.CloneOf(c))
	}
	if x.fail != nil {
		return nil, 0, x.fail
	}
	if x.hold {
		x.mu.Unlock()
		<-ctx.Done()
		x.mu.Lock()
		return nil, 0, context.Cause(ctx)
	}
	return x.h.apply(cmds...), x.h.index, nil
}

func (x *termOf) commits() []*wire.Command {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.committed)
}

func (x *termOf) closings() (list []*wire.CloseRun) {
	for _, c := range x.commits() {
		if c.GetCloseRun() != nil {
			list = append(list, c.GetCloseRun())
		}
	}
	return list
}

// ask sends a renewal of run n, numbered seq or, after a later one, the next; the answer comes by the channel.
func (x *termOf) ask(n byte, seq uint64, fences ...*wire.FenceRenewal) <-chan *wire.RenewReply {
	if x.asked == nil {
		x.asked = map[byte]uint64{}
	}
	seq = max(seq, x.asked[n]+1)
	x.asked[n] = seq
	ch := make(chan *wire.RenewReply, 1)
	x.renew(&wire.Renewal{Run: runOf(n).Bytes(), Seq: seq, Applied: 3, Fences: fences}, func(r *wire.RenewReply) { ch <- r })
	return ch
}

func answered(ch <-chan *wire.RenewReply) *wire.RenewReply {
	synctest.Wait()
	select {
	case r := <-ch:
		return r
	default:
		return nil
	}
}

// PROTOCOL.md 4: the proof of leadership begins after the renewal was received, for each of them.
func TestRule04_ARenewalWaitsForAProofThatBeganAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.proof.allow = make(chan struct{})
		first := x.ask(2, 1)
		pass(time.Second)
		second := x.ask(3, 1) // while a proof is under way that began before it
		if answered(first) != nil || answered(second) != nil {
			t.Fatal("acknowledged without a proof")
		}
		x.proof.mu.Lock()
		allow := x.proof.allow
		x.proof.allow = make(chan struct{})
		x.proof.mu.Unlock()
		close(allow)
		if r := answered(first); !r.GetAcknowledged() || r.GetSeq() != 1 {
			t.Errorf("after its proof: %v", r)
		}
		if r := answered(second); r != nil {
			t.Errorf("acknowledged by a proof that began before it: %v", r)
		}
		close(x.proof.allow)
		if r := answered(second); !r.GetAcknowledged() {
			t.Errorf("after its own proof: %v", r)
		}
	})
}

func TestRule04_WithoutAProofNothingIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.proof.err = errors.New("no majority")
		if r := answered(x.ask(2, 1)); r == nil || r.GetAcknowledged() || r.GetClosing() {
			t.Errorf("answer %v", r)
		}
		x.proof.mu.Lock()
		x.proof.err = nil
		x.proof.mu.Unlock()
		x.proof.term.Store(8) // lost and won again: this term's acts are over, whatever can be proved
		if r := answered(x.ask(2, 2)); r == nil || r.GetAcknowledged() {
			t.Errorf("answer of an earlier term: %v", r)
		}
	})
}

// A term that changes while the proof is under way proves the later one, whose first entry may not be applied.
func TestRule04_AnotherTermsProofProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.proof.allow = make(chan struct{})
		ch := x.ask(2, 1)
		synctest.Wait()
		x.proof.term.Store(8)
		close(x.proof.allow)
		if r := answered(ch); r == nil || r.GetAcknowledged() {
			t.Errorf("answer %v", r)
		}
		if err := x.commit(closeCommand(2, "n2", wire.Evidence_EVIDENCE_LAPSED)); !errors.Is(err, errUnreached) || len(x.commits()) != 0 {
			t.Errorf("an earlier term's closing: %v", err)
		}
	})
}

func TestRenewalsOfClosedAndUnknownRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		for _, n := range []byte{2, 99} {
			if r := answered(x.ask(n, 1)); !r.GetRunClosed() || r.GetAcknowledged() {
				t.Errorf("run %d: %v", n, r)
			}
		}
	})
}

// PROTOCOL.md 4: none is acknowledged while a closing of the run is proposed with the outcome open.
func TestRule04_AnOpenClosingIsToldSo(t *testing.T) {
	for name, fail := range map[string]error{"under way": nil, "of unknown outcome": errors.New("outcome unknown")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := startTerm(t, true)
				x.mu.Lock()
				x.hold, x.fail = fail == nil, fail
				x.mu.Unlock()
				x.silence(3 * x.h.cfg.Timing.TTL)
				if len(x.closings()) == 0 {
					t.Fatal("no closing was proposed")
				}
				if r := answered(x.ask(2, 1)); r.GetAcknowledged() || !r.GetClosing() {
					t.Errorf("answer %v", r)
				}
				x.mu.Lock()
				x.hold, x.fail = false, nil
				x.mu.Unlock()
				if fail != nil { // it is repeated until it is known
					pass(time.Second)
					if r := answered(x.ask(2, 2)); !r.GetRunClosed() {
						t.Errorf("after the outcome: %v", r)
					}
				}
			})
		})
	}
}

// silence lets time pass in which runs 1 and 3 renew and run 2 does not.
func (x *termOf) silence(d time.Duration) {
	for end := time.Now().Add(d + x.h.cfg.Timing.TTL/6); time.Now().Before(end); pass(x.h.cfg.Timing.TTL / 6) {
		x.ask(1, 1)
		x.ask(3, 1)
	}
}

// A closing that cannot have been logged lets the run go on.
func TestRule04_AClosingThatNeverLeftLetsTheRunGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.mu.Lock()
		x.fail = errUnreached
		x.mu.Unlock()
		x.silence(3 * x.h.cfg.Timing.TTL)
		if len(x.closings()) == 0 {
			t.Fatal("no closing was proposed")
		}
		ch := x.ask(2, 1)
		pass(x.tick * 2)
		if r := answered(ch); !r.GetAcknowledged() && answered(x.ask(2, 2)) == nil {
			t.Errorf("answer %v", r)
		}
	})
}

// lapsed: a silent run is closed, those that renew are not, and the home's position goes on record with it.
func TestASilentRunIsClosedAndItsPositionNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		if r := answered(x.ask(2, 1)); !r.GetAcknowledged() {
			t.Fatalf("answer %v", r)
		}
		x.silence(4 * x.h.cfg.Timing.TTL)
		cs := x.closings()
		if len(cs) != 1 || cs[0].GetNode() != "n2" || cs[0].GetEvidence() != wire.Evidence_EVIDENCE_LAPSED {
			t.Fatalf("closings %v", cs)
		}
		x.h.rep.read(func(m *state.Machine) {
			if n, _ := m.Node("n2"); n.GetPosition() != 3 {
				t.Errorf("position on record %d, reported was 3", n.GetPosition())
			}
		})
	})
}

func (x *termOf) recovery(t *testing.T) *wire.Recovery {
	t.Helper()
	var r *wire.Recovery
	x.h.rep.read(func(m *state.Machine) {
		var ok bool
		if r, ok = m.Recovery("c", runOf(2)); !ok {
			t.Fatal("no recovery")
		}
	})
	return r
}

func (x *termOf) acquire(t *testing.T) *wire.FenceRenewal {
	r := x.recovery(t)
	x.h.must(&wire.Command{Run: r.GetAppointee(), Op: &wire.Command_Acquire{Acquire: &wire.Acquire{
		Recovery: &wire.RecoveryRef{Component: "c", Run: r.GetRun(), Index: r.GetIndex()},
	}}})
	return &wire.FenceRenewal{Component: "c", Run: r.GetRun(), Index: r.GetIndex()}
}

// PROTOCOL.md 13: an appointment that is not acquired within fence_ttl moves on, not earlier.
func TestRule13_AnAppointmentThatIsNotAcquiredMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		first := x.recovery(t)
		x.silence(x.h.cfg.FenceTTL - time.Second)
		if r := x.recovery(t); r.GetIndex() != first.GetIndex() {
			t.Fatalf("moved within fence_ttl")
		}
		x.silence(2 * time.Second)
		r := x.recovery(t)
		if r.GetIndex() == first.GetIndex() || string(r.GetAppointee()) == string(first.GetAppointee()) {
			t.Errorf("after fence_ttl: index %d, the same appointee", r.GetIndex())
		}
	})
}

// A fence that is raised late in its appointment has a full fence_ttl to be renewed; renewed it stays, and then it moves on.
func TestAFenceHasItsOwnTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		x.silence(x.h.cfg.FenceTTL - time.Second)
		fence := x.acquire(t)
		x.silence(x.h.cfg.FenceTTL - time.Second)
		raised := x.recovery(t)
		if raised.GetState() != wire.RecoveryState_RECOVERY_RAISED || raised.GetIndex() != fence.GetIndex() {
			t.Fatalf("a fence raised late in its appointment was moved: %v", raised)
		}
		holder, _ := state.RunIDOf(raised.GetAppointee())
		for range 3 {
			r := answered(x.ask(holder[15], 9, fence, &wire.FenceRenewal{Component: "c", Run: []byte("?"), Index: 1}))
			if len(r.GetFences()) != 1 || r.GetFences()[0].GetIndex() != fence.GetIndex() {
				t.Fatalf("renewed fences %v", r.GetFences())
			}
			x.silence(x.h.cfg.FenceTTL - time.Second)
			if x.recovery(t).GetIndex() != fence.GetIndex() {
				t.Fatal("a renewed fence was moved")
			}
		}
		x.silence(2 * time.Second)
		if x.recovery(t).GetIndex() == fence.GetIndex() {
			t.Error("a fence that nobody renews stays")
		}
		if r := answered(x.ask(holder[15], 10, fence)); len(r.GetFences()) != 0 || !r.GetAcknowledged() {
			t.Errorf("answer to the former holder: %v", r)
		}
	})
}

// A new leader knows nothing of earlier renewals and gives a full fence_ttl from its own start.
func TestANewLeaderGivesAFullFenceTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.h.must(closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		first := x.recovery(t)
		x.silence(x.h.cfg.FenceTTL - time.Second)
		x.leading.mu.Lock()
		clear(x.expiries) // what a new leader has
		x.leading.mu.Unlock()
		x.silence(x.h.cfg.FenceTTL - time.Second)
		if x.recovery(t).GetIndex() != first.GetIndex() {
			t.Error("moved by what an earlier leader counted")
		}
	})
}

func TestRule21_APollLockEndsAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.h.must(&wire.Command{Run: runOf(3).Bytes(), Op: &wire.Command_Lock{Lock: &wire.Lock{Name: "/SBOI/c"}}})
		locks := func() (n int) {
			x.h.rep.read(func(m *state.Machine) { n = len(m.Locks()) })
			return n
		}
		x.silence(lockLimit - time.Second)
		if locks() != 1 {
			t.Fatal("ended early")
		}
		x.silence(2 * time.Second)
		if locks() != 0 {
			t.Error("held for ever")
		}
	})
}

// A withdrawal never overtakes its suspicion, and neither is lost when a commit fails for a while.
func TestSuspicionsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		id := detect.RunID(runOf(2))
		x.step(detect.Event{Kind: detect.StreamOpened, Run: id})
		suspected := func() (yes bool) {
			x.h.rep.read(func(m *state.Machine) { r, _ := m.Run(runOf(2)); yes = r.Suspected })
			return yes
		}
		x.mu.Lock()
		x.fail = errors.New("no leader for a while")
		x.mu.Unlock()
		x.step(detect.Event{Kind: detect.GossipDead, Run: id})
		x.step(detect.Event{Kind: detect.GossipAlive, Run: id})
		pass(100 * time.Millisecond)
		x.mu.Lock()
		x.fail = nil
		x.mu.Unlock()
		pass(100 * time.Millisecond)
		if suspected() {
			t.Error("the suspicion stays after its withdrawal")
		}
		x.step(detect.Event{Kind: detect.GossipDead, Run: id})
		pass(100 * time.Millisecond)
		if !suspected() {
			t.Error("the last word is not the log's")
		}
	})
}

// TestPositionsOfHomesAreKnownThroughout: how far the home of a run was is known from the leader's memory until it is known
// from the log, also when it cannot be written; and of another run of its node nothing is said.
func TestPositionsOfHomesAreKnownThroughout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		leave := func(n byte) {
			run := runOf(n)
			x.h.must(&wire.Command{Run: run.Bytes(), Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{
				Node: "n" + string('0'+n), Run: run.Bytes(), Evidence: wire.Evidence_EVIDENCE_LEFT,
			}}})
			synctest.Wait()
		}
		position := func(node string) (index uint64) {
			x.h.rep.read(func(m *state.Machine) { n, _ := m.Node(node); index = n.GetPosition() })
			return index
		}
		answered(x.ask(2, 1))
		answered(x.ask(3, 1))
		x.mu.Lock()
		x.fail = errors.New("no quorum for a while")
		x.mu.Unlock()
		leave(2)
		if memory, log := x.appliedBy("n2"), position("n2"); memory != 3 || log != 0 {
			t.Errorf("while it cannot be written: index %d in memory, %d in the log", memory, log)
		}
		x.mu.Lock()
		x.fail = nil
		x.mu.Unlock()
		leave(3)
		if memory, log := x.appliedBy("n3"), position("n3"); memory != 0 || log != 3 {
			t.Errorf("when it was written: index %d in memory, %d in the log", memory, log)
		}
		epoch := uint64(0)
		x.h.rep.read(func(m *state.Machine) { n, _ := m.Node("n2"); epoch = n.GetLastEpoch() })
		x.h.must(openCommand(4, "n2", epoch, "c"))
		answered(x.ask(4, 1))
		x.leading.mu.Lock()
		defer x.leading.mu.Unlock()
		if r := x.reports["n2"]; r.run != runOf(4) || r.before != 0 {
			t.Errorf("the next run's reports: %+v", r)
		}
		if note := x.takePosition(state.Run{ID: runOf(2), Open: &wire.OpenRun{Node: "n2"}}); note != nil {
			t.Errorf("of the run before: %v", note)
		}
	})
}

// TestAudits: each auditEvery entries a position is marked and the leader's hash of it told, once.
func TestAudits(t *testing.T) {
	g := newLooseGroup(t)
	g.settle()
	x := &leading{audits: g.newAuditor()}
	due := func() *wire.Audit { return x.audits.next(g.rep.audited()) }
	if c := due(); c != nil {
		t.Errorf("at the term's begin: %v", c)
	}
	for range auditEvery {
		g.apply(&wire.Command{Op: &wire.Command_NotePositions{NotePositions: &wire.NotePositions{}}})
	}
	mark := due()
	if mark == nil || len(mark.GetHash()) != 0 || due() != nil {
		t.Fatalf("after %d entries: %v", auditEvery, mark)
	}
	g.must(&wire.Command{Op: &wire.Command_Audit{Audit: mark}})
	told := due()
	if len(told.GetHash()) != 32 || told.GetPosition() == 0 || due() != nil {
		t.Fatalf("after the mark: %v", told)
	}
	g.must(&wire.Command{Op: &wire.Command_Audit{Audit: told}})
	if g.Err() != nil || due() != nil {
		t.Errorf("the same state differs: %v", g.Err())
	}
	if a := g.newAuditor(); a.answered != told.GetPosition() {
		t.Error("the next leader tells the same again")
	}
}

// A handler that still holds an ended term begins nothing that nobody would wait for.
func TestAnEndedTermActsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		x.end()
		before := len(x.commits())
		x.step(detect.Event{Kind: detect.GossipDead, Run: detect.RunID(runOf(2))})
		x.follow()
		x.leading.mu.Lock()
		x.carryOut([]detect.Proposal{{Act: detect.Close, Run: detect.RunID(runOf(2)), Evidence: detect.Lapsed}})
		x.leading.mu.Unlock()
		if r := answered(x.ask(2, 1)); r != nil {
			t.Errorf("answer %v", r)
		}
		if n := len(x.commits()); n != before {
			t.Errorf("%d commits after the end", n-before)
		}
	})
}

// A renewal that comes again is answered, and is no sign of life: whoever kept one of a dead run cannot keep the run.
func TestARepeatedRenewalIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, true)
		again := func() *wire.RenewReply {
			ch := make(chan *wire.RenewReply, 1)
			x.renew(&wire.Renewal{Run: runOf(2).Bytes(), Seq: 5, Applied: 3}, func(r *wire.RenewReply) { ch <- r })
			return answered(ch)
		}
		if r := again(); !r.GetAcknowledged() {
			t.Fatalf("the first: %v", r)
		}
		if r := again(); !r.GetAcknowledged() || r.GetSeq() != 5 {
			t.Errorf("the same, whose answer may be lost: %v", r)
		}
		for end := time.Now().Add(4 * x.h.cfg.Timing.TTL); time.Now().Before(end) && len(x.closings()) == 0; {
			again()
			x.silence(0)
		}
		if len(x.closings()) == 0 {
			t.Error("one renewal, again and again, keeps a run")
		}
	})
}
