package app

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// readyAgain is how long this node waits until it says once more what the group has not taken.
const readyAgain = time.Second

// tellReady reports this node's run as ready, and each later run of this process once what its node left is recovered: a
// run that takes the place of one whose lease was lost begins as not ready, like that of a new process.
func (a *App) tellReady(ctx context.Context) error {
	_, told := a.group.Self()
	if err := a.group.SetReady(ctx, true); err != nil {
		return err
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); a.tellLaterRuns(lasting, told) }()
	a.onStop("readiness", func(context.Context) error { cancel(); <-done; return nil })
	return nil
}

// tellLaterRuns reports each run but the one that was told, until ctx ends or the group fails.
func (a *App) tellLaterRuns(ctx context.Context, told string) {
	for ctx.Err() == nil && a.group.Err() == nil {
		changed, again := a.group.Changed(), (<-chan time.Time)(nil)
		standing, renewed := a.group.Standing()
		if _, run := a.group.Self(); run != told && standing == gms.Held {
			if err := a.readyAt(ctx, run); err != nil {
				again = time.After(readyAgain)
			} else {
				told = run
			}
		} else if run == told {
			renewed = nil
		}
		select {
		case <-changed:
		case <-renewed:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// readyAt waits at the fences of the node, and reports the run as ready if it still is this node's.
func (a *App) readyAt(ctx context.Context, run string) error {
	standing, ok := a.group.RunContext()
	if _, now := a.group.Self(); !ok || now != run {
		return gms.ErrRunClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(standing, cancel)()
	for _, c := range a.components() {
		if err := a.manager.AwaitUnfenced(ctx, c); err != nil {
			return err
		}
	}
	if err := a.group.SetReady(ctx, true); err != nil {
		return err
	}
	a.log.Info("app: ready again", "run", run)
	return nil
}
