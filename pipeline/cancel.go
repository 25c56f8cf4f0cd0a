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
	ids := append(slices.Collect(maps.Keys(w.running)), slices.Collect(maps.Keys(w.waiting))...)
	slices.Sort(ids)
	return ids
}

func (w *Worker) cancelIfAsked(ctx context.Context, id string) {
	t, err := w.cfg.Ledger.Task(ctx, id)
	tooLate := false
	if err == nil && t.Type == ledger.Delete && t.CancelBy != "" {
		tooLate, err = deleteBegun(ctx, w.cfg.Ledger, t.Backup)
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound) || ctx.Err() != nil:
	case err != nil:
		w.cfg.Logger.WarnContext(ctx, "cancel requests not read", "task", id, "err", err)
	case tooLate:
	case t.CancelBy != "" || t.State.Final():
		w.mu.Lock()
		end, goOn := w.running[id], w.waiting[id]
		delete(w.waiting, id)
		w.mu.Unlock()
		if end != nil && t.CancelBy != "" {
			end(&cancelError{by: t.CancelBy})
		}
		if goOn != nil {
			goOn()
		}
	}
}
