package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Drain implements admin.Drains.
func (p people) Drain(ctx context.Context, node string) (api.Drain, error) {
	p.fresh(ctx)
	if err := p.knows(node); err != nil {
		return api.Drain{}, err
	}
	return p.a.drainShown(ctx, node), nil
}

// DrainNode implements admin.Drains.
func (p people) DrainNode(ctx context.Context, want api.NodeName) (api.Drain, error) {
	return p.decideDrain(ctx, want.Node, func(ctx context.Context) error {
		return p.a.wishDrain(ctx, want.Node, drainRecord{By: (jobs(p)).asker(ctx)})
	})
}

// UndrainNode implements admin.Drains.
func (p people) UndrainNode(ctx context.Context, want api.NodeName) (api.Drain, error) {
	return p.decideDrain(ctx, want.Node, func(ctx context.Context) error { return p.a.takeDrainBack(ctx, want.Node) })
}

func (p people) decideDrain(ctx context.Context, node string, decide func(context.Context) error) (api.Drain, error) {
	if err := p.knows(node); err != nil {
		return api.Drain{}, err
	}
	if err := decide(ctx); err != nil {
		return api.Drain{}, err
	}
	_, _, wanted := p.a.drainOf(node)
	p.a.log.Info("app: an operator has decided whether a node works", "node", node, "drained", wanted)
	if err := p.a.group.Sync(ctx); err != nil { // that this node knows it too
		return api.Drain{}, err
	}
	return p.Drain(ctx, node)
}

// knows refuses a node of which the group has neither a run, nor a place in its log, nor a drain.
func (p people) knows(node string) error {
	_, here := p.a.member(node)
	_, _, drained := p.a.drainOf(node)
	if here || drained || slices.ContainsFunc(p.a.group.Servers(), func(s gms.Server) bool { return s.Node == node }) {
		return nil
	}
	return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("the group knows no node %q", node), Hint: "fencepost members lists those that run"}
}

// MayRestart implements admin.Drains.
func (p people) MayRestart(ctx context.Context, node string) (api.MayRestart, error) {
	fresh := p.fresh(ctx)
	if err := p.knows(node); err != nil {
		return api.MayRestart{}, err
	}
	if !p.a.group.Follows() {
		return api.MayRestart{}, &api.Error{Code: api.CodeUnavailable, Message: "this node is fed by another one, and does not know who votes", Hint: "ask a node that votes: fencepost members"}
	}
	c := crossing{node: node, confirmed: fresh, servers: p.a.group.Servers(), members: p.a.group.Members(), voters: p.a.cfg.Raft.Voters, fences: p.fences()}
	for _, e := range p.a.group.Cache().ListLocal(drainComponent, "", "") {
		c.drained = append(c.drained, drainedNode{e.Key.Key, e.Version})
	}
	why := c.against()
	return api.MayRestart{Node: node, May: len(why) == 0, Why: why}, nil
}

// crossing is what decides whether a node may be away for a while.
type crossing struct {
	node      string
	confirmed bool // by a majority
	servers   []gms.Server
	members   []gms.MemberDetail
	voters    int // that the group has when there are enough who can be one
	drained   []drainedNode
	fences    []api.Fence
}

// drainedNode is a node that is to begin nothing, and since when: later wishes have larger versions.
type drainedNode struct {
	node  string
	since uint64
}

// before tells whether another one's drain stands against the node. Of two that were drained at the same time, by two people who
// had both been told that theirs may, one only may go: the one that was drained first.
func (c crossing) before(d drainedNode) bool {
	if d.node == c.node {
		return false
	}
	own := slices.IndexFunc(c.drained, func(d drainedNode) bool { return d.node == c.node })
	return own < 0 || d.since < c.drained[own].since
}

// against is what stands against it, one sentence each. It is pure.
func (c crossing) against() (why []string) {
	why = []string{}
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if !c.confirmed {
		add(unconfirmed)
	}
	voting, able := 0, 0
	for _, s := range c.servers {
		if !s.Voter {
			continue
		}
		voting++
		if !slices.ContainsFunc(c.members, func(m gms.MemberDetail) bool { return m.Node == s.Node }) {
			add("voter %s is not here", s.Node)
		}
	}
	for _, m := range c.members {
		votes := m.Role == signals.Core || m.Role == signals.Witness
		if votes {
			able++
		}
		switch {
		case m.Suspected:
			add("%s is suspected: it answers late or not at all", m.Node)
		case votes && !m.Ready:
			add("%s is not ready yet", m.Node)
		}
		if m.Node != c.node && len(m.Details[stoppingDetail]) > 0 {
			add("%s stops just now", m.Node)
		}
	}
	if want := oddOf(min(c.voters, able)); voting < want {
		add("%d members vote, and there shall be %d: one has to catch up first", voting, want)
	}
	for _, d := range c.drained {
		if c.before(d) {
			add("%s is drained: fencepost node undrain %s", d.node, d.node)
		}
	}
	for _, f := range c.fences {
		add("the fence on %s of %s is open: fencepost fences", f.Component, f.Node)
	}
	return why
}

// oddOf is the largest odd number up to n.
func oddOf(n int) int {
	if n%2 == 0 {
		n--
	}
	return n
}
