package gms

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// openEntry is an entry with the outcome open; decide ends it.
type openEntry struct {
	x      *termOf
	begun  chan struct{}
	decide chan error
}

// proposeOpen has the batcher propose one command, as it comes from any member, and leaves its outcome open.
func (x *termOf) proposeOpen(t *testing.T, cmd *wire.Command) *openEntry {
	e := &openEntry{x: x, begun: make(chan struct{}), decide: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	x.h.batch.propose = func(ctx context.Context, _ []byte) ([]*wire.Result, uint64, error) {
		close(e.begun)
		select {
		case err := <-e.decide:
			if err != nil {
				return nil, 0, err
			}
			return x.h.apply(cmd), x.h.index, nil
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	var running sync.WaitGroup
	running.Go(func() { x.h.batch.run(ctx) })
	running.Go(func() { _, _, _ = x.h.batch.submit(ctx, []*wire.Command{cmd}) })
	t.Cleanup(func() { cancel(); running.Wait() })
	<-e.begun
	return e
}

// Rule 4: whoever asked for the closing, the run's renewals are not acknowledged while its outcome is open, and it is told so.
func TestRule04_WhoeverAskedForTheClosing(t *testing.T) {
	left := closeCommand(2, "n2", wire.Evidence_EVIDENCE_LEFT)
	left.Run = runOf(2).Bytes()
	for name, cmd := range map[string]*wire.Command{
		"operator":   closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR),
		"left":       left,
		"evidence":   closeCommand(2, "n2", wire.Evidence_EVIDENCE_REFUSED),
		"newer run":  openCommand(12, "n2", 1002),
		"given back": closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := startTerm(t, false)
				if o := cmd.GetOpenRun(); o != nil {
					r, _ := x.h.rep.open("n2")
					o.PrevEpoch = r.Epoch
				}
				e := x.proposeOpen(t, cmd)
				if r := answered(x.ask(2, 1)); r.GetAcknowledged() || !r.GetClosing() || r.GetSeq() != 1 {
					t.Errorf("outcome open: %v", r)
				}
				if r := answered(x.ask(3, 1)); !r.GetAcknowledged() {
					t.Errorf("another run: %v", r)
				}
				if name == "given back" {
					e.decide <- consensus.ErrNotLeader
					synctest.Wait()
					if r := answered(x.ask(2, 2)); !r.GetAcknowledged() {
						t.Errorf("a closing that was never logged: %v", r)
					}
					return
				}
				e.decide <- nil
				synctest.Wait()
				if r := answered(x.ask(2, 2)); !r.GetRunClosed() {
					t.Errorf("after the closing: %v", r)
				}
			})
		})
	}
}

// Rule 4: an entry of unknown outcome has cost the leadership, and nothing is acknowledged in its term from then on.
func TestRule04_UnknownOutcomesEndTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startTerm(t, false)
		x.proof.deposed.Store(true)
		if r := answered(x.ask(2, 1)); r == nil || r.GetAcknowledged() {
			t.Errorf("a leader that was deposed after its proof: %v", r)
		}
	})
}

// Rule 4: a leader that does not acknowledge says so and ends the stream.
func TestRule04_TheStreamIsToldAndEnded(t *testing.T) {
	for name, refuse := range map[string]func(*testing.T, *termOf){
		"closing": func(t *testing.T, x *termOf) {
			x.proposeOpen(t, closeCommand(2, "n2", wire.Evidence_EVIDENCE_OPERATOR))
		},
		"no proof": func(_ *testing.T, x *termOf) {
			x.proof.mu.Lock()
			x.proof.err = errors.New("no majority")
			x.proof.mu.Unlock()
		},
		"other term": func(_ *testing.T, x *termOf) { x.proof.term.Store(8) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := startTerm(t, false)
				ctx, cancel := context.WithCancel(context.Background())
				s := &upStream{ctx: rpc.WithPeer(ctx, rpc.Peer{Node: "n2"}), up: make(chan *wire.SessionUp, 4), down: make(chan *wire.SessionDown, 4)}
				renewal := func(seq uint64) *wire.Renewal { return &wire.Renewal{Run: runOf(2).Bytes(), Seq: seq} }
				done := make(chan error, 1)
				go func() { done <- handler{g: x.h.Group}.attended(s, x.leading, runOf(2), renewal(1)) }()
				if a := (<-s.down).GetAck(); !a.GetAcknowledged() {
					t.Fatalf("at first: %v", a)
				}
				refuse(t, x)
				s.up <- &wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: renewal(2)}}
				a := (<-s.down).GetAck()
				if a == nil || a.GetSeq() != 2 || a.GetAcknowledged() || a.GetRunClosed() || a.GetClosing() != (name == "closing") {
					t.Errorf("told %v", a)
				}
				if e := (<-s.down).GetEnded(); e == nil || e.GetWhy() == "" || e.GetRunClosed() {
					t.Errorf("the stream ends with %v", e)
				}
				if err := <-done; err != nil {
					t.Errorf("ended with %v", err)
				}
				cancel()
			})
		})
	}
}

