package state

import (
	"strings"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

const (
	// MaxSteps of a recovery's time line are kept: the first, which says when and why the run was closed, and the last ones.
	MaxSteps = 20
	maxWhy   = 200 // bytes of a step's reason
)

// step notes what happened to a recovery. r is not shared yet.
func (m *Machine) step(r *wire.Recovery, kind wire.RecoveryStep_Kind, run RunID, why string) {
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "")
	}
	s := &wire.RecoveryStep{Kind: kind, Position: m.Position(), Time: m.time, Run: run.Bytes(), Node: m.runs.all[run].Node(), Why: why}
	if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
		s.Token = r.GetToken()
	}
	if len(r.GetSteps()) >= MaxSteps {
		r.Steps = append(r.Steps[:1:1], r.Steps[2:]...)
	}
	r.Steps = append(r.Steps, s)
}

// appointeeOf is the run that a recovery is appointed to; none while it is nobody's.
func appointeeOf(r *wire.Recovery) RunID {
	id, _ := RunIDOf(r.GetAppointee())
	return id
}
