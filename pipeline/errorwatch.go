package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// errorsAtOnce is how many noted errors one look takes.
const errorsAtOnce = 10

// noted has the failure of an attempt whose claim is kept noted, so that it is reverted although its run lives on. It is
// bounded: a ledger that is away, or a run that is closed, is recovery's business.
func (a *attempt) noted(problem error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.CleanupWithin)
	defer cancel()
	if err := a.cfg.Ledger.NoteError(ctx, a.guard, sentence(problem)); err != nil {
		a.log.WarnContext(ctx, "failure not noted, recovery finds it", "err", err)
	}
}

// watchErrors looks for noted errors each Config.ErrorsEvery until ctx ends.
func (w *Worker) watchErrors(ctx context.Context) {
	for pause(ctx, w.cfg.ErrorsEvery) == nil {
		if w.cfg.Gate.Self().Run == "" {
			continue
		}
		if _, err := w.cfg.Ledger.HandleErrors(ctx, errorsAtOnce, w.toRevert); err != nil && ctx.Err() == nil {
			w.cfg.Logger.InfoContext(ctx, "errors of tasks are left for later", "err", err)
		}
		w.wakeAll()
	}
}

// toRevert turns an error into something to do, and does nothing itself: a task that has ended, or was taken since, is in
// other hands; one whose claim this very run keeps without working on it is given back, so that whoever takes it next,
// under a larger token, reverts what the attempt left; and one that nobody holds is taken up like any stray. What another
// node keeps, that node gives back.
func (w *Worker) toRevert(ctx context.Context, e ledger.TaskError) error {
	t, err := w.cfg.Ledger.Task(ctx, e.Task)
	if err != nil {
		return err
	}
	who := w.cfg.Gate.Self()
	switch {
	case t.State.Final(), t.Token != e.Token:
		return nil
	case t.Run != who.Run && t.Run != "":
		return fmt.Errorf("it is node %s that keeps it", t.Node)
	case w.runs(t.ID):
		return fmt.Errorf("it still runs here")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return w.cfg.Claims.EndClaim(ctx, Claim{Component: Component(t.Type), Item: t.ID, RoundTrip: t.Attempt, Token: t.Token}, false)
}
