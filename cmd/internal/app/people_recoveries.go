package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// Fences implements admin.Recoveries.
func (p people) Fences(ctx context.Context) ([]api.Fence, error) {
	p.fresh(ctx)
	return p.fences(), nil
}

// fences are those that this node knows.
func (p people) fences() []api.Fence {
	list := []api.Fence{}
	recoveries, _ := p.a.group.Recoveries()
	for _, r := range recoveries {
		list = append(list, p.fence(r))
	}
	for _, f := range p.a.group.MaintenanceFences() {
		list = append(list, api.Fence{
			Component: f.Component, Node: f.Node, Holder: f.RaiserNode, HolderRun: f.Raiser, Token: f.Token, State: api.FenceMaintenance,
			Tried: []string{}, WaitingFor: f.RaiserNode + " to lower it",
		})
	}
	return list
}

func (p people) fence(r gms.Recovery) api.Fence {
	return api.Fence{
		Component: r.Component, Node: r.Node, Run: r.Run, Holder: r.AppointeeNode, HolderRun: r.Appointee, Token: r.Token, State: r.State,
		Index: r.Index, Attempts: int(r.Failures), Tried: slices.Concat([]string{}, r.TriedNodes), Evidence: string(r.Evidence), Problem: r.Why,
		Since: began(r), WaitingFor: waitingFor(r, p.leaseWait(r)),
	}
}

// leaseWait is what is left of the leases that the holder waits for, as far as this node can tell.
func (p people) leaseWait(r gms.Recovery) time.Duration {
	if r.State != api.FenceRaised || r.Exclusion != signals.ExclusionLease {
		return 0
	}
	left, _ := p.a.group.LeaseWait(r.Appointment)
	return left
}

// waitingFor says in one phrase what has to happen next.
func waitingFor(r gms.Recovery, lease time.Duration) string {
	switch r.State {
	case api.FenceQueued:
		return "the recovery of an older run of " + r.Node
	case api.FenceWaiting:
		return "a core member that recovers " + r.Component
	case api.FenceAppointed:
		return r.AppointeeNode + " to raise it"
	case api.FenceParked:
		return "an operator: fencepost recoveries retry, or drop"
	}
	if lease > 0 {
		return fmt.Sprintf("the lease of %s to run out, %v", r.Node, lease.Round(time.Second))
	}
	return r.AppointeeNode + " to finish"
}

// Recoveries implements admin.Recoveries.
func (p people) Recoveries(ctx context.Context) ([]api.Recovery, error) {
	p.fresh(ctx)
	return p.recoveries(), nil
}

// recoveries are those that this node knows, the open ones first.
func (p people) recoveries() []api.Recovery {
	list := []api.Recovery{}
	recoveries, _ := p.a.group.Recoveries()
	for _, r := range recoveries {
		list = append(list, recoveryOf(r))
	}
	for _, e := range slices.Backward(p.a.group.Ended()) {
		list = append(list, endedOf(e))
	}
	return list
}

func recoveryOf(r gms.Recovery) api.Recovery {
	out := api.Recovery{
		Component: r.Component, Node: r.Node, Run: r.Run, Evidence: string(r.Evidence), State: r.State, Recoverer: r.AppointeeNode,
		Token: r.Token, Attempts: int(r.Failures), Tried: slices.Concat([]string{}, r.TriedNodes), Problem: r.Why, Opened: r.Since,
		Since: began(r), Steps: []api.Step{},
	}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, api.Step{
			What: s.What, Position: s.Position, At: optional(s.Time), Node: s.Node, Run: s.Run, Token: s.Token, Why: s.Why,
		})
	}
	return out
}

func endedOf(e gms.EndedRecovery) api.Recovery {
	out := recoveryOf(e.Recovery)
	out.State, out.Ended = "released", e.Ended
	if e.Dropped {
		out.State = "dropped"
	}
	if last := len(out.Steps) - 1; last >= 0 {
		out.EndedAt = out.Steps[last].At
		if out.Recoverer == "" {
			out.Recoverer = out.Steps[last].Node // its run may be forgotten, its name is kept
		}
	}
	return out
}

// began is when the run was closed.
func began(r gms.Recovery) *time.Time {
	if len(r.Steps) == 0 {
		return nil
	}
	return optional(r.Steps[0].Time)
}

// RetryRecovery implements admin.Operator.
func (p people) RetryRecovery(ctx context.Context, want api.RecoveryName) (api.Recovery, error) {
	r, err := p.open(ctx, want)
	if err != nil {
		return api.Recovery{}, err
	}
	if err := p.a.group.RetryRecovery(ctx, r.Component, r.Run); err != nil {
		return api.Recovery{}, explained(err, r)
	}
	return p.after(ctx, r)
}

// DropRecovery implements admin.Operator.
func (p people) DropRecovery(ctx context.Context, want api.DropRecovery) (api.Recovery, error) {
	r, err := p.open(ctx, want.RecoveryName)
	if err != nil {
		return api.Recovery{}, err
	}
	p.a.log.Warn("app: an operator drops a recovery", "recovers", r.Component, "node", r.Node, "run", r.Run, "why", want.Why)
	if err := p.a.group.DropRecovery(ctx, r.Component, r.Run, want.Why); err != nil {
		return api.Recovery{}, explained(err, r)
	}
	return p.after(ctx, r)
}

