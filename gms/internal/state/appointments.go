package state

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// appointment finds the appointment that a command names; nil when it has moved, ended or never was (PROTOCOL.md 14).
func (m *Machine) appointment(ref *wire.RecoveryRef) *wire.Recovery {
	id, _ := RunIDOf(ref.GetRun())
	r, ok := m.recoveries.all[recoveryKey{ref.GetComponent(), id}]
	if !ok || !active(r) || r.GetIndex() != ref.GetIndex() {
		return nil
	}
	return r
}

// appointmentOf is the same for a run that says it is the appointed one.
func (m *Machine) appointmentOf(run RunID, ref *wire.RecoveryRef) *wire.Recovery {
	if r := m.appointment(ref); r != nil && isRun(r.GetAppointee(), run) {
		return r
	}
	return nil
}

func (m *Machine) notAppointed() *wire.Result {
	return m.refuse(wire.Code_CODE_NOT_APPOINTED, "the appointment has moved or ended")
}

// acquire raises the fence. Repeated by its holder it answers with the token it has.
func (m *Machine) acquire(run RunID, c *wire.Acquire) *wire.Result {
	r := m.appointmentOf(run, c.GetRecovery())
	if r == nil {
		return m.notAppointed()
	}
	if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
		result := m.noChange()
		result.Token = r.GetToken()
		return result
	}
	next := proto.CloneOf(r)
	next.State, next.Token = wire.RecoveryState_RECOVERY_RAISED, m.grant()
	m.step(next, wire.RecoveryStep_KIND_RAISED, run, "")
	m.put(next)
	m.emit(FenceRaised{Recovery: next})
	return m.granted(next.GetToken())
}

// release lowers the fence and ends the recovery, once each orphan of the run in the component is settled. What was
// adopted is the adopter's own from here.
func (m *Machine) release(run RunID, c *wire.Release) *wire.Result {
	r := m.appointmentOf(run, c.GetRecovery())
	if r == nil {
		return m.notAppointed()
	}
	if r.GetState() != wire.RecoveryState_RECOVERY_RAISED || r.GetToken() != c.GetToken() {
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "the fence is not held under this token")
	}
	if len(m.orphans(keyOfRecovery(r).run, r.GetComponent())) > 0 {
		return m.refuse(wire.Code_CODE_WORK_LEFT, "orphans of the run are not settled")
	}
	m.keepAdopted(r)
	m.endRecovery(proto.CloneOf(r), false)
	return m.ok()
}

// failRecovery counts a failed attempt, and moves the appointment on after the last one allowed.
func (m *Machine) failRecovery(run RunID, c *wire.FailRecovery) *wire.Result {
	if !validText(c.GetWhy()) {
		return m.invalid("the reason is out of bounds")
	}
	r := m.appointmentOf(run, c.GetRecovery())
	if r == nil {
		return m.notAppointed()
	}
	if c.GetUnavailable() {
		m.handOver(r, unavailable, c.GetWhy())
		return m.ok()
	}
	next := proto.CloneOf(r)
	next.Attempts++
	next.Why = c.GetWhy()
	if next.GetAttempts() >= m.maxAttempts() {
		m.handOver(next, failed, c.GetWhy())
		return m.ok()
	}
	m.step(next, wire.RecoveryStep_KIND_FAILED, run, c.GetWhy())
	m.put(next)
	m.emit(RecoveryFailed{Recovery: next})
	return m.ok()
}

// moveAppointment hands a recovery to the next candidate; only its holder lowers a fence (PROTOCOL.md 17).
func (m *Machine) moveAppointment(c *wire.MoveAppointment) *wire.Result {
	if !validText(c.GetWhy()) {
		return m.invalid("the reason is out of bounds")
	}
	r := m.appointment(c.GetRecovery())
	if r == nil {
		return m.notAppointed()
	}
	m.handOver(r, failed, c.GetWhy())
	return m.ok()
}

