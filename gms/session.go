package gms

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// members is what a session needs of the rest of the group.
type members interface {
	leaderHint() string
	leaderChanged() <-chan struct{}
	// client calls a node's cluster port; an error when its address is not known.
	client(node string) (wire.ClusterClient, error)
	// bystander is some living member other than those named, to pass a renewal on; empty when there is none.
	bystander(not ...string) string
	// sealed signs a renewal, so that another member may pass it on.
	sealed(r *wire.Renewal) (*wire.RenewRequest, error)
	// applied is the Raft index that the own log has brought here; 0 for a member that is fed.
	applied() uint64
	// heard is told each answer to a renewal; it must not block.
	heard(a *wire.RenewReply)
}

// session is one run's standing with the group: it renews the run's lease, and the fences that the run holds, at a third
// of the TTL on a stream to the leader, and through another member when the leader does not answer (PROTOCOL.md 5).
type session struct {
	run      [16]byte
	ttl      time.Duration
	fenceTTL time.Duration
	clock    Clock
	to       members
	log      *slog.Logger
	// broke is told that the stream to a leader ended without a word.
	broke func(leader string)
	// quorum is told, without blocking, that no leader has answered for half a TTL, and that one answers again.
	quorum func(lost bool)

	mu      sync.Mutex
	lease   *lease
	fences  map[fenceRef]*heldFence
	sent    map[uint64]time.Duration // when each renewal that is not acknowledged was sent
	seq     uint64
	changed chan struct{} // closed and replaced when the standing may have changed
	poke    chan struct{} // capacity 1: a deadline was moved
	ended   bool          // over is closed
	heard   time.Duration // when a leader acknowledged last, or the session began
	through string        // by whose detour the last renewal came through; empty: the last one did not
	mute    string        // by whom it did not
	lost    bool          // quorum was told so

	out   chan *wire.Renewal // capacity 1: the newest renewal, for the stream that is open
	hurry chan struct{}      // capacity 1: a renewal is due at once
	over  chan struct{}      // closed when a leader has said that the run is closed
}

// fenceRef names one appointment.
type fenceRef struct {
	component string
	run       [16]byte // the dead run
	index     uint64
}

// heldFence is the holder's side of a fence: a lease of its own (PROTOCOL.md 13).
type heldFence struct {
	due      func() bool
	deadline time.Duration
	cancel   context.CancelCauseFunc
}

func newSession(run [16]byte, cfg Config, to members, broke func(leader string)) *session {
	return &session{
		run: run, ttl: cfg.Timing.TTL, fenceTTL: cfg.FenceTTL, clock: cfg.Clock, to: to, log: cfg.Logger, broke: broke,
		quorum: func(bool) {}, heard: cfg.Clock.Now(),
		lease: newLease(cfg.Timing.TTL), fences: make(map[fenceRef]*heldFence), sent: make(map[uint64]time.Duration),
		changed: make(chan struct{}), poke: make(chan struct{}, 1),
		out: make(chan *wire.Renewal, 1), hurry: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

// standing is what the run may do now, and a channel that is closed when that may have changed.
func (s *session) standing() (Standing, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.standing(s.clock.Now()), s.changed
}

// close ends the run's standing for ever, and with it its fences.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.closed = true
	for ref, f := range s.fences {
		f.cancel(fmt.Errorf("%w: the run is closed", signals.ErrFenceLost))
		delete(s.fences, ref)
	}
	s.announce()
}

// announce wakes those who wait for a change; with s.mu held.
func (s *session) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// renewFence has the renewals name a fence that was acquired by a call begun at sent. lease ends at its local deadline.
func (s *session) renewFence(ref fenceRef, sent time.Duration, due func() bool) (lease context.Context, stop func()) {
	lease, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &heldFence{due: due, cancel: cancel, deadline: sent + s.fenceTTL - leaseMargin(s.fenceTTL)}
	s.fences[ref] = f
	s.announce()
	select {
	case s.hurry <- struct{}{}:
	default:
	}
	return lease, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fences[ref] == f {
			delete(s.fences, ref)
		}
		cancel(context.Canceled)
	}
}

// interval is the time between two renewals: a third of the TTL, or of the fence's when one is held and its is shorter.
func (s *session) interval() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fences) > 0 {
		return min(s.ttl, s.fenceTTL) / 3
	}
	return s.ttl / 3
}

// renewal makes the next renewal.
func (s *session) renewal() *wire.Renewal {
	r := &wire.Renewal{Run: s.run[:], Applied: s.to.applied(), Fences: s.dueFences()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	r.Seq = s.seq
	now := s.clock.Now()
	s.sent[s.seq] = now
	for seq, at := range s.sent {
		if now-at > s.ttl {
			delete(s.sent, seq)
		}
	}
	return r
}

// dueFences names the fences whose holders say that they go on. They are asked without s.mu held.
func (s *session) dueFences() []*wire.FenceRenewal {
	s.mu.Lock()
	held := maps.Clone(s.fences)
	s.mu.Unlock()
	var list []*wire.FenceRenewal
	for ref, f := range held {
		if f.due() {
			list = append(list, &wire.FenceRenewal{Component: ref.component, Run: ref.run[:], Index: ref.index})
		}
	}
	return list
}

// acknowledged takes the answer to a renewal, by whatever way it came; false when the run is closed.
func (s *session) acknowledged(a *wire.RenewReply) bool {
	s.to.heard(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.GetRunClosed() {
		if !s.ended {
			s.ended = true
			close(s.over)
		}
		return false
	}
	at, ok := s.sent[a.GetSeq()]
	if a.GetClosing() { // the leader's word, though no good one: no detour finds another
		delete(s.sent, a.GetSeq())
	}
	if !ok || !a.GetAcknowledged() {
		return true
	}
	delete(s.sent, a.GetSeq())
	s.heard = s.clock.Now()
	if s.lost {
		s.lost = false
		s.quorum(false)
	}
	before := s.lease.standing(s.clock.Now())
	s.lease.renewed(at)
	for _, f := range a.GetFences() {
		dead, _ := state.RunIDOf(f.GetRun())
		if held, ok := s.fences[fenceRef{f.GetComponent(), dead, f.GetIndex()}]; ok {
			held.deadline = max(held.deadline, at+s.fenceTTL-leaseMargin(s.fenceTTL))
		}
	}
	if s.lease.standing(s.clock.Now()) != before {
		s.announce()
	}
	return true
}

// answered tells whether a renewal has been acknowledged.
func (s *session) answered(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open := s.sent[seq]
	return !open
}

// watchDeadlines ends fences at their deadlines and announces changes of the standing, until ctx ends. Timers do not
// count suspend, the clock does: so it looks at least each half second.
func (s *session) watchDeadlines(ctx context.Context) {
	const look = 500 * time.Millisecond
	last := Expired
	for {
		now := s.clock.Now()
		s.mu.Lock()
		wait := look
		for ref, f := range s.fences {
			if now >= f.deadline {
				f.cancel(fmt.Errorf("%w: it could not be renewed in time", signals.ErrFenceLost))
				delete(s.fences, ref)
				continue
			}
			wait = min(wait, f.deadline-now)
		}
		if st := s.lease.standing(now); st != last {
			last = st
			s.announce()
		}
		if next := s.lease.next(now); next > 0 {
			wait = min(wait, next-now)
		}
		if silent := s.heard + s.ttl/2 - now; silent > 0 {
			wait = min(wait, silent)
		} else if !s.lost {
			s.lost = true
			s.quorum(true)
		}
		s.mu.Unlock()
		if !pause(ctx, s.poke, max(wait, time.Millisecond)) {
			return
		}
	}
}