// open finds the open recovery that a component and the beginning of a run's id name.
func (p people) open(ctx context.Context, want api.RecoveryName) (gms.Recovery, error) {
	p.fresh(ctx)
	list, _ := p.a.group.Recoveries()
	list = slices.DeleteFunc(list, func(r gms.Recovery) bool { return r.Component != want.Component || !strings.HasPrefix(r.Run, want.Run) })
	switch {
	case len(list) == 0:
		return gms.Recovery{}, &api.Error{
			Code:    api.CodeNotFound,
			Message: fmt.Sprintf("no recovery of %s of a run %s is open", want.Component, want.Run),
			Hint:    "fencepost fences lists the open ones: the component, and the first digits of the run",
		}
	case len(list) > 1:
		return gms.Recovery{}, &api.Error{
			Code: api.CodeUsage, Message: fmt.Sprintf("%d recoveries of %s are of runs that begin with %s", len(list), want.Component, want.Run),
			Hint: "give more digits of the run",
		}
	}
	return list[0], nil
}

// explained says what to do about a refusal.
func explained(err error, r gms.Recovery) error {
	e := translate(err)
	if e == nil {
		return err
	}
	if e.Code == api.CodeBusy {
		e.Message = "the recovery of " + r.Component + " of " + r.Node + " is not parked: " + r.AppointeeNode + " is at it"
		e.Hint = "only a parked recovery is retried; fencepost fence lower --force takes a raised fence from its holder"
	}
	return e
}

// after shows what has become of a recovery, once this node knows.
func (p people) after(ctx context.Context, was gms.Recovery) (api.Recovery, error) {
	if err := p.a.group.Sync(ctx); err != nil {
		return api.Recovery{}, err
	}
	list, _ := p.a.group.Recoveries()
	for _, r := range list {
		if r.Component == was.Component && r.Run == was.Run {
			return recoveryOf(r), nil
		}
	}
	for _, e := range slices.Backward(p.a.group.Ended()) {
		if e.Component == was.Component && e.Run == was.Run {
			return endedOf(e), nil
		}
	}
	return recoveryOf(was), nil
}

// RaiseFence implements admin.Operator: a maintenance fence of this node's run.
func (p people) RaiseFence(ctx context.Context, want api.FenceName) (api.Fence, error) {
	g := p.a.group
	if !slices.ContainsFunc(g.View().Members, func(m signals.Member) bool { return m.Node == want.Node }) {
		return api.Fence{}, &api.Error{Code: api.CodeNotFound, Message: "node " + want.Node + " is not in the view", Hint: "only a living node is maintained; see fencepost members"}
	}
	if !slices.ContainsFunc(g.View().Members, func(m signals.Member) bool { return slices.Contains(m.Components, want.Component) }) {
		return api.Fence{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no member has a component %q", want.Component), Hint: "see fencepost components"}
	}
	token, err := g.RaiseFence(ctx, want.Component, want.Node)
	if errors.Is(err, gms.ErrBusy) {
		return api.Fence{}, &api.Error{Code: api.CodeBusy, Message: err.Error(), Hint: "fencepost fences shows who raised it"}
	}
	if err != nil {
		return api.Fence{}, err
	}
	node, run := g.Self()
	return api.Fence{
		Component: want.Component, Node: want.Node, Holder: node, HolderRun: run, Token: token, State: api.FenceMaintenance, Tried: []string{},
		WaitingFor: node + " to lower it",
	}, nil
}

// LowerFence implements admin.Operator.
func (p people) LowerFence(ctx context.Context, want api.LowerFence) (api.Fence, error) {
	g := p.a.group
	p.fresh(ctx)
	for _, f := range g.MaintenanceFences() {
		if f.Component == want.Component && f.Node == want.Node && f.Token == want.Token {
			return p.lowerMaintenance(ctx, f)
		}
	}
	if !want.Force {
		return api.Fence{}, &api.Error{
			Code:    api.CodeConflict,
			Message: fmt.Sprintf("no maintenance fence on %s of %s was raised under token %d", want.Component, want.Node, want.Token),
			Hint:    "see fencepost fences; the fence of a recovery is lowered by its holder, or taken from it by --force",
		}
	}
	p.a.log.Warn("app: an operator takes a fence from its holder", "recovers", want.Component, "node", want.Node, "token", want.Token, "why", want.Why)
	if err := g.ForceFence(ctx, want.Component, want.Node, want.Token, want.Why); err != nil {
		return api.Fence{}, err
	}
	if err := g.Sync(ctx); err != nil {
		return api.Fence{}, err
	}
	list, _ := g.Recoveries()
	for _, r := range list {
		if r.Component == want.Component && r.Node == want.Node && r.State != api.FenceQueued {
			return p.fence(r), nil
		}
	}
	return api.Fence{Component: want.Component, Node: want.Node, State: api.FenceLowered, Tried: []string{}}, nil // released by the next already
}

func (p people) lowerMaintenance(ctx context.Context, f gms.MaintenanceFence) (api.Fence, error) {
	if node, run := p.a.group.Self(); run != f.Raiser {
		return api.Fence{}, &api.Error{
			Code: api.CodeConflict, Message: fmt.Sprintf("the fence was raised by %s, not by %s", f.RaiserNode, node),
			Hint: "lower it there; it also ends when that node is stopped",
		}
	}
	err := p.a.group.LowerFence(ctx, f.Component, f.Node, f.Token)
	return api.Fence{Component: f.Component, Node: f.Node, Holder: f.RaiserNode, HolderRun: f.Raiser, Token: f.Token, State: api.FenceLowered, Tried: []string{}}, err
}
