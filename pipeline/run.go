package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// runClaimed takes the row of a claimed task, settles what earlier attempts left, and runs the attempt.
func (w *Worker) runClaimed(base, user context.Context, end context.CancelCauseFunc, c Claim) {
	who, held, err := w.cfg.Gate.Standing(base)
	if err != nil {
		w.release(base, c, false)
		return
	}
	g := ledger.Guard{Run: who.Run, Component: c.Component, Item: c.Item, Token: c.Token}
	verdict := Settled
	if _, err = w.cfg.Ledger.Take(held, g, c.Item, who.Node); err == nil {
		verdict, err = w.settleAgain(user, held, g)
	}
	over := errors.Is(err, ledger.ErrFinal) || errors.Is(err, ledger.ErrNotFound)
	switch {
	case err != nil && !over:
		w.cfg.Logger.WarnContext(base, "task not taken", "task", c.Item, "err", err)
		w.release(base, c, false)
	case over || verdict == Settled:
		w.release(base, c, true)
	default:
		w.execute(held, user, end, g, c)
	}
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

// Resume runs a task that Recover left to the holder of its claim. It returns once the task runs, or waits for room,
// in a goroutine of the worker; the worker ends the claim. On an error nothing runs and the caller keeps the claim. It
// never waits for a fence: what was adopted is done (netiquette holds back new work only).
func (w *Worker) Resume(ctx context.Context, c Claim) error {
	t, err := w.cfg.Ledger.Task(ctx, c.Item)
	if err != nil {
		return unavailable("resume task "+c.Item, err)
	}
	if t.Token != c.Token || t.State != ledger.Planned {
		return fmt.Errorf("resume task %s, which is %s with token %d: claim has %d: %w", t.ID, t.State, t.Token, c.Token, ledger.ErrFenced)
	}
	slots, ok := w.slots[t.Type]
	if !ok {
		return fmt.Errorf("resume task %s: this worker runs no tasks of type %s", t.ID, t.Type)
	}
	return w.spawn(t.ID, func(base, user context.Context, end context.CancelCauseFunc) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-user.Done(): // cancelled or stopping: execute only writes that down
		}
		who, held, err := w.cfg.Gate.Standing(base)
		if err != nil {
			w.release(base, c, false)
			return
		}
		g := ledger.Guard{Run: who.Run, Component: c.Component, Item: c.Item, Token: c.Token}
		w.execute(held, user, end, g, c)
	})
}

// execute runs one attempt of a task whose row g has taken, and writes down how it ended. held ends with the run; user
// ends also by a cancel or a stop.
func (w *Worker) execute(held, user context.Context, end context.CancelCauseFunc, g ledger.Guard, c Claim) {
	log := w.cfg.Logger.With("task", c.Item, "token", c.Token)
	t, err := w.cfg.Ledger.Task(held, c.Item)
	if err != nil || t.Token != g.Token {
		log.WarnContext(held, "task not read", "err", err)
		w.release(held, c, false)
		return
	}
	a := newAttempt(&w.cfg, g, t, end, log)
	ctx, cancel := context.WithCancelCause(held)
	defer cancel(nil)
	defer context.AfterFunc(user, func() { cancel(context.Cause(user)) })()
	log.InfoContext(ctx, "attempt begins", "type", t.Type, "attempt", t.Attempt)
	err = a.run(ctx, held)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // the reason, not its consequence
	}
	if err == nil {
		log.InfoContext(ctx, "task completed")
		w.release(held, c, true)
		return
	}
	done, hold := a.conclude(held, err)
	if !hold {
		w.release(held, c, done)
	}
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
	}
	return fmt.Errorf("tasks of type %s are not run by this worker", a.row().Type)
}

// conclude reverts an attempt that ended with err and writes what became of the task. done: the task has ended; hold:
// the claim must not be given back, because only recovery can tell what is left.
func (a *attempt) conclude(held context.Context, err error) (done, hold bool) {
	e := endOf(err, a.row())
	a.log.InfoContext(held, "attempt ended", "state", e.state, "err", err)
	switch {
	case held.Err() != nil:
		return false, true // the run is closed, or the worker is out of time: recovery has the task
	case a.unclear, errors.Is(err, source.ErrSuperseded):
		// The swap may have happened, or somebody else's did: whoever claims the task next, under a larger token, reads
		// from the server what is so.
		saveErr := a.save(held, nil, func(t *ledger.Task) { t.Error = e.reason })
		return false, saveErr != nil && !fenced(saveErr)
	case e.handsOff:
		return false, false
	}
	if a.row().Type == ledger.Create {
		if err := a.giveUp(held, e.reason); err != nil {
			a.log.WarnContext(held, "attempt not reverted", "err", err)
			return false, true
		}
	}
	gone, err := a.goneEntry(held, e)
	if err == nil {
		err = a.save(held, gone, e.apply)
	}
	if err != nil {
		a.log.WarnContext(held, "end of attempt not written", "err", err)
		return false, !fenced(err)
	}
	return e.state != ledger.Planned, false
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
