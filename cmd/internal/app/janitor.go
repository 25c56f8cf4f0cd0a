package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/source"
)

// tidyEvery is how often the leading node looks for replaced databases whose time as an undo is over.
const tidyEvery = time.Minute

// expirer is a source that keeps what restores replaced, for a while.
type expirer interface {
	ExpireOld(ctx context.Context, a source.Attempt) ([]string, error)
}

// tidy keeps the home's list of signers, has each node look whether its storages still are those of the group, and has one node of the group, the leader, drop what has had its time. It ends with ctx. Two leaders that believe in
// themselves do no harm: what is dropped is chosen by the server's own clock and marks.
func (a *App) tidy(ctx context.Context) {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if standing, _ := a.group.Standing(); standing != gms.Held {
			continue
		}
		if err := a.keepSigners(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("app: the list of signers was not written", "error", err)
		}
		a.checkOwners(ctx)
		if a.group.Leader() == a.cfg.Node {
			a.expireOld(ctx)
		}
	}
}

// expireOld asks each source once. Its sessions carry a task of their own.
func (a *App) expireOld(ctx context.Context) {
	attempt := source.Attempt{Task: pipeline.NewID(time.Now()), Token: a.group.Epoch()}
	for _, name := range slices.Sorted(maps.Keys(a.opened.sources)) {
		e, ok := a.opened.sources[name].(expirer)
		if !ok {
			continue
		}
		dropped, err := e.ExpireOld(ctx, attempt)
		if err != nil && ctx.Err() == nil {
			a.log.Warn("app: replaced databases not looked through", "database", name, "error", err)
		}
		if len(dropped) > 0 {
			a.log.Info("app: replaced databases dropped, their time as an undo is over", "database", name, "dropped", fmt.Sprint(dropped))
		}
	}
}
