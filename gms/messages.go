package gms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// MaxMessage bounds one message, in bytes.
const MaxMessage = 1 << 20

// messageLimit is how long one member may take to queue a message, whatever the sender's context allows.
const messageLimit = 10 * time.Second

// MessageStats counts this node's messages since its process began.
type MessageStats struct {
	Sent      uint64 // queued at their receiver, one per receiver
	Received  uint64 // queued here
	Unhandled uint64 // received for a component of which nobody handles messages here
	Dropped   uint64 // received while too many waited for the component
}

// messenger keeps messages in order per sender, receiver and component, and lets none through twice.
type messenger struct {
	sent, received, unhandled, dropped atomic.Uint64

	mu    sync.Mutex
	lanes map[messageLane]*outbound
	last  map[messageLane]uint64 // number of the last one taken from a sender
}

// messageLane is one receiver's (or sender's) run and a component.
type messageLane struct {
	run       state.RunID
	component string
}

// outbound is one lane of a sender: whoever holds its turn sends.
type outbound struct {
	turn chan struct{} // capacity 1; those who wait are served in order
	seq  uint64        // of the last one sent; guarded by the turn
}

func newMessenger() *messenger {
	return &messenger{lanes: make(map[messageLane]*outbound), last: make(map[messageLane]uint64)}
}

// manyLanes is when those of closed runs are forgotten.
const manyLanes = 4096

func (m *messenger) lane(k messageLane, open func(state.RunID) bool) *outbound {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.lanes[k]
	if o == nil {
		prune(m.lanes, open)
		o = &outbound{turn: make(chan struct{}, 1)}
		m.lanes[k] = o
	}
	return o
}

func prune[V any](lanes map[messageLane]V, open func(state.RunID) bool) {
	if len(lanes) < manyLanes {
		return
	}
	for k := range lanes {
		if !open(k.run) {
			delete(lanes, k)
		}
	}
}

// MessageStats counts the messages so far.
func (g *Group) MessageStats() MessageStats {
	m := g.messages
	return MessageStats{Sent: m.sent.Load(), Received: m.received.Load(), Unhandled: m.unhandled.Load(), Dropped: m.dropped.Load()}
}

// Send sends bytes to a component of other members, named by node; none named: to every member of the present view but
// this one (witnesses, which have no host app, excepted). The receiver's router hands them to its message factory of the
// component; a receiver that has none counts the message and drops it, which is no error.
//
// Messages of one sender to one component of one member arrive in the order of the calls, each at most once. Send blocks
// until every receiver has queued the message, ctx ends, or a receiver takes longer than ten seconds. Errors, joined for
// several receivers: ErrTooLarge beyond MaxMessage, ErrUnknownMember (nothing was sent to anybody), ErrRunClosed without a
// run of one's own, signals.ErrQueueFull, and ErrUnknown when no answer came: it may have arrived.
func (g *Group) Send(ctx context.Context, component string, payload []byte, to ...string) error {
	what := "send to " + component
	switch {
	case component == "":
		return errors.New("send message: a component is required")
	case len(payload) > MaxMessage:
		return fmt.Errorf("%s: %w: the message has %d bytes, at most %d", what, ErrTooLarge, len(payload), MaxMessage)
	}
	s := g.standingNow()
	if s == nil {
		return fmt.Errorf("%s: %w", what, ErrRunClosed)
	}
	receivers, err := g.receivers(to)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	errs := make([]error, len(receivers))
	var sending sync.WaitGroup
	for i, r := range receivers {
		sending.Go(func() {
			if err := g.sendTo(ctx, s.run, r, component, payload); err != nil {
				errs[i] = fmt.Errorf("%s of %s: %w", what, r.Node(), err)
			}
		})
	}
	sending.Wait()
	return errors.Join(errs...)
}

// receivers finds the open runs of nodes, or of everybody else.
func (g *Group) receivers(nodes []string) (list []state.Run, err error) {
	g.rep.read(func(m *state.Machine) {
		for _, n := range nodes {
			run, ok := openRunOf(m, n)
			if !ok {
				err = errors.Join(err, fmt.Errorf("%w: %q", ErrUnknownMember, n))
				continue
			}
			list = append(list, run)
		}
		if len(nodes) > 0 {
			return
		}
		for _, mem := range m.View().Members {
			if mem.Node != g.cfg.Node && mem.Role != wire.Role_ROLE_WITNESS {
				run, _ := m.Run(mem.Run)
				list = append(list, run)
			}
		}
	})
	return list, err
}

