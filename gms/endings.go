package gms

import (
	"maps"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// endings remembers when this replica applied the last entry that ended a holder: the closing of a run, and each
// hand-over of its fence since (PROTOCOL.md 22). It is written where entries are applied, so that who has seen an
// appointment has seen what ended the holder before.
type endings struct {
	at    map[ending]time.Duration
	floor time.Duration // of what a snapshot tells without a time: when it was restored
}

// ending is a closed run, or with a component a hand-over of its fence.
type ending struct {
	component string
	run       state.RunID
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
			e.at[ending{c.Recovery.GetComponent(), dead}] = now
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
func (e *endings) restored(now time.Duration) {
	clear(e.at)
	e.floor = now
}

// leases are how long a holder may go on after it was last heard of: a run for ttl, a fence for fence.
type leases struct{ ttl, fence time.Duration }

// wait is what is left until the local deadline of every former holder has passed: of the dead run's lease, and of the
// fence of whoever was handed over, which outlives its run's lease where it is the longer one.
func (e *endings) wait(component string, run state.RunID, now time.Duration, l leases) time.Duration {
	left := func(since, limit time.Duration) time.Duration {
		if since == 0 {
			return 0 // there was none
		}
		return since + limit - now
	}
	longest := max(l.ttl, l.fence)
	return max(0, left(e.floor, longest), left(e.at[ending{run: run}], l.ttl), left(e.at[ending{component, run}], longest))
}
