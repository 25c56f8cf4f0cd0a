package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// IsFenced says whether component of node is being recovered, or waits for a recoverer. It may block on the group's
// quorum until ctx ends; ErrUnavailable when there is none.
func (m *Manager) IsFenced(ctx context.Context, component, node string) (bool, error) {
	fenced, _, err := m.opts.Log.Fenced(ctx, component, node)
	if err != nil {
		return false, fmt.Errorf("ask whether %s of %s is fenced: %w", component, node, err)
	}
	return fenced, nil
}

// AwaitUnfenced returns nil once component of this member's own node is not fenced. A starting component calls it before
// it takes new work; a recovery action never does (two restarted nodes would wait for each other). It outlasts a group
// that is unavailable, and needs no running manager. Its error is the cause of ctx, gms.ErrOrder under a poll lock, or an
// answer that is no answer.
func (m *Manager) AwaitUnfenced(ctx context.Context, component string) error {
	if err := gms.FenceAllowed(ctx); err != nil {
		return fmt.Errorf("await that %s is not fenced: %w", component, err)
	}
	for {
		fenced, changed, err := m.opts.Log.Fenced(ctx, component, m.opts.Node)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("await that %s is not fenced: %w", component, context.Cause(ctx))
		case errors.Is(err, signals.ErrUnavailable):
			pause(ctx, m.opts.MaxBackoff)
			continue
		case err != nil:
			return fmt.Errorf("await that %s is not fenced: %w", component, err)
		case !fenced:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// pause waits for d or until ctx ends, and says whether it waited for all of d.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
