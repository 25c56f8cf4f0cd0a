package state

import (
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// permitted decides whether a command may come from its sender: the leader itself (no sender) may give all of them, a node
// those of its own runs and those that an operator may give anywhere. A node speaks for no other node's run and for no
// leader, whatever the leader that took the command in believes. A command that is not named here is the leader's.
func (m *Machine) permitted(run RunID, c *wire.Command) bool {
	sender := c.GetSender()
	if sender == "" {
		return true
	}
	if c.GetTerm() != 0 || !m.isOf(run, sender) {
		return false
	}
	switch op := c.GetOp().(type) {
	case *wire.Command_OpenRun:
		return op.OpenRun.GetNode() == sender
	case *wire.Command_CloseRun:
		return op.CloseRun.GetEvidence() == wire.Evidence_EVIDENCE_OPERATOR ||
			op.CloseRun.GetEvidence() == wire.Evidence_EVIDENCE_LEFT && op.CloseRun.GetNode() == sender
	case *wire.Command_MoveAppointment:
		return op.MoveAppointment.GetForce()
	case *wire.Command_Rebase, *wire.Command_RaiseProtocol, *wire.Command_ChangeSettings, *wire.Command_RetryRecovery, *wire.Command_DropRecovery,
		*wire.Command_ReplaceHome, *wire.Command_ForgetNode, // an operator's
		*wire.Command_CacheTxn, *wire.Command_EndClaim: // an operator's, or of a run
		return true
	}
	return !run.IsZero() && ofRun(c)
}

// isOf tells whether the run, if there is one, is the node's. One that is not known is nobody's, and refused as such.
func (m *Machine) isOf(run RunID, node string) bool {
	r, known := m.Run(run)
	return run.IsZero() || !known || r.Node() == node
}

// ofRun tells whether only a run can give the command.
func ofRun(c *wire.Command) bool {
	switch c.GetOp().(type) {
	case *wire.Command_SetReady, *wire.Command_SetDetail, *wire.Command_AnnounceGroup, *wire.Command_RegisterComponent, *wire.Command_Lock, *wire.Command_Unlock,
		*wire.Command_Claim, *wire.Command_Adopt, *wire.Command_RaiseFence, *wire.Command_LowerFence, *wire.Command_Acquire,
		*wire.Command_Release, *wire.Command_FailRecovery:
		return true
	}
	return false
}
