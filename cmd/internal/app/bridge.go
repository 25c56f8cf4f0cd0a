package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// bridge joins the pipeline to the group: locks, claims and standing one way, which are the same for all components, and the
// recoveries of tasks the other.
type bridge struct {
	*components.Joint
	group   *gms.Group
	worker  *pipeline.Worker
	granted func(ctx context.Context, token uint64) error // told of each token before it is used
	drained func() bool                                   // this node begins nothing
	log     *slog.Logger
}

var _ pipeline.Gate = (*bridge)(nil)

// Self implements pipeline.Gate.
func (b *bridge) Self() pipeline.Standing {
	node, run := b.group.Self()
	return pipeline.Standing{Node: node, Run: run}
}

// recover is the action of a FailureRecoverySignal: each of the dead run's tasks is taken over, reverted or completed,
// and what is to run again runs here once the fence is lowered.
func (b *bridge) recover(ctx context.Context, s signals.FailureRecoverySignal) error {
	a := s.Appointment()
	log := b.log.With("recovers", a.Component, "node", a.Node, "run", a.Run)
	fence, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	ctx = fence.Context()
	claims, err := b.TakeOver(ctx, fence)
	if err != nil {
		return err
	}
	if len(claims) > 0 { // else nothing is written under the token, and the storages need not hear of it
		if err := b.granted(ctx, fence.Token()); err != nil {
			return fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
		}
	}
	var again []signals.Claim
	for _, c := range claims {
		fence.Progress()
		rerun, err := b.settle(ctx, a, fence, c)
		if err != nil {
			return fmt.Errorf("recover task %s: %w", c.Item, err)
		}
		if rerun {
			again = append(again, c)
		}
	}
	if err := s.Release(ctx); err != nil {
		return err
	}
	log.Info("app: recovered", "tasks", len(claims), "again", len(again), "token", fence.Token())
	for _, c := range again {
		b.resume(context.WithoutCancel(ctx), c)
	}
	return nil
}

// settle has the pipeline decide about one task, and ends its claim unless it runs again.
func (b *bridge) settle(ctx context.Context, a signals.Appointment, fence signals.Fence, c signals.Claim) (rerun bool, err error) {
	if err := b.granted(ctx, c.Token); err != nil {
		return false, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	}
	node, run := b.group.Self()
	guard := ledger.Guard{
		Run: run, Component: c.Component, Item: c.Item, Token: c.Token,
		Fence: &ledger.Fence{Component: a.Component, Node: a.Node, Run: a.Run, Token: fence.Token()},
	}
	verdict, err := b.worker.Recover(ctx, guard, node)
	switch {
	case errors.Is(err, pipeline.ErrUnavailable), errors.Is(err, ledger.ErrUnavailable):
		return false, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	case err != nil:
		return false, err
	case verdict == pipeline.Rerun:
		return true, nil
	}
	return false, fence.End(ctx, c, signals.Complete)
}

// resumeWithin bounds the hand-over of an adopted task to the worker; a claim that stays behind is given back later.
const resumeWithin = 15 * time.Second

var errDrained = errors.New("this node is drained")

// resume runs an adopted task again; when this node cannot, the claim is given back and any node takes it.
func (b *bridge) resume(ctx context.Context, c signals.Claim) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	err := errDrained
	if !b.drained() {
		err = b.worker.Resume(ctx, components.ClaimOf(c))
	}
	if err == nil {
		return
	}
	b.log.Warn("app: task not resumed here, giving it back", "task", c.Item, "error", err)
	if err := b.End(ctx, components.ClaimOf(c), signals.Abandon); err != nil {
		b.log.Warn("app: claim not given back", "task", c.Item, "error", err)
	}
}
