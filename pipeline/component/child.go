package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// kind says what became of a claimed item.
type kind int

const (
	stored     kind = iota // event and record are in the store
	stale                  // not wanted any more
	unpreserve             // as if it had never been
	lost                   // dropped, nothing was written
	notStored              // the store could not be used
	notStopped             // still claimed
	kept                   // ended, and still claimed: for recovery
)

// result is what a child tells its tick.
type result struct {
	kind   kind
	report Report
	err    error
}

func (s result) counts() (c Counts) {
	switch {
	case s.kind == stored && s.report.Outcome == Failed:
		c.Failed = 1
	case s.kind == stored:
		c.Done = 1
	case s.kind == stale:
		c.Stale = 1
	case s.kind == unpreserve:
		c.Unpreserved = 1
	case s.kind == lost:
		c.Lost = 1
	case s.kind == notStored:
		c.NotStored = 1
	case s.kind == kept:
		c.Kept = 1
	default:
		c.NotStopped = 1
	}
	return c
}

// child is the life of one claim: re-validate, work, store, release. ctx ends when the work is no longer wanted here,
// run when the run that holds the claim is closed.
func (r *Runner) child(ctx, run context.Context, c claimed, k *tickets) result {
	k.take()
	work, let, ok := r.hold(ctx, c.claim)
	if !ok {
		r.release(run, c.claim, false)
		r.freeClaim(c, false)
		k.give()
		return result{kind: unpreserve, report: Report{Unpreservable: true}}
	}
	res, later := r.work(work, run, c)
	if later == nil {
		let()
		r.freeClaim(c, false)
		k.give()
		return res
	}
	// Not proven to have stopped: the claim and its place stay, and somebody waits for the end, however late.
	r.mu.Lock()
	r.stuck[c.claim] = struct{}{}
	r.running.Add(1) // the tick that runs this child is registered still
	r.mu.Unlock()
	go func() {
		defer r.running.Done()
		defer k.give()
		late := later()
		let()
		r.freeClaim(c, true)
		r.count(late.counts())
	}()
	return res
}

func (r *Runner) freeClaim(c claimed, wasStuck bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(1)
	if wasStuck {
		delete(r.stuck, c.claim)
		r.total.NotStopped--
	}
}

// work does one item. When later is not nil the work has not been proven to have stopped, and later waits for that.
func (r *Runner) work(ctx, run context.Context, c claimed) (res result, later func() result) {
	item, err := r.begin(ctx, run, c)
	if err != nil {
		return r.notBegun(ctx, run, c, err), nil
	}
	started := r.cfg.Now()
	deadline := time.Now().Add(r.cfg.Limit)
	inner, end := context.WithCancelCause(run)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	limited, cancel := context.WithDeadlineCause(inner, deadline, ErrTimeLimit)
	cleanup := func() { cancel(); stop(); end(nil) }
	work, err := r.cfg.Worker.Start(limited, Job{r.cfg.Component, item, c.claim.Token, item.Record.Attempts, started.Add(r.cfg.Limit)})
	if err != nil {
		cleanup()
		return r.settle(ctx, run, c, item, ending{started: started, err: fmt.Errorf("start work: %w", err)}), nil
	}
	e := &ending{started: started, gone: make(chan struct{})}
	go func() {
		defer close(e.gone)
		e.report, e.err = work.Wait()
	}()
	if e.cause = r.supervise(limited, work, e.gone); e.cause != nil && !isClosed(e.gone) {
		err := fmt.Errorf("%w: %w", ErrNotStopped, e.cause)
		r.alarm(AlarmNotStopped, c.claim, err)
		report := Report{Started: started, Ended: r.cfg.Now()}
		report.Fail(Failure{Item: item.ID, Type: "not stopped", Text: err.Error()})
		return result{notStopped, report, err}, func() result {
			defer cleanup()
			<-e.gone
			return r.settle(r.base, run, c, item, *e) // the tick, and its context, ended long ago
		}
	}
	cleanup()
	return r.settle(ctx, run, c, item, *e), nil
}

// ending is how work ended.
type ending struct {
	started time.Time
	gone    chan struct{} // closed when report and err are there
	report  Report
	err     error
	cause   error // why it was told to end; nil when it ended by itself
}

// supervise waits for the end of work: its own, or polite, forced and proven. It returns why the work was told to end;
// when gone is not closed then, the work is not proven to have stopped.
func (r *Runner) supervise(ctx context.Context, w Work, gone <-chan struct{}) error {
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	if !within(r.cfg.Grace, gone) {
		w.Kill()
		within(r.cfg.Proof, gone)
	}
	return context.Cause(ctx)
}

// within waits for gone.
func within(d time.Duration, gone <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-timer.C:
		return isClosed(gone)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// begin re-validates under the claim: the first guarded write, and the item as it is now.
func (r *Runner) begin(ctx, run context.Context, c claimed) (Item, error) {
	bound, cancel := context.WithTimeout(run, r.cfg.Settle)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	at := r.cfg.Now()
	var item Item
	err := r.repeat(bound, func() (err error) {
		item, err = r.cfg.Store.Begin(bound, c.claim, at)
		return err
	})
	if err != nil {
		return Item{}, fmt.Errorf("re-validate %s: %w", c.item.ID, err)
	}
	ok, why := MatchAny(r.cfg.triggers(), item)
	switch {
	case !ok:
		return Item{}, fmt.Errorf("%w: %s", ErrStaleItem, why[0])
	case !item.Record.Ready(at):
		return Item{}, fmt.Errorf("%w: it waits for an operator or for its time", ErrStaleItem)
	}
	return item, nil
}

// notBegun gives a claim back whose work did not begin.
func (r *Runner) notBegun(ctx, run context.Context, c claimed, err error) result {
	res := result{kind: notStored, err: err}
	switch {
	case run.Err() != nil, errors.Is(err, ledger.ErrFenced):
		return result{kind: lost, err: fmt.Errorf("%w: %w", ErrLost, err)}
	case ctx.Err() != nil:
		r.release(run, c.claim, false)
		return result{kind: unpreserve, report: Report{Unpreservable: true}}
	case errors.Is(err, ErrStaleItem):
		res.kind = stale
	}
	r.leaveAlone(c.item)
	r.release(run, c.claim, false)
	return res
}

func (r *Runner) leaveAlone(it Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skips.add(it, r.cfg.Fairness, r.cfg.Now())
}

// repeat calls f until it does not answer ledger.ErrUnavailable, with growing waits, or ctx ends.
func (r *Runner) repeat(ctx context.Context, f func() error) error {
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		err := f()
		if err == nil || !errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-timer.C:
		}
	}
}

// release gives a claim back; one of a closed run belongs to recovery.
func (r *Runner) release(run context.Context, c Claim, done bool) {
	ctx, cancel := context.WithTimeout(run, r.cfg.Settle)
	defer cancel()
	var err error
	for wait := time.Second; run.Err() == nil; wait *= 2 {
		if err = r.cfg.Claims.EndClaim(ctx, c, done); err == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			if run.Err() == nil {
				r.alarm(AlarmNotReleased, c, err)
			}
			return
		case <-timer.C:
		}
	}
}
