package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
)

// Worker does tasks: for each type it runs an autonomous component, whose items are the tasks of that type. New builds it,
// Start starts its goroutines, Stop waits for all of them. Stop may come first, and more than once.
type Worker struct {
	cfg     Config
	renewed atomic.Pointer[Config] // nil: cfg is still right
	runners map[ledger.TaskType]*component.Runner
	look4   chan struct{} // wakes the watcher of cancel requests

	mu      sync.Mutex
	state   lifeState
	base    context.Context // ends when everything must end; of Start
	endBase context.CancelFunc
	loops   sync.WaitGroup
	endLoop context.CancelFunc // ends what looks for more to do
	running map[string]context.CancelCauseFunc
	waiting map[string]context.CancelFunc // adopted tasks without a place yet: has one go on without
	due     map[string]dueAt              // tasks that failed for a passing reason, or are stray: when this node may try again
	stopped chan struct{}

	patience    context.Context // ends when Stop is to wait for nothing any more
	endPatience context.CancelFunc
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
		cfg: cfg, look4: make(chan struct{}, 1), runners: map[ledger.TaskType]*component.Runner{},
		running: map[string]context.CancelCauseFunc{}, waiting: map[string]context.CancelFunc{}, due: map[string]dueAt{},
		stopped: make(chan struct{}),
	}
	w.patience, w.endPatience = context.WithCancel(context.Background())
	for _, t := range taskTypes() {
		r, err := component.New(w.component(t))
		if err != nil {
			return nil, fmt.Errorf("pipeline worker: %w", err)
		}
		w.runners[t] = r
	}
	return w, nil
}

// conf is what there is now; an attempt keeps what it began with.
func (w *Worker) conf() *Config {
	if c := w.renewed.Load(); c != nil {
		return c
	}
	return &w.cfg
}

// Renew has the worker know another catalog, and other policies of retention by database, from now on. Attempts that have
// begun go on with what they know, so what is taken out of a catalog must stay usable until Stop has returned. It keeps what
// it is given.
func (w *Worker) Renew(c Catalog, policies map[string]retention.Policy) {
	next := w.cfg
	next.Catalog, next.Retention = c, policies
	w.renewed.Store(&next)
	w.wakeAll()
}

// component is how tasks of one type are done: each at a place of its own, so that a long one keeps none of the others
// waiting. What became of a task is in its row, so that nothing of fairness is the component's.
func (w *Worker) component(t ledger.TaskType) component.Config {
	name := Component(t)
	return component.Config{
		Component: name, Node: w.cfg.Gate.Self().Node, Trigger: trigger(t), NoRetry: true, Procedure: component.One,
		SimultaneousProcesses: w.cfg.MaxConcurrent, Peek: true,
		Worker: doer{w}, Locks: w.cfg.Locks, Claims: claims{w.cfg.Claims, w}, Gate: w.cfg.Gate, Index: candidates{w, t}, Store: rows{w},
		Limit: cmp.Or(w.cfg.Limit, noLimit), Grace: w.cfg.CleanupWithin, Settle: w.cfg.CleanupWithin, Every: w.cfg.PollEvery,
		Fairness: component.Fairness{BackOff: w.cfg.RetryAfter, MaxBackOff: w.cfg.RetryAfter << 6, QuarantineAfter: -1},
		Paused:   w.cfg.Drained, Now: w.cfg.Now, Logger: w.cfg.Logger,
	}
}

// claims are those of the group, and tell the worker of refused ones.
type claims struct {
	component.Claims
	w *Worker
}

func (c claims) TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error) {
	got, err := c.Claims.TryClaim(ctx, component, item, roundTrip)
	if err != nil {
		c.w.refused(item)
	}
	return got, err
}

// taskTypes are those that a Worker runs.
func taskTypes() []ledger.TaskType {
	return []ledger.TaskType{ledger.Create, ledger.Restore, ledger.Delete, ledger.Verify, ledger.Replicate}
}

// Components are the names of the components that a Worker runs.
func Components() []string {
	var names []string
	for _, t := range taskTypes() {
		names = append(names, Component(t))
	}
	return names
}

// Runners are the runners of the worker's components, by name, for those who look at them.
func (w *Worker) Runners() map[string]*component.Runner {
	out := make(map[string]*component.Runner, len(w.runners))
	for t, r := range w.runners {
		out[Component(t)] = r
	}
	return out
}

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
	w.loops.Go(func() { w.watchErrors(loop) })
	for _, r := range w.runners {
		if err := r.Start(w.base); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		r.Wake()
	}
	base := w.base
	context.AfterFunc(base, func() {
		for _, r := range w.runners {
			_ = r.Stop(base) // only says so: its context has ended
		}
	})
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

// Hurry ends the grace of a Stop that is under way, or to come: what still runs is reverted and planned again at once. It
// may be called more than once, and does not block.
func (w *Worker) Hurry() { w.endPatience() }

func (w *Worker) shutDown() {
	w.endLoop()
	grace, cancel := context.WithTimeout(w.patience, w.cfg.StopGrace)
	w.eachRunner(func(r *component.Runner) error { return r.Drain(grace) })
	cancel()
	clean, cancel := context.WithTimeout(context.Background(), w.cfg.CleanupWithin)
	w.eachRunner(func(r *component.Runner) error { return r.Stop(clean) })
	cancel()
	w.endBase()
	w.eachRunner(func(r *component.Runner) error { return r.Stop(context.Background()) })
	w.loops.Wait()
}

// eachRunner does something to all runners side by side.
func (w *Worker) eachRunner(do func(*component.Runner) error) {
	var all sync.WaitGroup
	for _, r := range w.runners {
		all.Go(func() { _ = do(r) }) // that not all has ended is what the next step is for
	}
	all.Wait()
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
			w.wakeAll()
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

// wakeAll has every component look for tasks.
func (w *Worker) wakeAll() {
	for _, r := range w.runners {
		r.Wake()
	}
}
