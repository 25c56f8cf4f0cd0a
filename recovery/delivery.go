package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// delivery is the FailureRecoverySignal of one run of an action.
type delivery struct {
	*signals.Notice
	log       Log
	job       *job
	component signals.Component
	attempt   int
	ctx       context.Context // the action's, for as long as the appointment is ours
	changed   func()          // tells the manager that the job's phase changed

	gate  chan struct{} // holds one mark; who has taken it may touch what follows
	state deliveryState
	fence *fence
}

type deliveryState int

const (
	deliveryIdle deliveryState = iota
	deliveryRaised
	deliveryReleased
)

var _ signals.FailureRecoverySignal = (*delivery)(nil)

func newDelivery(ctx context.Context, m *Manager, a Appointed, j *job, c signals.Component) *delivery {
	facts := a.Facts
	facts.Kind = signals.FailureRecovery
	d := &delivery{
		Notice: signals.NewNotice(facts), log: m.opts.Log, job: j, component: c,
		attempt: int(a.Failures) + 1, ctx: ctx, changed: m.poke, gate: make(chan struct{}, 1),
	}
	d.gate <- struct{}{}
	return d
}

// Appointment names the appointment that the action works under.
func (d *delivery) Appointment() signals.Appointment {
	r := d.job.ref
	return signals.Appointment{Component: r.Component, Node: r.Node, Run: r.Run, Index: r.Index, Attempt: d.attempt}
}

// Acquire raises the fence: see signals.FailureRecoverySignal.
func (d *delivery) Acquire(ctx context.Context) (signals.Fence, error) {
	ctx, done := both(ctx, d.ctx)
	defer done()
	if err := d.enter(ctx); err != nil {
		return nil, fmt.Errorf("acquire fence: %w", err)
	}
	defer d.leave()
	switch d.state {
	case deliveryRaised:
		return d.fence, nil
	case deliveryReleased:
		return nil, fmt.Errorf("acquire fence: %w", errLowered)
	}
	if err := d.raise(ctx); err != nil {
		return nil, fmt.Errorf("acquire fence: %w", err)
	}
	return d.fence, nil
}

// raise: the fence first, then the wait for former holders, renewing (PROTOCOL 22).
func (d *delivery) raise(ctx context.Context) error {
	grant, err := d.log.Acquire(ctx, d.job.ref)
	if err != nil {
		return err
	}
	d.job.keep(d.log, grant)
	if d.component.Exclusion == signals.ExclusionLease {
		if err := d.outlast(ctx); err != nil {
			return err
		}
	}
	d.job.pulse.start()
	d.fence = newFence(d.ctx, d.log, d.job.pulse, grant.Held)
	d.state = deliveryRaised
	return nil
}

// outlast waits until no former holder can act any more.
func (d *delivery) outlast(ctx context.Context) error {
	for {
		left, changed := d.log.Former(d.job.ref)
		if left <= 0 {
			return nil
		}
		wake := time.NewTimer(left)
		select {
		case <-ctx.Done():
			wake.Stop()
			return context.Cause(ctx)
		case <-changed:
			wake.Stop()
		case <-wake.C:
		}
	}
}

// Release lowers the fence: see signals.FailureRecoverySignal. After it the action may go on, without the fence.
func (d *delivery) Release(ctx context.Context) error {
	ctx, done := both(ctx, d.ctx)
	defer done()
	if err := d.enter(ctx); err != nil {
		return fmt.Errorf("release fence: %w", err)
	}
	defer d.leave()
	if d.state != deliveryRaised {
		return fmt.Errorf("release fence: %w", signals.ErrNotAcquired)
	}
	if err := d.lower(ctx); err != nil {
		return fmt.Errorf("release fence: %w", err)
	}
	return nil
}

// lower is called with the gate's mark.
func (d *delivery) lower(ctx context.Context) error {
	defer d.changed()
	err := d.job.settling(func() error { return d.log.Release(ctx, d.fence.held) })
	if err != nil {
		return err
	}
	d.state = deliveryReleased
	d.fence.end(errLowered)
	d.job.pulse.stop()
	d.job.close()
	return nil
}

// over is called when the action has returned. What goroutines that it left behind still call ends at once or is refused,
// since all contexts end here.
func (d *delivery) over() (acquired, released bool) {
	d.job.interrupt(errReturned)
	<-d.gate
	defer d.leave()
	d.job.pulse.stop()
	return d.fence != nil, d.state == deliveryReleased
}

// enter takes the gate's mark, or gives up when ctx ends.
func (d *delivery) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-d.gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *delivery) leave() { d.gate <- struct{}{} }

// both is ctx, ended also, with its cause, when other ends.
func both(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	if other.Err() != nil {
		cancel(context.Cause(other))
	}
	return ctx, func() { unhook(); cancel(nil) }
}
