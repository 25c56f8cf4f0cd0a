package pipeline

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// The limit of an attempt for which none is configured.
const (
	leastLimit   = 24 * time.Hour
	limitFactor  = 3   // times the longest good run
	limitHistory = 200 // tasks among which that is looked for, the newest
)

// noLimit is a limit that nothing reaches.
const noLimit = 10 * 365 * 24 * time.Hour

// limit ends an attempt that takes too long, when no limit is configured: a configured one is the component's. stop calls
// that off.
func (w *Worker) limit(ctx context.Context, t ledger.Task, end context.CancelCauseFunc) (stop func()) {
	if w.cfg.Limit > 0 {
		return func() {}
	}
	earlier, err := w.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Type: t.Type, Database: t.Database, Limit: limitHistory})
	if err != nil {
		earlier = nil // the ledger is away: a day will do until the next attempt
	}
	timer := time.AfterFunc(limitOf(earlier), func() { end(component.ErrTimeLimit) })
	return func() { timer.Stop() }
}

// limitOf is how long an attempt may take, by earlier tasks of its kind.
func limitOf(earlier []ledger.Task) time.Duration {
	longest := time.Duration(0)
	for _, t := range earlier {
		if t.State == ledger.Completed && !t.Begun.IsZero() {
			longest = max(longest, t.Finished.Sub(t.Begun))
		}
	}
	return max(leastLimit, limitFactor*longest)
}
