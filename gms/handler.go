package gms

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// handler answers the other members' calls. Nothing that comes in is trusted further than its bounds.
type handler struct {
	wire.UnimplementedClusterServer
	g *Group
}

var errMalformed = errors.New("malformed request")

// Submit proposes commands when this node leads.
func (h handler) Submit(ctx context.Context, r *wire.SubmitRequest) (*wire.SubmitReply, error) {
	if n := len(r.GetCommands()); n == 0 || n > batchCommands {
		return nil, errMalformed
	}
	return h.g.submitHere(ctx, sender(ctx), r.GetCommands()), nil
}

// submit brings commands to a node; see submitter.
func (g *Group) submit(ctx context.Context, node string, cmds []*wire.Command) (*wire.SubmitReply, error) {
	if node == "" && !g.consensusRuns() {
		node = g.bystander("")
	}
	if node == "" || node == g.cfg.Node {
		reply := g.submitHere(ctx, g.cfg.Node, cmds)
		if !reply.GetNotLeader() || reply.GetLeader() != "" {
			return reply, nil
		}
		if node = g.bystander(""); node == "" {
			return reply, nil
		}
	}
	return g.post.submit(ctx, node, cmds)
}

// submitTo is the courier's way to another member.
func (g *Group) submitTo(ctx context.Context, node string, cmds []*wire.Command) (*wire.SubmitReply, error) {
	c, err := g.client(node)
	if err != nil {
		return nil, errors.Join(errUnreached, err)
	}
	return c.Submit(ctx, &wire.SubmitRequest{Commands: cmds})
}

// submitHere proposes what a node has sent: the log holds each command against its sender.
func (g *Group) submitHere(ctx context.Context, from string, cmds []*wire.Command) *wire.SubmitReply {
	notLeader := &wire.SubmitReply{NotLeader: true, Leader: g.leaderHint()}
	if notLeader.GetLeader() == g.cfg.Node {
		notLeader.Leader = ""
	}
	if !g.consensusRuns() || !g.cons.IsLeader() {
		return notLeader
	}
	for _, c := range cmds {
		c.Sender = from
	}
	g.putInOrder(cmds)
	results, index, err := g.batch.submit(ctx, cmds)
	switch {
	case err == nil:
		if from != g.cfg.Node && slices.ContainsFunc(cmds, awaited) {
			g.cons.Hurry(from, index)
		}
		return &wire.SubmitReply{Results: results, Index: index}
	case errors.Is(err, consensus.ErrNotLeader), errors.Is(err, errUnreached), errors.Is(err, consensus.ErrNotStarted):
		return notLeader
	case errors.Is(err, consensus.ErrTooLarge):
		return refuseAll(cmds, wire.Code_CODE_TOO_LARGE, "the commands do not fit into one entry")
	}
	return &wire.SubmitReply{Unknown: true}
}

// awaited tells whether whoever sends a command waits until its own replica has applied it: what a recovery does under its
// fence, one step after the other.
func awaited(c *wire.Command) bool {
	return c.GetAcquire() != nil || c.GetAdopt() != nil || c.GetRelease() != nil || c.GetEndClaim().GetFence() != nil
}

// refuseAll answers commands that never reach the log.
func refuseAll(cmds []*wire.Command, code wire.Code, why string) *wire.SubmitReply {
	reply := &wire.SubmitReply{}
	for range cmds {
		reply.Results = append(reply.Results, &wire.Result{Code: code, Detail: why})
	}
	return reply
}

// propose is the batcher's way to consensus.
func (g *Group) propose(ctx context.Context, data []byte) ([]*wire.Result, uint64, error) {
	index, response, err := g.cons.Propose(ctx, data)
	if err != nil {
		return nil, 0, err
	}
	results, ok := response.([]*wire.Result)
	if !ok {
		return nil, 0, errors.New("the replica gave no results")
	}
	return results, index, nil
}

