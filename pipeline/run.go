package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// rows is the store of the components: what became of a task is in its row, which the work itself writes under the claim.
type rows struct{ w *Worker }

// Begin implements component.Store.
func (s rows) Begin(ctx context.Context, c Claim, _ time.Time) (component.Item, error) {
	who := s.w.cfg.Gate.Self()
	err := s.w.takeOver(ctx, guardOf(c, who), who.Node)
	if err != nil && !errors.Is(err, ledger.ErrFinal) {
		if errors.Is(err, ledger.ErrNotFound) {
			return component.Item{ID: c.Item}, nil // history was shortened: nobody wants it
		}
		return component.Item{}, err
	}
	t, err := s.w.cfg.Ledger.Task(ctx, c.Item)
	if err == nil {
		err = s.w.cfg.remember(ctx, t)
	}
	if err != nil {
		return component.Item{}, err
	}
	if s.w.doneBefore(t) && t.CancelBy == "" {
		s.w.cfg.Logger.ErrorContext(ctx, "the ledger wants a task done that was completed before: it is not done again", "task", t.ID, "type", t.Type, "hint", "fencepost ledger reconcile")
		return component.Item{ID: c.Item}, nil
	}
	it := itemOf(t)
	it.Record.Attempts = max(it.Record.Attempts, 1)
	return it, nil
}

// Finish implements component.Store.
func (s rows) Finish(ctx context.Context, c Claim, _ component.Result) error {
	t, err := s.w.cfg.Ledger.Task(ctx, c.Item)
	if err == nil && t.Token != c.Token {
		return fmt.Errorf("task %s has token %d, not %d: %w", t.ID, t.Token, c.Token, ledger.ErrFenced)
	}
	return err
}

func guardOf(c Claim, who Standing) ledger.Guard {
	return ledger.Guard{Run: who.Run, Component: c.Component, Item: c.Item, Token: c.Token}
}

// doer is the work of the components: one attempt of a task whose row is taken.
type doer struct{ w *Worker }

// Start implements component.Worker. ctx ends with the time limit, with Stop and with the run.
func (d doer) Start(ctx context.Context, j component.Job) (component.Work, error) {
	w := d.w
	who := w.cfg.Gate.Self()
	base, over := context.WithCancel(w.base)
	user, end := context.WithCancelCause(ctx)
	held, err := w.cfg.Gate.Standing(base)
	if err == nil {
		err = w.enter(j.Item.ID, end)
	}
	if err != nil {
		end(nil)
		over()
		return nil, err
	}
	work := &doing{done: make(chan struct{})}
	g := ledger.Guard{Run: who.Run, Component: j.Component, Item: j.Item.ID, Token: j.Token}
	go func() { // whoever has the work waits for it
		defer close(work.done)
		defer over()
		defer w.left(g.Item, end)
		work.report, work.err = w.do(held, user, end, g)
	}()
	return work, nil
}

// doing is an attempt that goes on. By force it only ends with the worker: what it leaves half done must not be left so
// while somebody can still take it away.
type doing struct {
	done   chan struct{}
	report component.Report
	err    error
}

func (d *doing) Wait() (component.Report, error) {
	<-d.done
	return d.report, d.err
}

func (d *doing) Kill() {}

// enter registers a task that runs here under its cancel request's name.
func (w *Worker) enter(id string, end context.CancelCauseFunc) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.running[id]; ok {
		return fmt.Errorf("run task %s: it runs here already", id)
	}
	if goOn := w.waiting[id]; goOn != nil {
		delete(w.waiting, id)
		goOn()
	}
	w.running[id] = end
	return nil
}

func (w *Worker) left(id string, end context.CancelCauseFunc) {
	w.mu.Lock()
	delete(w.running, id)
	w.mu.Unlock()
	end(nil)
	w.wakeAll() // there is room again
}

func (w *Worker) runs(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, running := w.running[id]
	_, waiting := w.waiting[id]
	return running || waiting
}

// do settles what earlier attempts of a task left, and runs the attempt. held ends with the run; user ends also by a
// cancel, a stop or the time limit.
func (w *Worker) do(held, user context.Context, end context.CancelCauseFunc, g ledger.Guard) (component.Report, error) {
	verdict, err := w.settleAgain(user, held, g)
	switch {
	case errors.Is(err, ledger.ErrFinal), errors.Is(err, ledger.ErrNotFound), err == nil && verdict == Settled:
		return component.Report{}, nil
	case err != nil:
		w.cfg.Logger.WarnContext(held, "task not settled", "task", g.Item, "err", err)
		return component.Report{}, err
	}
	return w.execute(held, user, end, g)
}

// settleAgain is settle, repeated while something is away and the claim is held, until user ends.
func (w *Worker) settleAgain(user, held context.Context, g ledger.Guard) (Verdict, error) {
	for wait := writeAgainMin; ; wait = min(2*wait, writeAgainMax) {
		v, err := w.settle(held, g)
		if err == nil || !passing(err) || pause(user, wait) != nil || held.Err() != nil {
			return v, err
		}
	}
}

