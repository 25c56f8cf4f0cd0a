package state

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// recoveryKey names a recovery: one per closed run and component.
type recoveryKey struct {
	component string
	run       RunID
}

// fenceKey names what a fence guards.
type fenceKey struct{ component, node string }

// recoveryTable holds the recoveries that have not ended.
type recoveryTable struct {
	all    map[recoveryKey]*wire.Recovery
	queues map[fenceKey][]RunID // oldest dead run first: only the first is worked on (PROTOCOL.md 9)
	of     map[RunID]int        // number per dead run
	ended  []*wire.EndedRecovery
}

func newRecoveryTable() recoveryTable {
	return recoveryTable{
		all:    map[recoveryKey]*wire.Recovery{},
		queues: map[fenceKey][]RunID{},
		of:     map[RunID]int{},
	}
}

// maxEnded ended recoveries are kept for people.
const maxEnded = 1000

func keyOfRecovery(r *wire.Recovery) recoveryKey {
	id, _ := RunIDOf(r.GetRun())
	return recoveryKey{r.GetComponent(), id}
}

func guards(r *wire.Recovery) fenceKey { return fenceKey{r.GetComponent(), r.GetNode()} }

func active(r *wire.Recovery) bool {
	return r.GetState() == wire.RecoveryState_RECOVERY_APPOINTED || r.GetState() == wire.RecoveryState_RECOVERY_RAISED
}

// openRecovery begins the recovery of a closed run in a component, or queues it behind those of earlier runs.
func (m *Machine) openRecovery(component string, run Run, order [][]byte) {
	r := &wire.Recovery{
		Component: component, Run: run.ID.Bytes(), Node: run.Node(), Order: order,
		Since: run.Closed, EndedHolder: run.Closed, Evidence: run.Evidence,
	}
	m.step(r, wire.RecoveryStep_KIND_CLOSED, run.ID, run.Detail)
	queue := m.recoveries.queues[guards(r)]
	m.recoveries.queues[guards(r)] = append(slices.Clone(queue), run.ID)
	m.recoveries.of[run.ID]++
	if len(queue) > 0 {
		r.State = wire.RecoveryState_RECOVERY_QUEUED
		m.step(r, wire.RecoveryStep_KIND_QUEUED, RunID{}, "")
		m.put(r)
		m.emit(RecoveryQueued{Recovery: r})
		return
	}
	m.appoint(r)
}

func (m *Machine) put(r *wire.Recovery) { m.recoveries.all[keyOfRecovery(r)] = r }

// appoint gives a recovery that belongs to nobody to the first candidate that has not tried it. Who only found the
// resources away is asked again when nobody else is left (PROTOCOL.md 15). r is not shared yet.
func (m *Machine) appoint(r *wire.Recovery) {
	candidates := m.candidates(r)
	next, ok := firstUntried(candidates, r.GetTried(), r.GetUnavailable())
	if !ok && len(r.GetUnavailable()) > 0 {
		r.Unavailable = nil
		r.Rounds++
		next, ok = firstUntried(candidates, r.GetTried(), nil)
	}
	r.Appointee, r.Attempts = nil, 0
	switch {
	case ok:
		r.State, r.Appointee = wire.RecoveryState_RECOVERY_APPOINTED, next.run.Bytes()
		r.Index = max(m.Position(), r.GetIndex()+1)
		m.step(r, wire.RecoveryStep_KIND_APPOINTED, next.run, "")
		m.emit(Appointed{Recovery: r})
	case len(candidates) > 0:
		r.State = wire.RecoveryState_RECOVERY_PARKED
		m.step(r, wire.RecoveryStep_KIND_PARKED, RunID{}, "")
		m.emit(RecoveryParked{Recovery: r})
	default:
		r.State = wire.RecoveryState_RECOVERY_WAITING
		m.step(r, wire.RecoveryStep_KIND_WAITING, RunID{}, "")
		m.emit(RecoveryWaiting{Recovery: r})
	}
	m.put(r)
}

func firstUntried(list []candidate, lists ...[][]byte) (candidate, bool) {
	for _, c := range list {
		if !slices.ContainsFunc(lists, func(tried [][]byte) bool { return containsRun(tried, c.run) }) {
			return c, true
		}
	}
	return candidate{}, false
}

func containsRun(list [][]byte, id RunID) bool {
	return slices.ContainsFunc(list, func(b []byte) bool { return isRun(b, id) })
}