// Renew takes a renewal by the detour, or passes it on once.
func (h handler) Renew(ctx context.Context, r *wire.RenewRequest) (*wire.RenewReply, error) {
	if l := h.g.leadingNow(); l != nil {
		renewal, err := h.g.unsealed(sender(ctx), r)
		if err != nil {
			return nil, err
		}
		answers := make(chan *wire.RenewReply, 1)
		l.renew(renewal, func(a *wire.RenewReply) { answers <- a })
		select {
		case a := <-answers:
			return a, nil
		case <-l.ctx.Done():
			return nil, errors.New("the leader's term has ended")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leader := h.g.leaderHint()
	if r.GetPassedOn() || leader == "" || leader == h.g.cfg.Node {
		return nil, errors.New("no leader is known here")
	}
	c, err := h.g.client(leader)
	if err != nil {
		return nil, err
	}
	return c.Renew(ctx, &wire.RenewRequest{Renewal: r.GetRenewal(), Signature: r.GetSignature(), PassedOn: true})
}

// Ping answers whether this process stands as a run.
func (h handler) Ping(_ context.Context, r *wire.PingRequest) (*wire.PingReply, error) {
	run := h.g.identity().Run
	return &wire.PingReply{Alive: len(run) > 0 && string(run) == string(r.GetRun()), Run: run}, nil
}

// Probe tells what this member saw of a run.
func (h handler) Probe(ctx context.Context, r *wire.ProbeRequest) (*wire.ProbeReply, error) {
	id, ok := state.RunIDOf(r.GetRun())
	if !ok {
		return nil, errMalformed
	}
	return h.g.witness(ctx, id), nil
}

// ReadIndex gives an index for reads that are not stale.
func (h handler) ReadIndex(ctx context.Context, _ *wire.ReadIndexRequest) (*wire.ReadIndexReply, error) {
	if !h.g.consensusRuns() || !h.g.cons.IsLeader() {
		return &wire.ReadIndexReply{NotLeader: true, Leader: h.g.leaderHint()}, nil
	}
	index, err := h.g.cons.ReadIndex(ctx)
	if errors.Is(err, consensus.ErrNotLeader) {
		return &wire.ReadIndexReply{NotLeader: true, Leader: h.g.leaderHint()}, nil
	}
	return &wire.ReadIndexReply{Index: index}, err
}

// readIndex asks whoever leads for an index, until ctx ends.
func (g *Group) readIndex(ctx context.Context) (uint64, error) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		changed := g.leaderChanged()
		if node := g.leaderHint(); node != "" {
			index, err := g.readIndexFrom(ctx, node)
			if err == nil {
				return index, nil
			}
			g.log.Debug("gms: read index not given", "by", node, "error", err)
		}
		if !pause(ctx, changed, backoff) {
			return 0, errors.Join(ErrNoQuorum, context.Cause(ctx))
		}
	}
}

func (g *Group) readIndexFrom(ctx context.Context, node string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if node == g.cfg.Node {
		return g.cons.ReadIndex(ctx)
	}
	c, err := g.client(node)
	if err != nil {
		return 0, err
	}
	r, err := c.ReadIndex(ctx, &wire.ReadIndexRequest{})
	if err == nil && r.GetNotLeader() {
		err = consensus.ErrNotLeader
	}
	return r.GetIndex(), err
}

// HomePosition tells what the group has on record about a home.
func (h handler) HomePosition(ctx context.Context, r *wire.HomePositionRequest) (*wire.HomePositionReply, error) {
	if sender(ctx) != r.GetNode() {
		return nil, errNotSender
	}
	reply := h.g.recordOf(r)
	gone := reply.GetKnown() && !reply.GetStanding() && h.g.leaderHint() != ""
	if reply.GetOtherHome() || reply.GetForgotten() || gone { // a node takes the answer as final: what this replica has not applied yet may say otherwise
		ctx, cancel := context.WithTimeout(ctx, time.Second/2)
		defer cancel()
		if h.g.Sync(ctx) == nil {
			reply = h.g.recordOf(r)
		}
	}
	if reply.GetStanding() && !reply.GetOtherHome() {
		reply.Standing = h.g.isElsewhere(ctx, r)
	}
	return reply, nil
}

// isElsewhere tells whether the open run of a node whose very home asks before it starts still answers: then two processes
// stand on copies of one home. After a restart at the same address the one that asks answers itself, as no run yet.
func (g *Group) isElsewhere(ctx context.Context, r *wire.HomePositionRequest) bool {
	run, open := g.rep.open(r.GetNode())
	if !open || string(run.Open.GetHome()) != string(r.GetHome()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	return g.ping(ctx, run)
}

// recordOf is what this node's replica has on record about a home.
func (g *Group) recordOf(r *wire.HomePositionRequest) *wire.HomePositionReply {
	reply, same := &wire.HomePositionReply{}, false
	g.rep.read(func(m *state.Machine) {
		reply.ClusterId = m.ClusterID() // empty: this replica has not read its log yet, and knows nothing
		reply.Forgotten = m.IsBurnt(r.GetHome())
		n, ok := m.Node(r.GetNode())
		if !ok {
			return
		}
		reply.Known = true
		_, reply.Standing = openRunOf(m, r.GetNode())
		if same = string(n.GetHome()) == string(r.GetHome()); same {
			reply.Index = n.GetPosition()
		} else {
			reply.OtherHome = !n.GetReplaced()
		}
	})
	if l := g.leadingNow(); l != nil && same {
		reply.Index = max(reply.Index, l.appliedBy(r.GetNode()))
	}
	return reply
}