// Rule 4, the run's side: told of a closing, it holds no lease and asks on until it knows.
func TestRule04_ARunThatIsToldOfAClosingAsksOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newFakeMembers("a", "a", "b")
		outcome := &wire.RenewReply{Closing: true}
		var mu sync.Mutex
		to.clients["a"].renewal = func(s *fakeStream, r *wire.Renewal) {
			mu.Lock()
			defer mu.Unlock()
			a := &wire.RenewReply{Seq: r.GetSeq(), Closing: outcome.GetClosing(), RunClosed: outcome.GetRunClosed(), Acknowledged: outcome.GetAcknowledged()}
			s.down <- &wire.SessionDown{Msg: &wire.SessionDown_Ack{Ack: a}}
			if a.GetClosing() {
				s.down <- ended(&wire.Ended{Why: "closing"})
				select {
				case s.end <- io.EOF:
				default:
				}
			}
		}
		s := startSession(t, to)
		pass(ttl)
		if st := s.now(); st == Held || s.isOver() {
			t.Errorf("standing %v with nothing acknowledged", st)
		}
		if n := len(to.clients["a"].opened()); n < 3 || n > 20 {
			t.Errorf("%d streams in a TTL", n)
		}
		if len(s.breaks()) > 0 {
			t.Errorf("told, it takes the end of its stream for a hint of the leader's death: %v", s.breaks())
		}
		mu.Lock()
		outcome = &wire.RenewReply{RunClosed: true}
		mu.Unlock()
		pass(time.Second)
		if !s.isOver() {
			t.Error("it does not learn the outcome")
		}
	})
}

// Rule 4: before a term is established, its first entry applied and the group formed, no renewal is taken: who asks is told
// so and the stream ends.
func TestRule04_BeforeTheTermIsEstablishedNothingIsTaken(t *testing.T) {
	tg := newTestGroup(t, 1)
	reached, established := make(chan struct{}), make(chan struct{})
	reach := sync.OnceFunc(func() { close(reached) })
	n := tg.start("n1", func(c *Config) {
		c.Floor = func(ctx context.Context) (uint64, error) {
			reach()
			select {
			case <-established:
			case <-ctx.Done():
			}
			return 0, ctx.Err()
		}
	})
	<-reached // raft's leader, it forms the group
	ask := func() *wire.SessionDown {
		ctx, cancel := context.WithTimeout(tg.ctx, 5*time.Second)
		defer cancel()
		s := &upStream{ctx: ctx, up: make(chan *wire.SessionUp, 1), down: make(chan *wire.SessionDown, 1)}
		s.up <- &wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: &wire.Renewal{Run: runOf(9).Bytes(), Seq: 1}}}
		if err := (handler{g: n.Group}).Session(s); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		select {
		case m := <-s.down:
			return m
		default:
			return nil
		}
	}
	if e := ask().GetEnded(); !e.GetNotLeader() || e.GetWhy() == "" {
		t.Errorf("told %v", e)
	}
	close(established)
	if err := n.AwaitStanding(tg.ctx); err != nil {
		t.Fatal(err)
	}
}
