package recovery

import (
	"context"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/signals"
)

// job is one appointment that this member works on. It outlives single deliveries: the fence stays raised, and renewed,
// between a failed one and the next.
type job struct {
	ref   Ref
	pulse *pulse

	mu       sync.Mutex
	phase    phase
	move     context.CancelCauseFunc // ends all that the delivery under way does; nil: there is none
	lose     context.CancelCauseFunc // ends its action only
	lease    context.Context         // of the raised fence, else nil
	endLease func()
}

func newJob(ref Ref, c signals.Component) *job {
	return &job{ref: ref, pulse: &pulse{every: c.Progress}, phase: phaseRunning}
}

func (j *job) slot() slot {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slot{index: j.ref.Index, phase: j.phase}
}

// begin makes move and lose the ways to end the delivery that starts now.
func (j *job) begin(move, lose context.CancelCauseFunc) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.phase, j.move, j.lose = phaseRunning, move, lose
}

// end books that the delivery has come to its end.
func (j *job) end(p phase) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.phase, j.move, j.lose = p, nil, nil
}

// handOver tells the action that the appointment is not ours any more, unless it is lowering the fence at this moment. It
// says whether the action has never raised the fence.
func (j *job) handOver() (idle bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.phase != phaseRunning {
		return false
	}
	j.phase = phaseMoved
	defer j.move(fmt.Errorf("recovery of %s was handed over: %w", j.ref.Node, signals.ErrNotAppointed))
	return j.lease == nil
}

// settling runs release, during which the end of the appointment is our own doing.
func (j *job) settling(release func() error) error {
	j.mu.Lock()
	if j.phase == phaseRunning {
		j.phase = phaseSettling
	}
	j.mu.Unlock()
	err := release()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.phase = phaseReleased
	case j.phase == phaseSettling:
		j.phase = phaseRunning
	}
	return err
}

// keep has the fence renewed from now on; when it is lost, the action under way ends. A lease that was lost before is
// replaced: the log has just said that the fence is ours.
func (j *job) keep(log Fencing, grant Grant) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lease != nil {
		if j.lease.Err() == nil {
			return
		}
		j.endLease()
	}
	lease, stop := log.Renew(grant, j.pulse.kept)
	unhook := context.AfterFunc(lease, func() { j.lost(lease) })
	j.lease, j.endLease = lease, func() { unhook(); stop() }
}

// interrupt ends the context of the action under way.
func (j *job) interrupt(cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lose != nil {
		j.lose(cause)
	}
}

// lost ends the action because its fence is not renewed in time.
func (j *job) lost(lease context.Context) {
	cause := fmt.Errorf("%w: %w", signals.ErrFenceLost, context.Cause(lease))
	if !j.pulse.kept() {
		cause = errHung
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lease == lease && j.lose != nil {
		j.lose(cause)
	}
}

// close ends renewal. The fence, if still raised, runs out by itself.
func (j *job) close() {
	j.mu.Lock()
	end := j.endLease
	j.lease, j.endLease = nil, nil
	j.mu.Unlock()
	if end != nil {
		end()
	}
}
