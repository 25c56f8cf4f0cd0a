package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// Why a fence's context ended without the fence having been lost.
var (
	errLowered  = fmt.Errorf("fence is lowered: %w", signals.ErrNotAcquired)
	errReturned = fmt.Errorf("action has returned: %w", signals.ErrNotAcquired)
)

// fence is a raised fence in the hands of one run of an action.
type fence struct {
	log   Settling
	held  Held
	pulse *pulse
	ctx   context.Context
	end   context.CancelCauseFunc
}

var _ signals.Fence = (*fence)(nil)

func newFence(ctx context.Context, log Settling, p *pulse, held Held) *fence {
	f := &fence{log: log, held: held, pulse: p}
	f.ctx, f.end = context.WithCancelCause(ctx)
	return f
}

// Token goes with every write that the recovery makes visible.
func (f *fence) Token() uint64 { return f.held.Token }

// Context ends when the fence is lost or lowered, or the action has returned.
func (f *fence) Context() context.Context { return f.ctx }

// Orphans lists what the dead run left.
func (f *fence) Orphans(ctx context.Context) (list []signals.Orphan, err error) {
	err = f.use(ctx, "list orphans", func(ctx context.Context) error {
		list, err = f.log.Orphans(ctx, f.held)
		return err
	})
	return list, err
}

// Adopt turns an orphan into this member's claim.
func (f *fence) Adopt(ctx context.Context, o signals.Orphan) (c signals.Claim, err error) {
	err = f.use(ctx, "adopt "+o.Item, func(ctx context.Context) error {
		c, err = f.log.Adopt(ctx, f.held, o)
		return err
	})
	return c, err
}

// Free gives a reverted orphan back.
func (f *fence) Free(ctx context.Context, o signals.Orphan) error {
	return f.End(ctx, o.Claim, signals.Free)
}

// End ends an adopted claim or quarantines an orphan.
func (f *fence) End(ctx context.Context, c signals.Claim, how signals.How) error {
	return f.use(ctx, "end claim of "+c.Item, func(ctx context.Context) error {
		return f.log.EndClaim(ctx, f.held, c, how)
	})
}

// use calls do while the fence stands; do's context ends with it.
func (f *fence) use(ctx context.Context, what string, do func(context.Context) error) error {
	if f.ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(f.ctx))
	}
	ctx, done := both(ctx, f.ctx)
	defer done()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Progress keeps the promise of WithProgress.
func (f *fence) Progress() { f.pulse.progress() }

// Hold suspends the promise of WithProgress.
func (f *fence) Hold(limit time.Duration) { f.pulse.suspend(limit) }
