package gms

import (
	"maps"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// endings remembers when this replica applied the entries that ended holders: the closing of a run, and each hand-over of
// its fence since (PROTOCOL.md 22). It is written where entries are applied, so that who has seen an appointment has seen
// what ended the holder before.
type endings struct {
	at    map[ending]time.Duration
	floor time.Duration // when a snapshot was restored: what it tells has no time; 0: none was
	upTo  uint64        // position of that snapshot
}

// ending is a closed run, or with a component the hand-over of its fence by a holder.
type ending struct {
	component   string
	run, holder state.RunID
}

func newEndings() *endings { return &endings{at: make(map[ending]time.Duration)} }

// note takes the changes of one entry that m has just applied.
func (e *endings) note(m *state.Machine, changes []state.Change, now time.Duration) {
	ended := false
	for _, c := range changes {
		switch c := c.(type) {
		case state.RunClosed:
			e.at[ending{run: c.Run.ID}] = now
			ended = true
		case state.AppointmentEnded:
			if c.Recovery.GetState() != wire.RecoveryState_RECOVERY_RAISED {
				continue // it never held the fence
			}
			dead, _ := state.RunIDOf(c.Recovery.GetRun())
			holder, _ := state.RunIDOf(c.Recovery.GetAppointee())
			e.at[ending{c.Recovery.GetComponent(), dead, holder}] = now
		case state.RecoveryEnded:
			ended = true
		}
	}
	if ended {
		e.prune(m)
	}
}

// prune forgets what no recovery asks for any more.
func (e *endings) prune(m *state.Machine) {
	open := make(map[state.RunID]bool)
	for _, r := range m.Recoveries() {
		dead, _ := state.RunIDOf(r.GetRun())
		open[dead] = true
	}
	maps.DeleteFunc(e.at, func(k ending, _ time.Duration) bool { return !open[k.run] })
}

// restored forgets all: what the snapshot skipped may have ended holders up to now.
func (e *endings) restored(now time.Duration, position uint64) {
	clear(e.at)
	e.floor, e.upTo = now, position
}

// wait is what is left until the local deadline of every former holder has passed: of the dead run's lease, and of the
// fence of whoever was handed over, which outlives its run's lease where it is the longer one. A holder of which nothing is
// left needs no wait.
func (e *endings) wait(m *state.Machine, component string, dead state.RunID, now time.Duration, l leases) time.Duration {
	left := func(since, limit time.Duration) time.Duration { return max(0, since+limit-now) }
	proven := func(id state.RunID) bool {
		r, ok := m.Run(id)
		return ok && !r.IsOpen() && r.Quiesced
	}
	var most time.Duration
	if since, known := e.at[ending{run: dead}]; !proven(dead) && (known || e.floor > 0) {
		r, _ := m.Run(dead)
		most = left(max(since, e.floor), l.of(r).ttl)
	}
	if r, ok := m.Recovery(component, dead); ok && e.floor > 0 && r.GetEndedHolder() > r.GetSince() && r.GetEndedHolder() <= e.upTo {
		most = max(most, left(e.floor, l.longestOf(m))) // who it was is not known any more
	}
	for k, since := range e.at {
		if k.component == component && k.run == dead && !proven(k.holder) {
			longest := l.longestOf(m)
			if holder, known := m.Run(k.holder); known {
				longest = l.of(holder).longest()
			}
			most = max(most, left(since, longest))
		}
	}
	return most
}
