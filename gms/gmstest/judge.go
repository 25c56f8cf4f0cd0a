package gmstest

import (
	"slices"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// judge looks at one state.
func (o *observer) judge(m *state.Machine) {
	raised := map[[2]string]bool{}
	for _, r := range m.Recoveries() {
		if !m.IsFenced(r.GetComponent(), r.GetNode()) {
			o.broken("invariant 17: %s of %s is not fenced during its recovery", r.GetComponent(), r.GetNode())
		}
		switch r.GetState() {
		case wire.RecoveryState_RECOVERY_APPOINTED, wire.RecoveryState_RECOVERY_RAISED:
			o.judgeAppointment(m, r)
		case wire.RecoveryState_RECOVERY_WAITING, wire.RecoveryState_RECOVERY_PARKED:
			o.judgeIdle(m, r)
		}
		if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
			k := [2]string{r.GetComponent(), r.GetNode()}
			if raised[k] {
				o.broken("invariant 2: two fences on %s of %s", k[0], k[1])
			}
			raised[k] = true
		}
	}
	for _, c := range m.Claims(state.ClaimFilter{}) {
		o.judgeClaim(m, c)
	}
}

func (o *observer) judgeAppointment(m *state.Machine, r *wire.Recovery) {
	id, _ := state.RunIDOf(r.GetAppointee())
	run, known := m.Run(id)
	switch {
	case !known || !run.IsOpen():
		o.broken("invariant 2: the appointee of %s of %s is not open", r.GetComponent(), r.GetNode())
	case run.Open.GetRole() != wire.Role_ROLE_CORE || !run.Registered(r.GetComponent()):
		o.broken("invariant 2: %s is appointed to %s and cannot recover it", run.Node(), r.GetComponent())
	}
	if tried(r, id) {
		o.broken("invariant 2: %s is appointed to %s of %s again", run.Node(), r.GetComponent(), r.GetNode())
	}
}

// judgeIdle holds that a recovery which nobody is appointed to has been tried by everybody who could.
func (o *observer) judgeIdle(m *state.Machine, r *wire.Recovery) {
	for _, run := range m.Runs() {
		if run.IsOpen() && run.Open.GetRole() == wire.Role_ROLE_CORE && run.Registered(r.GetComponent()) && !tried(r, run.ID) {
			o.broken("invariant 16: %s of %s is %s, and %s has not tried it", r.GetComponent(), r.GetNode(), r.GetState(), run.Node())
		}
	}
}

func tried(r *wire.Recovery, id state.RunID) bool {
	return slices.ContainsFunc(r.GetTried(), func(t []byte) bool { return string(t) == string(id[:]) })
}

func (o *observer) judgeClaim(m *state.Machine, c *wire.ClaimState) {
	id, _ := state.RunIDOf(c.GetRun())
	switch {
	case c.GetQuarantined():
	case c.GetOrphan():
		if _, open := m.Recovery(c.GetComponent(), id); !open {
			o.broken("invariant 3: nobody recovers the orphan %s of %s", c.GetItem(), c.GetComponent())
		}
	case !m.IsOpen(id):
		o.broken("invariant 4: %s of %s is held by a closed run", c.GetItem(), c.GetComponent())
	}
}
