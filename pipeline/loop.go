package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// claimLoop claims tasks of one type until ctx ends.
func (w *Worker) claimLoop(ctx context.Context, t ledger.TaskType) {
	for {
		if w.cfg.Gate.AwaitUnfenced(ctx, Component(t)) != nil {
			return
		}
		next := w.round(ctx, t)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-w.wakes[t]:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// round tries each planned or stray task once, oldest first, while there is room, and says when the next round is due.
func (w *Worker) round(ctx context.Context, t ledger.TaskType) time.Duration {
	next := w.cfg.PollEvery
	list, err := w.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true, Type: t})
	if err != nil {
		if ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "planned tasks not read", "type", t, "err", err)
		}
		return next
	}
	w.keepDue(t, list)
	for _, task := range slices.Backward(list) {
		who, _, err := w.cfg.Gate.Standing(ctx)
		if err != nil {
			return next
		}
		if !w.able(task) {
			continue
		}
		if wait := w.notYet(task, who); wait > 0 {
			next = min(next, wait)
			continue
		}
		select {
		case w.slots[t] <- struct{}{}:
		default:
			return next // a task that ends wakes the loop
		}
		if !w.claim(ctx, task) {
			<-w.slots[t]
			w.seen(task, who)
		}
	}
	return next
}

// strayAfter is how long a task that has begun may lie still, as this node sees it, before this node tries to claim it.
const strayAfter = time.Minute

// stray tells whether a task has begun under a run that is not this node's. Then its claim is that run's or an orphan
// for recovery, but for one: a run that gave the claim back without being able to say in the row that it did, and is
// gone, or a recovery that was dropped, leave a row that nobody holds. The claim tells them apart: who tries it, is
// refused while anybody holds it.
func stray(t ledger.Task, who Standing) bool { return t.State != ledger.Planned && t.Run != who.Run }

// able tells whether this node is configured for the task at all; a task that it must only end (cancelled) needs
// nothing.
func (w *Worker) able(t ledger.Task) bool {
	_, ok := w.cfg.Catalog.Sources[t.Database]
	return ok || t.CancelBy != ""
}

// notYet says how long this node still waits with a task that runs here, failed for a passing reason, or is stray. The
// wait is counted from when this node saw the failure, or the last change of the stray: clocks of nodes are not compared.
func (w *Worker) notYet(t ledger.Task, who Standing) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.running[t.ID]; ok {
		return w.cfg.PollEvery
	}
	lost := stray(t, who)
	if !lost && (t.Attempt == 0 || t.Error == "" || t.CancelBy != "") {
		return 0
	}
	d, ok := w.due[t.ID]
	if !ok || d.token != t.Token || lost && !d.updated.Equal(t.Updated) {
		d = dueAt{kind: t.Type, token: t.Token, updated: t.Updated, at: time.Now().Add(strayAfter)}
		if !lost {
			d.at = time.Now().Add(w.cfg.RetryAfter << min(t.Attempt-1, 6))
		}
		w.due[t.ID] = d
	}
	return time.Until(d.at)
}

// seen has the wait with a stray whose claim was refused begin anew.
func (w *Worker) seen(t ledger.Task, who Standing) {
	if !stray(t, who) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.due, t.ID)
}

// keepDue forgets the waits of tasks that are not in list.
func (w *Worker) keepDue(kind ledger.TaskType, list []ledger.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, d := range w.due {
		if d.kind == kind && !slices.ContainsFunc(list, func(t ledger.Task) bool { return t.ID == id }) {
			delete(w.due, id)
		}
	}
}

// claim tries to get a task and, when it does, runs it in a goroutine of its own that gives the slot back.
func (w *Worker) claim(ctx context.Context, t ledger.Task) bool {
	c, err := w.cfg.Locker.Claim(ctx, Component(t.Type), t.ID, t.Attempt+1)
	if err != nil {
		if !errors.Is(err, ErrBusy) && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "claim not made", "task", t.ID, "err", err)
		}
		return false
	}
	err = w.spawn(t.ID, func(base, user context.Context, end context.CancelCauseFunc) {
		w.runClaimed(base, user, end, c)
		<-w.slots[t.Type]
	})
	if err != nil {
		w.release(ctx, c, false)
		return false
	}
	return true
}