// Resume runs a task that Recover left to the holder of its claim. It returns once the task runs, or waits for room; the
// worker ends the claim. On an error nothing runs and the caller keeps the claim. It never waits for a fence: what was
// adopted is done (netiquette holds back new work only).
func (w *Worker) Resume(ctx context.Context, c Claim) error {
	t, err := w.cfg.Ledger.Task(ctx, c.Item)
	if err != nil {
		return unavailable("resume task "+c.Item, err)
	}
	if t.Token != c.Token || t.State != ledger.Planned {
		return fmt.Errorf("resume task %s, which is %s with token %d: claim has %d: %w", t.ID, t.State, t.Token, c.Token, ledger.ErrFenced)
	}
	r, ok := w.runners[t.Type]
	if !ok {
		return fmt.Errorf("resume task %s: this worker runs no tasks of type %s", t.ID, t.Type)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != started {
		return ErrStopped
	}
	if _, ok := w.running[t.ID]; ok {
		return fmt.Errorf("resume task %s: it runs here already", t.ID)
	}
	wait, goOn := context.WithCancel(w.base)
	w.waiting[t.ID] = goOn // enter, which needs w.mu, takes it out
	if err = r.Resume(wait, c, itemOf(t)); err != nil {
		delete(w.waiting, t.ID)
		goOn()
	}
	return err
}

// execute runs one attempt of a task whose row g has taken, and writes down how it ended.
func (w *Worker) execute(held, user context.Context, end context.CancelCauseFunc, g ledger.Guard) (report component.Report, err error) {
	t, err := w.cfg.Ledger.Task(held, g.Item)
	if err != nil || t.Token != g.Token {
		w.cfg.Logger.WarnContext(held, "task not read", "task", g.Item, "token", g.Token, "err", err)
		return report, errors.Join(err, ledger.ErrFenced)
	}
	a := newAttempt(w.conf(), g, t, end)
	log := a.log
	defer a.told.end(held)
	ctx, cancel := context.WithCancelCause(held)
	defer cancel(nil)
	defer context.AfterFunc(user, func() { cancel(context.Cause(user)) })()
	defer w.limit(held, t, cancel)()
	log.InfoContext(ctx, "attempt begins", "type", t.Type, "attempt", t.Attempt)
	err = a.run(ctx, held)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // the reason, not its consequence
	}
	if err == nil {
		last := a.row()
		if last.State == ledger.Completed {
			log.InfoContext(ctx, "task completed")
		} else {
			log.InfoContext(ctx, "task ended", "state", last.State, "err", last.Error)
			report.Fail(component.Failure{Item: last.ID, Type: string(last.State), Text: last.Error})
		}
		return report, nil
	}
	if keep := a.conclude(held, err); keep {
		if held.Err() == nil {
			a.noted(err)
		}
		return report, fmt.Errorf("%w: %w", component.ErrKeep, err)
	}
	return report, err
}

// run drives the chain of the task's type, with a reporter beside it.
func (a *attempt) run(ctx, keep context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	reporting, stop := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	reporter.Go(func() { a.report(reporting) })
	defer reporter.Wait()
	defer stop()
	switch a.row().Type {
	case ledger.Create:
		return a.create(ctx, keep)
	case ledger.Restore:
		return a.restore(ctx, keep)
	case ledger.Delete:
		return a.delete(ctx, keep)
	case ledger.Verify:
		return a.verify(ctx, keep)
	case ledger.Replicate:
		return a.replicate(ctx, keep)
	}
	return fmt.Errorf("tasks of type %s are not run by this worker", a.row().Type)
}

// conclude reverts an attempt that ended with err and writes what became of the task. keep: the claim must not be given
// back, because only recovery can tell what is left.
func (a *attempt) conclude(held context.Context, err error) (keep bool) {
	e := endOf(err, a.row())
	a.log.InfoContext(held, "attempt ended", "state", e.state, "err", err)
	switch {
	case held.Err() != nil:
		return true // the run is closed, or the worker is out of time: recovery has the task
	case a.unclear, errors.Is(err, source.ErrSuperseded):
		// The swap may have happened, or somebody else's did: whoever claims the task next, under a larger token, reads
		// from the server what is so.
		saveErr := a.save(held, nil, func(t *ledger.Task) { t.Error = e.reason })
		return saveErr != nil && !fenced(saveErr)
	case e.handsOff:
		return false
	}
	if a.row().Type == ledger.Create {
		if err := a.giveUp(held, e.reason); err != nil {
			a.log.WarnContext(held, "attempt not reverted", "err", err)
			return true
		}
	}
	gone, err := a.goneEntry(held, e)
	if err == nil {
		err = a.save(held, gone, e.apply)
	}
	if err != nil {
		a.log.WarnContext(held, "end of attempt not written", "err", err)
		return !fenced(err)
	}
	return false
}

// giveUp falls back to creating, so that nobody adopts the attempt any more, and removes what it stored.
func (a *attempt) giveUp(held context.Context, reason string) error {
	if a.row().State != ledger.Uploading {
		return nil // nothing was stored before that state was written
	}
	if err := a.save(held, nil, func(t *ledger.Task) { t.State, t.Error = ledger.Creating, reason }); err != nil {
		return err
	}
	if err := a.abandon(held, reason); err != nil && len(a.sealed) > 0 {
		return err
	} else if err != nil {
		a.log.WarnContext(held, "partial objects stay for the sweep", "err", err)
	}
	return nil
}

// goneEntry is the entry of a backup that will not be made; nil when there is none, or when the task goes on.
func (a *attempt) goneEntry(ctx context.Context, e ending) (*ledger.Backup, error) {
	if a.row().Type != ledger.Create || !e.state.Final() {
		return nil, nil
	}
	for wait := writeAgainMin; ; wait = min(2*wait, writeAgainMax) {
		entry, err := a.cfg.Ledger.Backup(ctx, a.row().Backup)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return nil, nil
		case err == nil:
			entry.State = ledger.BackupGone
			return &entry, nil
		}
		if stop := pause(ctx, wait); stop != nil {
			return nil, stop
		}
	}
}
