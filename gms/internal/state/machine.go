package state

import (
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Machine is the replicated state of a group. It is not safe for concurrent use: its owner serialises Apply and the
// readers. What the readers return is never changed afterwards and may be kept; nobody may change it.
type Machine struct {
	index     uint64 // last applied Raft index
	base      uint64 // position = base + index
	counter   uint64 // last token given out
	clusterID []byte // nil until the group is formed
	protocol  uint32 // that the group writes
	beyond    uint32 // protocol of what came and is not read here: nothing is applied any more; 0: all is well
	settings  *wire.Settings

	nodes       map[string]*wire.Node
	burnt       []*wire.BurntHome // oldest first
	runs        runTable
	views       []*wire.View // the last maxViews, oldest first
	ready       readyHistory
	leader      string                  // node that leads
	term        uint64                  // its Raft term
	underWay    wire.AnnounceGroup_Kind // announced and not ended
	since       uint64                  // position of its announcement
	cache       cacheTable
	locks       lockTable
	claims      claimTable
	recoveries  recoveryTable
	maintenance map[fenceKey]*wire.MaintenanceFence
	answers     answerTable
	audits      []audit // marked positions; not part of the state

	// Of the entry that is being applied.
	time    int64 // of the proposing leader's wall clock; for people only
	changes []Change
	marked  bool
	written map[CacheKey]bool // keys of the cache that have a new version
}

// New returns the empty state of a group that is not formed.
func New() *Machine {
	return &Machine{
		protocol:    1,
		settings:    &wire.Settings{},
		nodes:       map[string]*wire.Node{},
		runs:        newRunTable(),
		cache:       newCacheTable(),
		locks:       newLockTable(),
		claims:      newClaimTable(),
		recoveries:  newRecoveryTable(),
		maintenance: map[fenceKey]*wire.MaintenanceFence{},
		answers:     newAnswerTable(),
	}
}

// Apply applies one entry of the Raft log and answers its commands, in their order. A refused command changes nothing.
//
// The changes are what the entry did, in order of effect, but for ViewChanged, which comes first: an entry makes at most
// one view, of its end. Entries at or below Index are refused as stale. From an entry on that is of a protocol which this
// build does not read (see Beyond) nothing is applied. The caller must not change e afterwards.
func (m *Machine) Apply(index uint64, e *wire.Entry) ([]*wire.Result, []Change) {
	results := make([]*wire.Result, len(e.GetCommands()))
	if index <= m.index {
		for i := range results {
			results[i] = m.refuse(wire.Code_CODE_STALE, "the entry is applied already")
		}
		return results, nil
	}
	if m.goesBeyond(e) {
		for i := range results {
			results[i] = m.refuse(wire.Code_CODE_UNKNOWN_COMMAND, "the entry is of a version that is not read here")
		}
		return results, nil
	}
	m.index, m.time = index, e.GetTime()
	m.changes, m.marked, m.written = nil, false, nil
	for i, c := range e.GetCommands() {
		results[i] = m.apply(c)
	}
	m.endEntry()
	changes := m.changes
	m.changes = nil
	return results, changes
}

// endEntry makes the view of the entry and marks its position for an audit.
func (m *Machine) endEntry() {
	if v := m.nextView(); v != nil {
		m.changes = append([]Change{*v}, m.changes...)
	}
	if v := m.nextReadyView(); v != nil {
		m.emit(*v)
	}
	if m.marked {
		m.mark()
	}
}

// apply answers one command: from the table when it is a repeated one, else by executing it.
func (m *Machine) apply(c *wire.Command) *wire.Result {
	run, ok := envelope(c)
	if !ok {
		return m.refuse(wire.Code_CODE_INVALID, "client, request number or run is malformed")
	}
	if c.GetOp() == nil && !isLater(c) || wire.Needs(c) > m.protocol {
		return m.refuse(wire.Code_CODE_UNKNOWN_COMMAND, "the command, or something in it, is not of the version that the group writes")
	}
	if _, forming := c.GetOp().(*wire.Command_FormGroup); !forming && !m.Formed() {
		return m.refuse(wire.Code_CODE_NOT_FORMED, "the group is not formed")
	}
	if !m.permitted(run, c) {
		return m.refuse(wire.Code_CODE_FORBIDDEN, "node "+c.GetSender()+" may not say this, or not for that run")
	}
	if c.GetTerm() > 0 && c.GetTerm() < m.term {
		return m.refuse(wire.Code_CODE_STALE, "the leader that found this out leads no more")
	}
	if !run.IsZero() && !m.runs.isOpen(run) && !opens(c, run) {
		return m.refuse(wire.Code_CODE_RUN_NOT_OPEN, "the issuing run is not open")
	}
	if answer, known := m.answers.find(c); known {
		if answer == nil {
			return m.refuse(wire.Code_CODE_STALE, "the answer was acknowledged and is forgotten")
		}
		return answer
	}
	result := m.execute(run, c)
	if result.GetCode() != wire.Code_CODE_AGAIN {
		m.remember(run, c, result)
	}
	return result
}

// opens reports whether c opens the very run that issues it.
func opens(c *wire.Command, run RunID) bool {
	op, ok := c.GetOp().(*wire.Command_OpenRun)
	return ok && string(op.OpenRun.GetRun()) == string(run[:])
}

// execute carries out a command of the leader, of an operator or of a run; run is zero for the first two.
func (m *Machine) execute(run RunID, c *wire.Command) *wire.Result {
	switch op := c.GetOp().(type) {
	case nil:
		return m.executeLater(run, c)
	case *wire.Command_FormGroup:
		return m.formGroup(op.FormGroup)
	case *wire.Command_RaiseProtocol:
		return m.raiseProtocol(op.RaiseProtocol)
	case *wire.Command_Rebase:
		return m.rebase(op.Rebase)
	case *wire.Command_ChangeSettings:
		return m.changeSettings(op.ChangeSettings)
	case *wire.Command_OpenRun:
		return m.openRun(op.OpenRun)
	case *wire.Command_CloseRun:
		return m.closeRun(run, op.CloseRun)
	case *wire.Command_Suspect:
		return m.suspect(op.Suspect)
	case *wire.Command_CacheTxn:
		return m.cacheTxn(run, op.CacheTxn)
	case *wire.Command_ExpireLock:
		return m.expireLock(op.ExpireLock)
	case *wire.Command_EndClaim:
		return m.endClaim(run, op.EndClaim)
	case *wire.Command_MoveAppointment:
		return m.moveAppointment(op.MoveAppointment)
	case *wire.Command_RetryRecovery:
		return m.retryRecovery(op.RetryRecovery)
	case *wire.Command_DropRecovery:
		return m.dropRecovery(op.DropRecovery)
	case *wire.Command_ReplaceHome:
		return m.replaceHome(op.ReplaceHome)
	case *wire.Command_ForgetNode:
		return m.forgetNode(op.ForgetNode)
	case *wire.Command_NotePositions:
		return m.notePositions(op.NotePositions)
	case *wire.Command_Audit:
		return m.audit(op.Audit)
	case *wire.Command_NoteQuiesced:
		return m.noteQuiesced(op.NoteQuiesced)
	case *wire.Command_Lead:
		return m.lead(op.Lead)
	default:
		return m.executeOfRun(run, c)
	}
}

// executeOfRun carries out the commands that only a run can give.
func (m *Machine) executeOfRun(run RunID, c *wire.Command) *wire.Result {
	if run.IsZero() {
		return m.refuse(wire.Code_CODE_INVALID, "the command needs a run that issues it")
	}
	switch op := c.GetOp().(type) {
	case *wire.Command_SetDetail:
		return m.setDetail(run, op.SetDetail)
	case *wire.Command_SetReady:
		return m.setReady(run, op.SetReady)
	case *wire.Command_AnnounceGroup:
		return m.announceGroup(run, op.AnnounceGroup)
	case *wire.Command_RegisterComponent:
		return m.registerComponent(run, op.RegisterComponent)
	case *wire.Command_Lock:
		return m.lock(run, op.Lock)
	case *wire.Command_Unlock:
		return m.unlock(run, op.Unlock)
	case *wire.Command_Claim:
		return m.claim(run, op.Claim)
	case *wire.Command_Adopt:
		return m.adopt(run, op.Adopt)
	case *wire.Command_RaiseFence:
		return m.raiseFence(run, op.RaiseFence)
	case *wire.Command_LowerFence:
		return m.lowerFence(run, op.LowerFence)
	case *wire.Command_Acquire:
		return m.acquire(run, op.Acquire)
	case *wire.Command_Release:
		return m.release(run, op.Release)
	case *wire.Command_FailRecovery:
		return m.failRecovery(run, op.FailRecovery)
	default:
		return m.refuse(wire.Code_CODE_UNKNOWN_COMMAND, "the command is not known to this version")
	}
}

// emit notes a change of the entry that is being applied.
func (m *Machine) emit(c Change) { m.changes = append(m.changes, c) }

// grant gives out the next token.
func (m *Machine) grant() uint64 {
	m.counter++
	return m.counter
}

func (m *Machine) ok() *wire.Result {
	return &wire.Result{Code: wire.Code_CODE_OK, Position: m.Position()}
}

func (m *Machine) granted(token uint64) *wire.Result {
	return &wire.Result{Code: wire.Code_CODE_OK, Position: m.Position(), Token: token}
}

func (m *Machine) noChange() *wire.Result {
	return &wire.Result{Code: wire.Code_CODE_NO_CHANGE, Position: m.Position()}
}

func (m *Machine) refuse(code wire.Code, why string) *wire.Result {
	return &wire.Result{Code: code, Position: m.Position(), Detail: why}
}

func (m *Machine) busy(holder []byte, why string) *wire.Result {
	return &wire.Result{Code: wire.Code_CODE_BUSY, Position: m.Position(), Holder: holder, Detail: why}
}

func (m *Machine) invalid(why string) *wire.Result {
	return m.refuse(wire.Code_CODE_INVALID, why)
}

// Index is the last applied Raft index.
func (m *Machine) Index() uint64 { return m.index }

// Time is when the last entry was proposed, in milliseconds since 1970 by the clock of its leader; 0 when it does not say.
func (m *Machine) Time() int64 { return m.time }

// Base is what positions add to the Raft index; 0 until the group is formed.
func (m *Machine) Base() uint64 { return m.base }

// Position is the position of the last applied entry: Base + Index.
func (m *Machine) Position() uint64 { return m.base + m.index }

// Counter is the last token given out.
func (m *Machine) Counter() uint64 { return m.counter }
