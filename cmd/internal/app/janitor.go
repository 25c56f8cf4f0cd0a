package app

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// lookEvery is how often a node looks after what is its own.
const lookEvery = time.Minute

// lookAfter keeps the home's list of signers, and looks whether this node's storages still are those of the group. Each node
// does so for itself; what one node does for all is a component. It ends with ctx.
func (a *App) lookAfter(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		signers := a.group.Cache().Written(signersComponent) // a machine that is lost a moment after another joined has its key
		select {
		case <-ctx.Done():
			return
		case <-signers:
			a.copySigners(ctx)
		case <-ticker.C:
			a.tend(ctx)
		}
	}
}

// copySigners writes the home's list of signers, while the group can be asked.
func (a *App) copySigners(ctx context.Context) {
	if standing, _ := a.group.Standing(); standing != gms.Held {
		return
	}
	if err := a.keepSigners(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("app: the list of signers was not written", "error", err)
	}
}

// tend does it once.
func (a *App) tend(ctx context.Context) {
	if standing, _ := a.group.Standing(); standing != gms.Held {
		return
	}
	a.copySigners(ctx)
	a.checkOwners(ctx)
	a.finishUpgrade(ctx)
	if a.group.Leader() == a.cfg.Node && a.clock.Settled() {
		doneTasks{a}.forget(ctx)
	}
}
