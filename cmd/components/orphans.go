package components

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// Orphans says what becomes of the claims of a component's dead run.
type Orphans int

// What may become of them.
const (
	Free  Orphans = iota // they are for whoever comes next
	Adopt                // whoever recovers them works on their items at once, as their next round trip
)

// RecoveryStep is how long the actions of recoveries here may take for one orphan: who is stuck for longer, in a storage that
// neither answers nor fails, loses its fence, and another node is appointed (PROTOCOL.md 13).
const RecoveryStep = 15 * time.Minute

// FreeOrphans is the action of a recovery that frees: what the dead run had begun is shut out and forgotten, and its items
// are for whoever comes next. One that has cost too many runs their lives is set aside. An error has the signal come again.
func (j *Joint) FreeOrphans(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := j.shutOut(ctx, s)
	if err != nil {
		return err
	}
	orphans, err := fence.Orphans(fence.Context())
	if err != nil {
		return err
	}
	for _, o := range orphans {
		fence.Progress()
		err := fence.End(fence.Context(), o.Claim, signals.Free)
		if errors.Is(err, signals.ErrPoison) {
			err = j.poison(ctx, fence, o)
		}
		if err != nil {
			return fmt.Errorf("free %s: %w", o.Item, err)
		}
	}
	return j.released(ctx, s, fence, "freed", len(orphans))
}

// AdoptOrphans is the action of a recovery that adopts: this node takes the claims over, as the next round trip and under
// new tokens, and works on the items again as soon as the fence is lowered. An error has the signal come again.
func (j *Joint) AdoptOrphans(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := j.shutOut(ctx, s)
	if err != nil {
		return err
	}
	claims, err := j.TakeOver(fence.Context(), fence)
	if err != nil {
		return err
	}
	if err := j.released(ctx, s, fence, "adopted", len(claims)); err != nil {
		return err
	}
	for _, c := range claims {
		j.resume(context.WithoutCancel(ctx), ClaimOf(c))
	}
	return nil
}

// TakeOver makes the orphans under a fence claims of this run, and finds those that an earlier delivery under this fence
// adopted. The orphans are read first: one that is adopted in between is then in the second list, and never in neither.
// Errors: those of signals.Fence.
func (j *Joint) TakeOver(ctx context.Context, fence signals.Fence) ([]signals.Claim, error) {
	orphans, err := fence.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var claims []signals.Claim
	for _, c := range j.cfg.Group.Claims() {
		if c.Adopted && c.Fence == fence.Token() {
			claims = append(claims, c.Claim)
		}
	}
	for _, o := range orphans {
		fence.Progress()
		c, err := fence.Adopt(ctx, o)
		if errors.Is(err, signals.ErrPoison) {
			if err := j.poison(ctx, fence, o); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		j.cfg.Logger.InfoContext(ctx, "components: claim adopted", "component", c.Component, "item", c.Item, "token", c.Token, "fence", fence.Token())
		claims = append(claims, c)
	}
	return claims, nil
}

// poison sets an item aside that kills whoever works on it.
func (j *Joint) poison(ctx context.Context, fence signals.Fence, o signals.Orphan) error {
	j.cfg.Logger.ErrorContext(ctx, "components: an item has cost its node its life too often and is set aside",
		"component", o.Component, "item", o.Item, "times", o.Orphanings)
	return fence.End(fence.Context(), o.Claim, signals.Quarantine)
}

// shutOut raises the fence and shuts the dead run out of the ledger, before anything is looked at.
func (j *Joint) shutOut(ctx context.Context, s signals.FailureRecoverySignal) (signals.Fence, error) {
	a := s.Appointment()
	fence, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	shut := ledger.Fence{Component: a.Component, Node: a.Node, Run: a.Run, Token: fence.Token()}
	if err := j.cfg.Ledger.ShutOut(fence.Context(), shut); err != nil {
		return nil, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	}
	return fence, nil
}

func (j *Joint) released(ctx context.Context, s signals.FailureRecoverySignal, fence signals.Fence, what string, n int) error {
	if err := s.Release(fence.Context()); err != nil {
		return err
	}
	a := s.Appointment()
	j.cfg.Logger.InfoContext(ctx, "components: recovered", "recovers", a.Component, "node", a.Node, what, n, "token", fence.Token())
	return nil
}

// resumeWithin bounds the hand-over of an adopted claim to its runner; one that stays behind is given back later.
const resumeWithin = 15 * time.Second

var (
	errDrained  = errors.New("this node is drained")
	errNoRunner = errors.New("the component does not run here yet")
)

// resume works on an adopted item again; when this node cannot, the claim is given back and any node takes it.
func (j *Joint) resume(ctx context.Context, c component.Claim) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	err := j.hand(ctx, c)
	if err == nil {
		return
	}
	j.cfg.Logger.WarnContext(ctx, "components: item not resumed here, giving it back", "component", c.Component, "item", c.Item, "error", err)
	if err := j.End(ctx, c, signals.Abandon); err != nil {
		j.cfg.Logger.WarnContext(ctx, "components: claim not given back", "component", c.Component, "item", c.Item, "error", err)
	}
}

// hand has this node's runner work on a claimed item.
func (j *Joint) hand(ctx context.Context, c component.Claim) error {
	r := j.cfg.Runner(c.Component)
	switch {
	case j.cfg.Drained():
		return errDrained
	case r == nil:
		return errNoRunner
	}
	it, err := j.cfg.Items.Get(ctx, c.Component, c.Item)
	if err != nil {
		return err
	}
	return r.Resume(context.WithoutCancel(ctx), c, it)
}
