package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// adopts tells whether what a dead run was at work on is worked on again at once by its recoverer, for one of the host's
// components.
func (a *App) adopts(name string) bool {
	return slices.ContainsFunc(a.cfg.Components, func(c configs.Component) bool { return c.Name == name && c.Orphans == configs.OrphansAdopt })
}

// runnerOf is this node's runner of a component; nil when there is none, or not yet.
func (a *App) runnerOf(name string) *component.Runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return nil
	}
	return a.work.runners[name]
}

// freeItems is the action for components whose items the ledger keeps: what the dead run had begun is shut out and
// forgotten, and its items are for whoever comes next.
func (b *bridge) freeItems(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := b.shutOut(ctx, s)
	if err != nil {
		return err
	}
	orphans, err := fence.Orphans(fence.Context())
	if err != nil {
		return err
	}
	for _, o := range orphans {
		err := fence.End(fence.Context(), o.Claim, signals.Free)
		if errors.Is(err, signals.ErrPoison) {
			b.log.Error("app: an item has cost its node its life too often and is set aside", "component", o.Component, "item", o.Item, "times", o.Orphanings)
			err = fence.End(fence.Context(), o.Claim, signals.Quarantine)
		}
		if err != nil {
			return fmt.Errorf("free %s: %w", o.Item, err)
		}
	}
	return b.released(s, fence, "freed", len(orphans))
}

// adoptItems is the action for those of them whose items shall not wait for whoever comes next: this node takes the claims
// over, as the next round trip and under new tokens, and works on the items again as soon as the fence is lowered.
func (b *bridge) adoptItems(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := b.shutOut(ctx, s)
	if err != nil {
		return err
	}
	claims, err := b.adopt(fence.Context(), fence)
	if err != nil {
		return err
	}
	if err := b.released(s, fence, "adopted", len(claims)); err != nil {
		return err
	}
	for _, c := range claims {
		b.resumeItem(context.WithoutCancel(ctx), claimOf(c))
	}
	return nil
}

// shutOut raises the fence and shuts the dead run out of the ledger, before anything is looked at.
func (b *bridge) shutOut(ctx context.Context, s signals.FailureRecoverySignal) (signals.Fence, error) {
	a := s.Appointment()
	fence, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	shut := ledger.Fence{Component: a.Component, Node: a.Node, Run: a.Run, Token: fence.Token()}
	if err := b.ledger.ShutOut(fence.Context(), shut); err != nil {
		return nil, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	}
	return fence, nil
}

func (b *bridge) released(s signals.FailureRecoverySignal, fence signals.Fence, what string, n int) error {
	if err := s.Release(fence.Context()); err != nil {
		return err
	}
	a := s.Appointment()
	b.log.Info("app: recovered", "recovers", a.Component, "node", a.Node, what, n, "token", fence.Token())
	return nil
}

// resumeItem works on an adopted item again; when this node cannot, the claim is given back and any node takes it.
func (b *bridge) resumeItem(ctx context.Context, c component.Claim) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	err := errors.New("the component does not run here yet")
	if r := b.runner(c.Component); b.drained() {
		err = errDrained
	} else if r != nil {
		var it component.Item
		if it, err = b.items.Get(ctx, c.Component, c.Item); err == nil {
			err = r.Resume(context.WithoutCancel(ctx), c, it)
		}
	}
	if err == nil {
		return
	}
	b.log.Warn("app: item not resumed here, giving it back", "component", c.Component, "item", c.Item, "error", err)
	if err := b.end(ctx, c, signals.Abandon); err != nil {
		b.log.Warn("app: claim not given back", "component", c.Component, "item", c.Item, "error", err)
	}
}