// candidates are the open core runs that registered the component, in the order of the selector.
func (m *Machine) candidates(r *wire.Recovery) []candidate {
	var list []candidate
	for _, id := range m.runs.open {
		run := m.runs.all[id]
		if run.Open.GetRole() == wire.Role_ROLE_CORE && run.Registered(r.GetComponent()) {
			list = append(list, candidateOf(run))
		}
	}
	dead := m.runs.all[keyOfRecovery(r).run]
	c := choice{component: r.GetComponent(), dead: candidateOf(dead), selector: m.settings.GetSelector(), host: r.GetOrder()}
	if own := dead.Component(r.GetComponent()).GetSelector(); own != wire.Selector_SELECTOR_UNSPECIFIED {
		c.selector = own
	}
	return c.order(list)
}

func candidateOf(r Run) candidate { return candidate{run: r.ID, node: r.Node(), epoch: r.Epoch} }

// moved says why an appointment moves on.
type moved int

const (
	failed      moved = iota // its action failed too often, hung, was moved by force or was never acquired
	died                     // its run was closed
	unavailable              // what the work needs is away: no failure
)

// handOver ends an appointment and makes the next one. What was adopted under its fence is orphaned again at this index.
func (m *Machine) handOver(r *wire.Recovery, how moved, why string) {
	holder, _ := RunIDOf(r.GetAppointee())
	next := proto.CloneOf(r)
	next.Why = why
	m.step(next, wire.RecoveryStep_KIND_HANDED_OVER, holder, why)
	if r.GetState() == wire.RecoveryState_RECOVERY_RAISED {
		m.orphanAdopted(r, how != unavailable)
		next.EndedHolder = m.Position()
	}
	if how == unavailable {
		next.Unavailable = append(next.Unavailable, holder.Bytes())
	} else {
		next.Tried = append(m.stillOpen(next.Tried), holder.Bytes())
	}
	m.emit(AppointmentEnded{Recovery: r, Why: why})
	m.appoint(next)
}

// stillOpen drops closed runs: they never come back, and a list that only grows would outlive a crash loop.
func (m *Machine) stillOpen(list [][]byte) [][]byte {
	return slices.DeleteFunc(list, func(b []byte) bool {
		id, _ := RunIDOf(b)
		return !m.runs.isOpen(id)
	})
}

// handOverFrom moves on every appointment of a closed run.
func (m *Machine) handOverFrom(id RunID) {
	for _, r := range m.Recoveries() {
		if active(r) && isRun(r.GetAppointee(), id) {
			m.handOver(r, died, "the run of the recoverer was closed")
		}
	}
}

// wake appoints the waiting and parked recoveries of a component when a run may have come that has not tried them.
func (m *Machine) wake(component string) {
	for _, r := range m.Recoveries() {
		if r.GetComponent() != component {
			continue
		}
		if r.GetState() != wire.RecoveryState_RECOVERY_WAITING && r.GetState() != wire.RecoveryState_RECOVERY_PARKED {
			continue
		}
		if _, ok := firstUntried(m.candidates(r), r.GetTried()); ok {
			m.appoint(proto.CloneOf(r))
		}
	}
}

// endRecovery ends a recovery for good; the next one of the same component and node begins. r is not shared yet.
func (m *Machine) endRecovery(r *wire.Recovery, dropped bool) {
	dead := keyOfRecovery(r).run
	if dropped {
		m.step(r, wire.RecoveryStep_KIND_DROPPED, appointeeOf(r), r.GetWhy())
	} else {
		m.step(r, wire.RecoveryStep_KIND_RELEASED, appointeeOf(r), "")
	}
	delete(m.recoveries.all, keyOfRecovery(r))
	ended := append(m.recoveries.ended, &wire.EndedRecovery{Recovery: r, Ended: m.Position(), Dropped: dropped})
	m.recoveries.ended = ended[max(0, len(ended)-maxEnded):]
	m.emit(RecoveryEnded{Recovery: r, Dropped: dropped})
	if m.recoveries.of[dead]--; m.recoveries.of[dead] == 0 {
		delete(m.recoveries.of, dead)
		m.dropBound(dead)
		m.forgetRuns()
	}
	m.advance(guards(r), dead)
}

// advance takes an ended recovery out of its queue and begins the next one if it was the first.
func (m *Machine) advance(key fenceKey, dead RunID) {
	queue := m.recoveries.queues[key]
	first := queue[0] == dead
	queue = slices.DeleteFunc(slices.Clone(queue), func(id RunID) bool { return id == dead })
	if len(queue) == 0 {
		delete(m.recoveries.queues, key)
		return
	}
	m.recoveries.queues[key] = queue
	if first {
		m.appoint(proto.CloneOf(m.recoveries.all[recoveryKey{key.component, queue[0]}]))
	}
}
