package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Worker claims planned tasks and runs them. New builds it, Start starts its goroutines, Stop waits for all of them.
// Stop may come first, and more than once.
type Worker struct {
	cfg   Config
	slots map[ledger.TaskType]chan struct{}
	wakes map[ledger.TaskType]chan struct{}
	look4 chan struct{} // wakes the watcher of cancel requests

	mu      sync.Mutex
	state   lifeState
	base    context.Context // ends when everything must end; of Start
	endBase context.CancelFunc
	loops   sync.WaitGroup
	endLoop context.CancelFunc // ends the claiming of new tasks
	tasks   sync.WaitGroup
	running map[string]context.CancelCauseFunc
	due     map[string]dueAt // tasks that failed for a passing reason, or are stray: when this node may try again
	stopped chan struct{}
}

// dueAt is when a task may be tried again after the attempt of a token.
type dueAt struct {
	kind    ledger.TaskType
	token   uint64
	updated time.Time // the row's, when the wait began
	at      time.Time
}

type lifeState int

const (
	fresh lifeState = iota
	started
	stopping
)

// NewWorker checks cfg and builds a Worker; nothing runs yet.
func NewWorker(cfg Config) (*Worker, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, look4: make(chan struct{}, 1),
		slots: map[ledger.TaskType]chan struct{}{}, wakes: map[ledger.TaskType]chan struct{}{},
		running: map[string]context.CancelCauseFunc{}, due: map[string]dueAt{}, stopped: make(chan struct{}),
	}
	for _, t := range taskTypes() {
		w.slots[t] = make(chan struct{}, cfg.MaxConcurrent)
		w.wakes[t] = make(chan struct{}, 1)
	}
	return w, nil
}

// taskTypes are those that a Worker runs.
func taskTypes() []ledger.TaskType { return []ledger.TaskType{ledger.Create, ledger.Restore} }

// Start begins to claim tasks and returns at once. The end of ctx ends everything at once, without reverting; Stop is
// the polite way. ErrStopped after Stop; a second Start is an error.
func (w *Worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case stopping:
		return ErrStopped
	case started:
		return errors.New("start worker: it runs already")
	}
	w.state = started
	w.base, w.endBase = context.WithCancel(ctx)
	loop, endLoop := context.WithCancel(w.base)
	w.endLoop = endLoop
	w.loops.Go(func() { w.relay(loop) })
	w.loops.Go(func() { w.watchCancels(w.base) })
	w.loops.Go(func() { w.sweepLoop(loop) })
	for _, t := range taskTypes() {
		w.loops.Go(func() { w.claimLoop(loop, t) })
	}
	return nil
}

// Stop claims nothing more, waits StopGrace for running tasks, reverts those that still run and plans them again, and
// returns when every goroutine has ended, at the latest CleanupWithin later than StopGrace.
func (w *Worker) Stop() {
	w.mu.Lock()
	was := w.state
	w.state = stopping
	w.mu.Unlock()
	switch was {
	case fresh:
		close(w.stopped)
	case started:
		w.shutDown()
		close(w.stopped)
	}
	<-w.stopped
}

func (w *Worker) shutDown() {
	w.endLoop()
	idle := make(chan struct{})
	go func() { w.tasks.Wait(); close(idle) }() // ends with the tasks, which are waited for below
	if !waitFor(idle, w.cfg.StopGrace) {
		w.mu.Lock()
		for _, end := range w.running {
			end(errStopping)
		}
		w.mu.Unlock()
		waitFor(idle, w.cfg.CleanupWithin)
	}
	w.endBase()
	<-idle
	w.loops.Wait()
}

// waitFor waits for done, but not longer than d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// relay passes the ledger's hints on to the loops.
func (w *Worker) relay(ctx context.Context) {
	hints := w.cfg.Ledger.Watch(w.base)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-hints:
			if !ok {
				hints = nil // the polls go on
				continue
			}
			for _, wake := range w.wakes {
				nudge(wake)
			}
			nudge(w.look4)
		}
	}
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// spawn runs one task in a goroutine that Stop waits for. base ends when the worker must end; user ends also when end is
// called, with that cause, and end is registered under id before run begins.
func (w *Worker) spawn(id string, run func(base, user context.Context, end context.CancelCauseFunc)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != started {
		return ErrStopped
	}
	if _, ok := w.running[id]; ok {
		return fmt.Errorf("run task %s: it runs here already", id)
	}
	base := w.base
	user, end := context.WithCancelCause(base)
	w.running[id] = end
	w.tasks.Go(func() {
		run(base, user, end)
		w.mu.Lock()
		delete(w.running, id)
		w.mu.Unlock()
		end(nil)
		for _, wake := range w.wakes {
			nudge(wake) // there is room again
		}
	})
	return nil
}

// release ends a claim; when that fails the group still holds it for this run, and recovery finds it when the run ends.
func (w *Worker) release(ctx context.Context, c Claim, done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.CleanupWithin)
	defer cancel()
	give := w.cfg.Locker.Abandon
	if done {
		give = w.cfg.Locker.Complete
	}
	if err := give(ctx, c); err != nil {
		w.cfg.Logger.WarnContext(ctx, "claim not released", "task", c.Item, "token", c.Token, "err", err)
	}
}
