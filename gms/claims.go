package gms

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// Claim asks for the right to work on one item, as its round trip n (`/<component>/B<item>-RT<n>`). It does not wait for
// another holder: ErrBusy (as *HolderError), also when that holder is dead and not recovered yet. ErrQuarantined,
// ErrLeaseExpired, ErrRunClosed; ErrUnknown when ctx ended first: the group then gives the claim back by itself as soon as
// it learns that it was granted.
func (g *Group) Claim(ctx context.Context, component, item string, roundTrip uint32) (signals.Claim, error) {
	what := fmt.Sprintf("claim %s of %s", item, component)
	if !g.works() {
		return signals.Claim{}, fmt.Errorf("%s: %w: a %s claims nothing", what, ErrRole, g.cfg.Role)
	}
	if err := g.mayStart(); err != nil {
		return signals.Claim{}, fmt.Errorf("%s: %w", what, err)
	}
	cmd := &wire.Command{Op: &wire.Command_Claim{Claim: &wire.Claim{Component: component, Item: item, RoundTrip: roundTrip}}}
	r, err := g.askGrant(ctx, what, cmd, func(r *wire.Result) *wire.Command {
		return endClaim(component, item, r.GetToken(), wire.EndClaim_HOW_ABANDON, nil)
	})
	if err != nil {
		return signals.Claim{}, err
	}
	return signals.Claim{Component: component, Item: item, RoundTrip: r.GetRoundTrip(), Token: r.GetToken()}, nil
}

// EndClaim ends a claim of this run: signals.Complete, Abandon or Quarantine. ErrNotFound when nobody claims the item (any
// more), ErrNotHolder when it is not this run's under that token. It is repeated until ctx ends.
func (g *Group) EndClaim(ctx context.Context, c signals.Claim, how signals.How) error {
	_, err := g.ask(ctx, fmt.Sprintf("end claim on %s of %s", c.Item, c.Component), endClaim(c.Component, c.Item, c.Token, howOf(how), nil))
	return err
}

func howOf(how signals.How) wire.EndClaim_How {
	switch how {
	case signals.Complete:
		return wire.EndClaim_HOW_COMPLETE
	case signals.Abandon:
		return wire.EndClaim_HOW_ABANDON
	case signals.Free:
		return wire.EndClaim_HOW_FREE
	case signals.Quarantine:
		return wire.EndClaim_HOW_QUARANTINE
	}
	return wire.EndClaim_HOW_UNSPECIFIED
}

func endClaim(component, item string, token uint64, how wire.EndClaim_How, fence *wire.FenceHeld) *wire.Command {
	return &wire.Command{Op: &wire.Command_EndClaim{EndClaim: &wire.EndClaim{Component: component, Item: item, Token: token, How: how, Fence: fence}}}
}

// askGrant is ask for a command that grants something. When the outcome is unknown at the end of ctx, the command is
// repeated in the background until it is known, and a late grant is undone: nothing is held that nobody knows of.
func (g *Group) askGrant(ctx context.Context, what string, cmd *wire.Command, undo func(*wire.Result) *wire.Command) (*wire.Result, error) {
	s := g.standingNow()
	if s == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNoQuorum)
	}
	cmd.Run = s.run[:]
	if err := g.commands.begin(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	r, err := g.commands.repeat(ctx, cmd)
	if err == nil {
		g.commands.end(cmd.GetSeq())
		return r, g.errorOf(what, r)
	}
	g.background(func(ctx context.Context) {
		defer g.commands.end(cmd.GetSeq())
		r, err := g.commands.repeat(ctx, cmd)
		if err != nil || g.errorOf(what, r) != nil {
			return
		}
		back := undo(r)
		back.Run = cmd.GetRun()
		if _, err := g.commands.do(ctx, back); err != nil {
			g.log.Debug("gms: late grant not given back", "what", what, "error", err)
		}
	})
	return nil, fmt.Errorf("%s: %w", what, err)
}

// ClaimState is a claim as the log has it.
type ClaimState struct {
	signals.Claim
	Run         string // who claimed it; of an orphan the dead run
	Node        string // that run's node
	Orphan      bool   // its run is closed: only the holder of the fence may touch it
	Adopted     bool   // belongs to a fence until its Release
	Fence       uint64 // the token of that fence
	Quarantined bool   // nobody may claim the item until an operator frees it
	Orphanings  uint32 // how often the item has been orphaned
}

// Claims lists the claims that this node's replica knows.
func (g *Group) Claims() []ClaimState {
	var list []ClaimState
	g.rep.read(func(m *state.Machine) {
		for _, c := range m.Claims(state.ClaimFilter{}) {
			list = append(list, claimOf(m, c))
		}
	})
	return list
}

// ClaimOn is the claim on an item that this node's replica knows; false when nobody claims it.
func (g *Group) ClaimOn(component, item string) (claim ClaimState, ok bool) {
	g.rep.read(func(m *state.Machine) {
		for _, c := range m.Claims(state.ClaimFilter{Component: component, Item: item}) {
			if c.GetComponent() == component && c.GetItem() == item { // an empty word would choose all
				claim, ok = claimOf(m, c), true
			}
		}
	})
	return claim, ok
}

func claimOf(m *state.Machine, c *wire.ClaimState) ClaimState {
	out := ClaimState{
		Claim: signals.Claim{Component: c.GetComponent(), Item: c.GetItem(), RoundTrip: c.GetRoundTrip(), Token: c.GetToken()},
		Run:   hexID(c.GetRun()), Orphan: c.GetOrphan(), Adopted: c.GetAdopted() != nil, Fence: c.GetAdopted().GetToken(), Quarantined: c.GetQuarantined(), Orphanings: c.GetOrphanings(),
	}
	if id, ok := state.RunIDOf(c.GetRun()); ok {
		if run, ok := m.Run(id); ok {
			out.Node = run.Node()
		}
	}
	return out
}
