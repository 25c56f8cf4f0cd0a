package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// watchCancels looks for cancel requests of the tasks that run here: at each hint of the ledger, and at the latest each
// PollEvery.
func (w *Worker) watchCancels(ctx context.Context) {
	for {
		timer := time.NewTimer(w.cfg.PollEvery)
		select {
		case <-ctx.Done():
		case <-w.look4:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		for _, id := range w.runningIDs() {
			w.cancelIfAsked(ctx, id)
		}
	}
}

func (w *Worker) runningIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.running))
}

func (w *Worker) cancelIfAsked(ctx context.Context, id string) {
	t, err := w.cfg.Ledger.Task(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound) || ctx.Err() != nil:
	case err != nil:
		w.cfg.Logger.WarnContext(ctx, "cancel requests not read", "task", id, "err", err)
	case t.CancelBy != "":
		w.mu.Lock()
		end := w.running[id]
		w.mu.Unlock()
		if end != nil {
			end(&cancelError{by: t.CancelBy})
		}
	}
}