// retryRecovery lets everybody try a parked recovery again.
func (m *Machine) retryRecovery(c *wire.RetryRecovery) *wire.Result {
	r := m.named(c.GetComponent(), c.GetRun())
	if r == nil {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "there is no such recovery")
	}
	if active(r) {
		return m.busy(r.GetAppointee(), "the recovery is appointed")
	}
	if r.GetState() != wire.RecoveryState_RECOVERY_PARKED {
		return m.noChange()
	}
	next := proto.CloneOf(r)
	next.Tried, next.Unavailable, next.Rounds = nil, nil, 0
	m.step(next, wire.RecoveryStep_KIND_RETRIED, RunID{}, "")
	m.appoint(next)
	return m.ok()
}

// dropRecovery ends a recovery by an operator's word and frees its orphans (PROTOCOL.md 17); those that were orphaned
// too often are quarantined (PROTOCOL.md 16).
func (m *Machine) dropRecovery(c *wire.DropRecovery) *wire.Result {
	if !validText(c.GetWhy()) {
		return m.invalid("the reason is out of bounds")
	}
	r := m.named(c.GetComponent(), c.GetRun())
	if r == nil {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "there is no such recovery")
	}
	if active(r) {
		m.orphanAdopted(r, false)
		m.emit(AppointmentEnded{Recovery: r, Why: c.GetWhy()})
	}
	for _, o := range m.orphans(keyOfRecovery(r).run, r.GetComponent()) {
		how := wire.EndClaim_HOW_FREE
		if o.GetOrphanings() >= m.maxAttempts() {
			how = wire.EndClaim_HOW_QUARANTINE
		}
		m.settle(o, how, false)
	}
	last := proto.CloneOf(r)
	last.Why = c.GetWhy()
	m.endRecovery(last, true)
	return m.ok()
}

func (m *Machine) named(component string, run []byte) *wire.Recovery {
	id, _ := RunIDOf(run)
	return m.recoveries.all[recoveryKey{component, id}]
}

// holdsFence reports whether the run holds the fence on the dead run in the component, under the token that f gives.
func (m *Machine) holdsFence(run RunID, f *wire.FenceHeld, component string, dead []byte) bool {
	r := m.fence(f)
	return r != nil && isRun(r.GetAppointee(), run) && f.GetComponent() == component && string(f.GetRun()) == string(dead)
}

// fence is the recovery whose raised fence has this token; nil without one.
func (m *Machine) fence(f *wire.FenceHeld) *wire.Recovery {
	r := m.named(f.GetComponent(), f.GetRun())
	if r.GetState() != wire.RecoveryState_RECOVERY_RAISED || r.GetToken() != f.GetToken() || r.GetNode() != f.GetNode() {
		return nil
	}
	return r
}

func copyFence(f *wire.FenceHeld) *wire.FenceHeld {
	return &wire.FenceHeld{Component: f.GetComponent(), Node: f.GetNode(), Run: f.GetRun(), Token: f.GetToken()}
}

// Recoveries are those that have not ended, by position of the closing, then component, node and epoch.
func (m *Machine) Recoveries() []*wire.Recovery {
	list := make([]*wire.Recovery, 0, len(m.recoveries.all))
	for _, r := range m.recoveries.all {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *wire.Recovery) int {
		return cmp.Or(cmp.Compare(a.GetSince(), b.GetSince()), cmp.Compare(a.GetComponent(), b.GetComponent()),
			cmp.Compare(a.GetNode(), b.GetNode()), cmp.Compare(m.epochOf(a), m.epochOf(b)))
	})
	return list
}

// epochOf is that of the dead run: of two that one entry closed, the older one's recovery goes first.
func (m *Machine) epochOf(r *wire.Recovery) uint64 { return m.runs.all[keyOfRecovery(r).run].Epoch }

// Recovery is that of a dead run in a component; false when it has ended or never was.
func (m *Machine) Recovery(component string, dead RunID) (*wire.Recovery, bool) {
	r, ok := m.recoveries.all[recoveryKey{component, dead}]
	return r, ok
}

// Ended are the last 1,000 recoveries that ended, oldest first.
func (m *Machine) Ended() []*wire.EndedRecovery { return slices.Clone(m.recoveries.ended) }
