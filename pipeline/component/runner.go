package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Runner runs one component on one node. New builds it, Start runs it on a timer, RunOnce makes one tick, Stop ends both.
// Stop may come first, and more than once. All methods are safe for concurrent use.
type Runner struct {
	cfg  Config
	base context.Context // ends at Stop with ErrStopping
	end  context.CancelCauseFunc
	wake chan struct{}
	shut chan struct{} // closed when nothing new is begun any more

	mu       sync.Mutex
	started  bool
	stopped  bool
	occupied int                                // claims that are worked on or may be, the room that ticks have reserved included
	freed    chan struct{}                      // closed, and made anew, when occupied shrinks
	stuck    map[Claim]struct{}                 // not proven to have stopped
	holds    map[uint64]context.CancelCauseFunc // what ends the work under a claim, by token
	barred   map[uint64]struct{}                // tokens under which nothing begins any more
	total    Counts
	skips    skips
	running  sync.WaitGroup // ticks, children, the timer
}

// New checks a configuration. It starts nothing. Its error names the field that is wrong.
func New(cfg Config) (*Runner, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Runner{
		cfg: cfg, wake: make(chan struct{}, 1), shut: make(chan struct{}), freed: make(chan struct{}),
		stuck: make(map[Claim]struct{}), skips: make(skips), holds: make(map[uint64]context.CancelCauseFunc), barred: make(map[uint64]struct{}),
	}
	r.base, r.end = context.WithCancelCause(context.Background())
	return r, nil
}

// Start ticks on a timer until Stop; ctx only carries values. It returns at once. A second Start is an error, and so is
// one after Stop.
func (r *Runner) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return ErrStopped
	case r.started:
		return errors.New("component runner is started already")
	}
	r.started = true
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(r.base, func() { cancel(context.Cause(r.base)) })
	timers := 1
	if r.cfg.Procedure == One {
		timers = r.cfg.SimultaneousProcesses
	}
	for range timers {
		r.running.Go(func() { r.loop(ctx) })
	}
	return nil
}

// Wake makes a timer tick now; a hint that there is work.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stop claims nothing more, ends all work (context, grace, kill) and waits for its results to be stored and its claims
// to be given back. When ctx ends first it is ErrNotStopped, and what is not proven to have ended keeps its claim.
func (r *Runner) Stop(ctx context.Context) error {
	r.close()
	r.end(ErrStopping)
	return r.wait(ctx)
}

// Drain claims nothing more and waits for what runs to end by itself. When ctx ends first it is ErrNotStopped; Stop then
// ends what still runs.
func (r *Runner) Drain(ctx context.Context) error {
	r.close()
	return r.wait(ctx)
}

// close has nothing new begin.
func (r *Runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.stopped = true
		close(r.shut)
	}
}

func (r *Runner) wait(ctx context.Context) error {
	gone := make(chan struct{})
	go func() { // ends with the last child
		r.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop component %s: %w: %w", r.cfg.Component, ErrNotStopped, context.Cause(ctx))
	}
}

// Totals counts since New.
func (r *Runner) Totals() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Taken is how many places are taken: by items that are worked on, and by ticks that look for some. When Config.Paused says
// yes, and keeps saying so, and then no place is taken, none will be, but for a claim that is handed to the runner by Adopt.
func (r *Runner) Taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.occupied
}

// Stuck lists the claims whose work is not proven to have stopped.
func (r *Runner) Stuck() []Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Claim, 0, len(r.stuck))
	for c := range r.stuck {
		out = append(out, c)
	}
	return out
}

// enter registers something that Stop waits for.
func (r *Runner) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.running.Add(1)
	return true
}

func (r *Runner) loop(ctx context.Context) {
	wait := time.Duration(r.cfg.Random() * float64(r.cfg.Every)) // nodes that start together do not tick together
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.shut:
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil || isClosed(r.shut) {
			return
		}
		began := time.Now()
		t := r.RunOnce(ctx)
		if t.Err != nil && ctx.Err() == nil && !errors.Is(t.Err, ErrBusy) && !errors.Is(t.Err, ErrStopped) && !errors.Is(t.Err, ErrPaused) {
			r.cfg.Logger.WarnContext(ctx, "tick", "code", int(t.Code()), "err", t.Err)
		}
		wait = r.until(t, began)
	}
}

// until is how long the timer waits after a tick.
func (r *Runner) until(t Tick, began time.Time) time.Duration {
	took := time.Since(began)
	switch {
	case r.cfg.eager() && t.Full && t.Code() == ExitDone, errors.Is(t.Err, errFenced) && took >= r.cfg.PollWait:
		return 0
	}
	wait := max(r.interval()-took, 0)
	if !t.Next.IsZero() {
		wait = min(wait, max(t.Next.Sub(r.cfg.Now()), minWait))
	}
	return wait
}

// minWait is the shortest wait for an item's time: clocks that differ a little make no busy loop.
const minWait = 10 * time.Millisecond

// interval is Every with its jitter.
func (r *Runner) interval() time.Duration {
	return time.Duration(float64(r.cfg.Every) * (1 + r.cfg.Jitter*(2*r.cfg.Random()-1)))
}

// reserve takes room for up to want items, and says how much it got.
func (r *Runner) reserve(want int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := max(min(want, r.cfg.SimultaneousProcesses-r.occupied), 0)
	r.occupied += got
	return got
}

func (r *Runner) free(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(n)
}

// leave gives places back; r.mu is held.
func (r *Runner) leave(n int) {
	if n == 0 {
		return
	}
	r.occupied -= n
	close(r.freed)
	r.freed = make(chan struct{})
}

// awaitRoom takes a place as soon as there is one. When ctx ends first it takes one that is not there: what was adopted
// is brought to an end.
func (r *Runner) awaitRoom(ctx context.Context) {
	for {
		r.mu.Lock()
		freed, room := r.freed, r.occupied < r.cfg.SimultaneousProcesses
		if room || ctx.Err() != nil {
			r.occupied++
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
}

func (r *Runner) count(c Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.add(c)
}

func (r *Runner) alarm(kind AlarmKind, c Claim, err error) {
	r.cfg.Logger.Error("alarm", "kind", string(kind), "item", c.Item, "round_trip", c.RoundTrip, "token", c.Token, "err", err)
	if r.cfg.Alarm != nil {
		r.cfg.Alarm(Alarm{kind, c, err})
	}
}

// settling is a context for what must be finished whatever has ended, bounded by Config.Settle.
func (r *Runner) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), r.cfg.Settle)
}
