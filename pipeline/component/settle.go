package component

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// verdict is what work that has ended comes to. It is pure.
func verdict(e ending, item string) (Report, bool) {
	report := e.report.bounded()
	success := e.err == nil && report.Outcome == Done
	switch {
	case errors.Is(e.cause, ErrTimeLimit):
		report.Unpreservable = false // who does not end in time does not decide about it
		report.Fail(Failure{Item: item, Type: "time limit", Text: "it did not end within its time limit"})
		if e.err != nil {
			report.Fail(Failure{Item: item, Type: "worker", Text: e.err.Error()})
		}
	case e.cause != nil && !success:
		report.Unpreservable = true
	case e.err != nil:
		report.Fail(Failure{Item: item, Type: "worker", Text: e.err.Error()})
	}
	return report, !report.Unpreservable
}

// settle stores what became of work that is proven to have ended, and then releases its item.
func (r *Runner) settle(ctx, run context.Context, c claimed, item Item, e ending) result {
	if run.Err() != nil {
		return result{kind: lost, err: fmt.Errorf("%w: %w", ErrLost, context.Cause(run))}
	}
	if errors.Is(e.err, ErrKeep) {
		return result{kind: kept, err: fmt.Errorf("work on %s: %w", item.ID, e.err)}
	}
	report, preserve := verdict(e, item.ID)
	if report.Started.IsZero() {
		report.Started = e.started
	}
	if report.Ended.IsZero() {
		report.Ended = r.cfg.Now()
	}
	if !preserve {
		r.leaveAlone(c.item)
		r.release(run, c.claim, false)
		return result{kind: unpreserve, report: report}
	}
	err := r.store(ctx, run, c.claim, r.resultOf(c.claim, item, e, report))
	if err != nil && run.Err() == nil && !errors.Is(err, ledger.ErrFenced) && !errors.Is(err, ledger.ErrUnavailable) {
		r.alarm(AlarmNotStored, c.claim, err)
		report = Report{Started: report.Started, Ended: report.Ended}
		report.Fail(Failure{Item: item.ID, Type: "not stored", Text: "the result could not be stored: " + err.Error()})
		err = r.store(ctx, run, c.claim, r.resultOf(c.claim, item, e, report))
	}
	switch {
	case run.Err() != nil, errors.Is(err, ledger.ErrFenced):
		return result{kind: lost, report: report, err: fmt.Errorf("%w: %w", ErrLost, errors.Join(err, context.Cause(run)))}
	case err != nil:
		r.leaveAlone(c.item)
		r.release(run, c.claim, false)
		return result{kind: notStored, report: report, err: fmt.Errorf("store the result of %s: %w", item.ID, err)}
	}
	r.mu.Lock()
	r.skips.drop(c.item)
	r.mu.Unlock()
	r.release(run, c.claim, report.Outcome == Done)
	return result{kind: stored, report: report, err: e.err}
}

func (r *Runner) resultOf(c Claim, item Item, e ending, report Report) Result {
	record := AfterSuccess(item.Record)
	if report.Outcome == Failed {
		record = r.cfg.Fairness.AfterFailure(item.Record, r.cfg.Now())
		if record.Quarantined && !item.Record.Quarantined {
			r.alarm(AlarmQuarantined, c, fmt.Errorf("%d failures in a row: %s", record.Failures, report.Details()))
		}
	}
	if r.cfg.NoEvent {
		return Result{Report: report, Record: record}
	}
	return Result{
		Event: Event{
			Type: r.cfg.Event, Start: e.started, Success: report.Outcome == Done, Agent: r.cfg.Component + "@" + r.cfg.Node,
			Details: report.Details(), Token: c.Token, Attempt: item.Record.Attempts,
		},
		Report: report, Record: record,
	}
}

// store writes a result. While the group is out of reach it waits; while the store is unavailable it repeats, for ever as
// long as the run stands and nobody stops the component.
func (r *Runner) store(ctx, run context.Context, c Claim, res Result) error {
	bound, cancel := context.WithCancelCause(run)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		settle, end := r.settling()
		defer end()
		select {
		case <-settle.Done():
			cancel(ErrStopping)
		case <-bound.Done():
		}
	})
	defer stop()
	if err := r.cfg.Gate.AwaitHeld(bound); err != nil {
		return fmt.Errorf("wait for the group: %w", errors.Join(ledger.ErrUnavailable, err))
	}
	return r.repeat(bound, func() error { return r.cfg.Store.Finish(bound, c, res) })
}
