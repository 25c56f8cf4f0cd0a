package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Waits between repeated ledger writes.
const (
	writeAgainMin = 100 * time.Millisecond
	writeAgainMax = 5 * time.Second
)

// rank orders the states of a running task: a write never takes it back to an earlier stage.
func rank(s ledger.State) int {
	switch s {
	case ledger.Creating, ledger.Downloading:
		return 1
	case ledger.Processing, ledger.Deprocessing:
		return 2
	case ledger.Uploading, ledger.Restoring:
		return 3
	}
	return 0
}

// attempt is one execution of a task under one claim.
type attempt struct {
	cfg   *Config
	guard ledger.Guard
	end   context.CancelCauseFunc // ends the task's context
	told  *taskLog
	log   *slog.Logger // tells it too

	read      atomic.Int64
	estimate  atomic.Int64
	processed atomic.Int64
	rate      atomic.Int64

	writing chan struct{} // one place: whoever fills it writes the row
	dirty   bool          // a write's outcome is unknown; of the writer

	mu    sync.Mutex                // for a moment only, never during a call
	task  ledger.Task               // as last written
	sizes map[string][]func() int64 // per storage: bytes read by each Put

	sealed  map[string]bool // create: storages in which a manifest of this attempt may be; of its own goroutine
	unclear bool            // restore: the swap happened or may have; only a new token can tell; as sealed
}

func newAttempt(cfg *Config, g ledger.Guard, t ledger.Task, end context.CancelCauseFunc) *attempt {
	told := newTaskLog(cfg, g, t.Attempt)
	return &attempt{
		cfg: cfg, guard: g, task: t, end: end, told: told, log: told.logger(), writing: make(chan struct{}, 1),
		sizes: map[string][]func() int64{}, sealed: map[string]bool{},
	}
}

// row returns the task as last written.
func (a *attempt) row() ledger.Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.task
}

func (a *attempt) source() source.Attempt {
	return source.Attempt{Task: a.guard.Item, Token: a.guard.Token}
}

// save makes a guarded change of the row and repeats it while the ledger is away, until ctx ends. A write that cannot
// be made because a successor has the task ends the task's context.
func (a *attempt) save(ctx context.Context, entry *ledger.Backup, change func(*ledger.Task)) error {
	return a.saveChange(ctx, ledger.Change{Backup: entry}, change)
}

// saveChange is save with all that a change can carry but the task.
func (a *attempt) saveChange(ctx context.Context, c ledger.Change, change func(*ledger.Task)) error {
	select {
	case a.writing <- struct{}{}:
		defer func() { <-a.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.Task = a.row()
	c.Task.Progress = a.progress()
	change(&c.Task)
	wait := writeAgainMin
	for {
		err := a.write(ctx, c)
		if !errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		a.log.WarnContext(ctx, "ledger away, write is repeated", "state", c.Task.State, "err", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, writeAgainMax)
	}
}

// write is one try; the caller has filled a.writing.
func (a *attempt) write(ctx context.Context, c ledger.Change) error {
	err := a.cfg.Ledger.Write(ctx, a.guard, c)
	if errors.Is(err, ledger.ErrFinal) && a.dirty {
		err = a.wasMine(ctx, c.Task.State, err)
	}
	switch {
	case err == nil:
		a.dirty = false
		a.mu.Lock()
		was := a.task.State
		a.task = c.Task
		a.mu.Unlock()
		if was != c.Task.State && c.Task.State != ledger.Planned && !c.Task.State.Final() { // what ends an attempt is told with its reason
			a.told.tell(ledger.LineInfo, string(c.Task.State))
		}
		err = a.cfg.remember(ctx, c.Task)
	case errors.Is(err, ledger.ErrUnavailable):
		a.dirty = true
	case fenced(err):
		a.end(err)
	}
	return err
}

// wasMine tells an end that this attempt wrote itself, in a write whose answer was lost, from somebody else's.
func (a *attempt) wasMine(ctx context.Context, want ledger.State, err error) error {
	row, readErr := a.cfg.Ledger.Task(ctx, a.guard.Item)
	if readErr != nil {
		return readErr
	}
	if row.Token == a.guard.Token && row.State == want {
		return nil
	}
	return err
}

// stage writes that bytes have reached s, before they do. Earlier stages than the present one are not written.
func (a *attempt) stage(ctx context.Context, s ledger.State) error {
	if rank(a.row().State) >= rank(s) {
		return nil
	}
	return a.save(ctx, nil, func(t *ledger.Task) {
		if rank(t.State) < rank(s) { // another part may have come further meanwhile
			t.State = s
		}
	})
}

// progress sums the counters.
func (a *attempt) progress() ledger.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := ledger.Progress{
		Read: a.read.Load(), Estimate: a.estimate.Load(), Processed: a.processed.Load(), Stored: map[string]int64{}, Rate: a.rate.Load(),
	}
	for name, sizes := range a.sizes {
		for _, size := range sizes {
			p.Stored[name] += size()
		}
	}
	return p
}

// watchSize adds a counter of bytes that a storage has taken.
func (a *attempt) watchSize(name string, size func() int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sizes[name] = append(a.sizes[name], size)
}

// report writes the progress, and what there is to tell, at intervals until ctx ends. While another write is under way, or
// the ledger is away, it is left for the next interval.
func (a *attempt) report(ctx context.Context) {
	read, at := int64(0), time.Now()
	for pause(ctx, a.cfg.ProgressEvery) == nil {
		n, now := a.read.Load(), time.Now()
		a.rate.Store(nextRate(a.rate.Load(), n-read, now.Sub(at)))
		read, at = n, now
		a.told.write(ctx)
		select {
		case a.writing <- struct{}{}:
			a.reportOnce(ctx)
			<-a.writing
		default:
		}
	}
}

func (a *attempt) reportOnce(ctx context.Context) {
	next := a.row()
	was := next.Progress
	next.Progress = a.progress()
	if next.Progress.Read == was.Read && next.Progress.Rate == was.Rate && maps.Equal(next.Progress.Stored, was.Stored) {
		return
	}
	if err := a.write(ctx, ledger.Change{Task: next}); err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "progress not written", "err", err)
	}
}

// nextRate is the rate, in bytes per second, after n bytes came in d: halfway from the last one, and none when nothing came.
func nextRate(last, n int64, d time.Duration) int64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	now := int64(float64(n) / d.Seconds())
	if last == 0 {
		return now
	}
	return (last + now) / 2
}

// pause waits for d; an error is ctx's cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
