package gms

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// What an operator asks of the group. Each call blocks until it is decided, or ctx ends: ErrUnknown, ErrNoQuorum. It works
// on any node that reaches a leader, whether its own run stands or not.

// ReplaceHome lets the node's next run come from another home: its disk is lost. The new home follows the log first and
// votes when it has caught up. The old one is refused from then on (ErrForgotten), unless a run of it is open. ErrNotFound for a node that the group does not know.
func (g *Group) ReplaceHome(ctx context.Context, node string) error {
	_, err := g.decided(ctx, "replace the home of "+node, &wire.Command{Op: &wire.Command_ReplaceHome{ReplaceHome: &wire.ReplaceHome{Node: node}}})
	return err
}

// ForgetNode removes a node for good: what the group keeps of it, its place in the Raft configuration (a dead voter's as soon
// as a successor votes, or the rest is a healthy majority without it), and its home, which is refused from then on
// (ErrForgotten). The same name may come again with another home, as a newcomer. ErrBusy while its run is open or a recovery
// of it has not ended; ErrNotFound for a node that the group does not know.
func (g *Group) ForgetNode(ctx context.Context, node string) error {
	what := "forget " + node
	r, err := g.commands.do(ctx, &wire.Command{Op: &wire.Command_ForgetNode{ForgetNode: &wire.ForgetNode{Node: node, Burn: true}}})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if r.GetCode() != wire.Code_CODE_BUSY {
		return g.errorOf(what, r)
	}
	hint := "see `fencepost recoveries`: retry or drop them first"
	if len(r.GetHolder()) > 0 {
		hint = "stop the node first; one that does not come back is closed within its lease"
	}
	return withHint(fmt.Errorf("%s: %w: %s", what, ErrBusy, r.GetDetail()), hint)
}

// CloseRun closes a run by an operator's word, whatever its lease says; what it held is recovered. A run that is closed
// already is no error; ErrRunClosed is a run that is not known.
func (g *Group) CloseRun(ctx context.Context, node, run, reason string) error {
	id, err := parseRun(run)
	if err != nil {
		return err
	}
	_, err = g.decided(ctx, "close run "+run+" of "+node, &wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{
		Node: node, Run: id.Bytes(), Evidence: wire.Evidence_EVIDENCE_OPERATOR, Detail: reason,
	}}})
	return err
}

// RetryRecovery lets everybody try a parked recovery again. ErrBusy while somebody is appointed, ErrNotFound when there is
// no such recovery.
func (g *Group) RetryRecovery(ctx context.Context, component, deadRun string) error {
	id, err := parseRun(deadRun)
	if err != nil {
		return err
	}
	_, err = g.decided(ctx, "retry the recovery of "+component, &wire.Command{Op: &wire.Command_RetryRecovery{
		RetryRecovery: &wire.RetryRecovery{Component: component, Run: id.Bytes()},
	}})
	return err
}

// DropRecovery ends a recovery by an operator's word and frees its orphans; those that were orphaned too often are
// quarantined. ErrNotFound when there is no such recovery.
func (g *Group) DropRecovery(ctx context.Context, component, deadRun, reason string) error {
	id, err := parseRun(deadRun)
	if err != nil {
		return err
	}
	_, err = g.decided(ctx, "drop the recovery of "+component, &wire.Command{Op: &wire.Command_DropRecovery{
		DropRecovery: &wire.DropRecovery{Component: component, Run: id.Bytes(), Why: reason},
	}})
	return err
}

// ForceFence takes a raised fence from its holder, who does not lower it, and hands the recovery to the next candidate, under
// a larger token (PROTOCOL.md 17). The token says which fence is meant: ErrNotFound when none is raised on that component of
// the node, ErrNotHolder when it was raised under another token meanwhile. A maintenance fence is lowered by its raiser alone.
func (g *Group) ForceFence(ctx context.Context, component, node string, token uint64, reason string) error {
	what := "take the fence on " + component + " of " + node
	var fence *wire.Recovery
	g.rep.read(func(m *state.Machine) {
		for _, r := range m.Recoveries() {
			if r.GetComponent() == component && r.GetNode() == node && r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
				fence = r // at most one is raised
			}
		}
	})
	switch {
	case fence == nil:
		return fmt.Errorf("%s: %w: no such fence is raised", what, ErrNotFound)
	case fence.GetToken() != token:
		return fmt.Errorf("%s: %w: it is raised under token %d", what, ErrNotHolder, fence.GetToken())
	}
	_, err := g.decided(ctx, what, &wire.Command{Op: &wire.Command_MoveAppointment{MoveAppointment: &wire.MoveAppointment{
		Recovery: &wire.RecoveryRef{Component: component, Run: fence.GetRun(), Index: fence.GetIndex()}, Why: reason, Force: true,
	}}})
	return err
}

// FreeItem has a quarantined item be claimed again, as if nobody had died with it. ErrNotFound when nobody has claimed it,
// ErrNotHolder when it is claimed and not quarantined.
func (g *Group) FreeItem(ctx context.Context, component, item string) error {
	_, err := g.decided(ctx, "free "+item+" of "+component, endClaim(component, item, 0, wire.EndClaim_HOW_FREE, nil))
	return err
}