func (g *Group) sendTo(ctx context.Context, from state.RunID, to state.Run, component string, payload []byte) error {
	lane := g.messages.lane(messageLane{to.ID, component}, g.isOpen)
	select {
	case lane.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-lane.turn }()
	lane.seq++
	r := &wire.TellRequest{From: from.Bytes(), To: to.ID.Bytes(), Component: component, Seq: lane.seq, Payload: payload}
	ctx, cancel := context.WithTimeout(ctx, messageLimit)
	defer cancel()
	reply, err := g.tell(ctx, to.Node(), r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	switch reply.GetOutcome() {
	case wire.TellReply_OUTCOME_QUEUED, wire.TellReply_OUTCOME_NO_COMPONENT:
		g.messages.sent.Add(1)
		return nil
	case wire.TellReply_OUTCOME_FULL:
		return signals.ErrQueueFull
	case wire.TellReply_OUTCOME_NOT_MEMBER:
		return ErrUnknownMember
	}
	return fmt.Errorf("%w: it was overtaken", ErrUnknown)
}

// tell brings a message to its receiver, which may be this node.
func (g *Group) tell(ctx context.Context, node string, r *wire.TellRequest) (*wire.TellReply, error) {
	if node == g.cfg.Node {
		return g.told(ctx, r), nil
	}
	for wait := firstTell; ; wait *= 3 {
		c, err := g.client(node)
		if err != nil {
			return nil, err
		}
		reply, err := c.Tell(ctx, r)
		if err == nil || wait > lastTell || !rpc.Unanswered(err) || g.dialer.LastError(node) == nil {
			return reply, err
		}
		g.dialer.Redial(node) // no connection could be made: its node may just be back
		if !pause(ctx, nil, wait) {
			return nil, err
		}
	}
}

// The pauses between tries to reach a member to which no connection could be made; a repeated message is taken once, by
// its number.
const (
	firstTell = 10 * time.Millisecond
	lastTell  = 100 * time.Millisecond
)

func (g *Group) isOpen(id state.RunID) (open bool) {
	g.rep.read(func(m *state.Machine) { open = m.IsOpen(id) })
	return open
}

// Tell takes a message of another member.
func (h handler) Tell(ctx context.Context, r *wire.TellRequest) (*wire.TellReply, error) {
	from, ok := state.RunIDOf(r.GetFrom())
	if !ok || r.GetComponent() == "" || r.GetSeq() == 0 || len(r.GetPayload()) > MaxMessage {
		return nil, errMalformed
	}
	peer, ok := rpc.PeerFrom(ctx)
	if !ok || !h.g.awaitMember(ctx, from, peer.Node) {
		return &wire.TellReply{Outcome: wire.TellReply_OUTCOME_NOT_MEMBER}, nil
	}
	return h.g.told(ctx, r), nil
}

// awaitMember waits a moment for the log to tell of the sender's opening, and holds that the run is the caller's.
func (g *Group) awaitMember(ctx context.Context, id state.RunID, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var run state.Run
	err := g.rep.await(ctx, func(m *state.Machine) bool {
		var known bool
		run, known = m.Run(id)
		return known
	})
	return err == nil && run.IsOpen() && run.Node() == node
}

// told queues a message of a member for this node's component.
func (g *Group) told(_ context.Context, r *wire.TellRequest) *wire.TellReply {
	from, _ := state.RunIDOf(r.GetFrom())
	facts := signals.Facts{Group: g.cfg.Group}
	g.rep.read(func(m *state.Machine) {
		run, _ := m.Run(from)
		facts.Member = memberOf(run)
		facts.View = viewOf(m, m.View())
	})
	facts.StartTime, facts.PreviousView = facts.Member.StartTime, facts.View
	if s := g.standingNow(); s == nil || string(s.run[:]) != string(r.GetTo()) {
		return &wire.TellReply{Outcome: wire.TellReply_OUTCOME_NOT_MEMBER}
	}
	return &wire.TellReply{Outcome: g.messages.take(messageLane{from, r.GetComponent()}, r.GetSeq(), g.isOpen, func() error {
		return g.router.Deliver(signals.NewMessage(facts, r.GetComponent(), r.GetPayload()))
	})}
}

// take delivers the next message of a lane, in the order in which they come.
func (m *messenger) take(k messageLane, seq uint64, open func(state.RunID) bool, deliver func() error) wire.TellReply_Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq <= m.last[k] {
		return wire.TellReply_OUTCOME_STALE
	}
	if _, known := m.last[k]; !known {
		prune(m.last, open)
	}
	m.last[k] = seq
	switch err := deliver(); {
	case err == nil:
		m.received.Add(1)
		return wire.TellReply_OUTCOME_QUEUED
	case errors.Is(err, signals.ErrNoFactory):
		m.unhandled.Add(1)
		return wire.TellReply_OUTCOME_NO_COMPONENT
	case errors.Is(err, signals.ErrQueueFull):
		m.dropped.Add(1)
		return wire.TellReply_OUTCOME_FULL
	}
	return wire.TellReply_OUTCOME_NOT_MEMBER // its router is stopped
}
