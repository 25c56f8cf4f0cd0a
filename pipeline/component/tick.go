package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// RunOnce makes one tick: what cron would start each minute. It returns when all its children have ended, or are known
// to be stuck. When ctx ends, or the runner stops, so does the work. It may be called before Start, and at any time
// beside the timer: the run lock lets one tick of Many, and SimultaneousProcesses of One, go on at once on a node.
func (r *Runner) RunOnce(ctx context.Context) Tick {
	if !r.enter() {
		return Tick{Err: ErrStopped}
	}
	defer r.running.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.base, func() { cancel(context.Cause(r.base)) })()
	t := r.tick(ctx)
	r.count(t.Counts)
	return t
}

// tick is the order of all locks: standing, fence, run lock, poll lock, items.
func (r *Runner) tick(ctx context.Context) (t Tick) {
	detached, end := context.WithCancel(context.WithoutCancel(ctx))
	run, err := r.cfg.Gate.Standing(detached)
	if err != nil {
		end()
		t.Err = fmt.Errorf("%w: %w", ErrLost, err)
		return t
	}
	tickets := &tickets{end: end}
	tickets.take() // the tick's own; a stuck child keeps one
	defer tickets.give()
	if r.paused() {
		t.Err = ErrPaused
		return t
	}
	if err := r.unfenced(ctx); err != nil {
		t.Err = err
		return t
	}
	unlock, err := r.lockRun(ctx)
	if err != nil {
		t.Err = err
		return t
	}
	defer r.unlock("run lock", unlock)
	want := 1
	if r.cfg.Procedure == Many {
		want = r.cfg.SimultaneousProcesses
	}
	room := r.reserve(want)
	if room == 0 {
		t.Err = fmt.Errorf("all %d places are taken: %w", r.cfg.SimultaneousProcesses, r.whyFull())
		return t
	}
	if r.paused() { // again: whoever pauses and then finds no place taken knows that none will be
		r.free(room)
		t.Err = ErrPaused
		return t
	}
	var claimed []claimed
	if !r.cfg.Peek || r.peek(ctx, &t) {
		claimed = r.poll(ctx, room, &t)
	}
	r.free(room - len(claimed))
	if t.Full = len(claimed) == room; t.Full && r.cfg.Procedure == One {
		r.Wake() // another timer, for another place
	}
	r.children(ctx, run, claimed, &t, tickets)
	return t
}

func (r *Runner) paused() bool { return r.cfg.Paused != nil && r.cfg.Paused() }

func (r *Runner) whyFull() error {
	if len(r.Stuck()) > 0 {
		return ErrNotStopped
	}
	return ErrBusy
}

// errFenced: the node's last run is being recovered.
var errFenced = errors.New("the node's last run is being recovered")

// unfenced waits a little for the node's fence to be lowered: a restarted node leaves its dead run's work alone.
func (r *Runner) unfenced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.PollWait)
	defer cancel()
	if err := r.cfg.Gate.AwaitUnfenced(ctx, r.cfg.Component); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrBusy, errFenced, err)
	}
	return nil
}

// lockRun takes the first free run lock.
func (r *Runner) lockRun(ctx context.Context) (Unlock, error) {
	seats := 1
	if r.cfg.Procedure == One {
		seats = r.cfg.SimultaneousProcesses
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.PollWait)
	defer cancel()
	for seat := range seats {
		unlock, err := r.cfg.Locks.LockRun(ctx, r.cfg.Component, seat)
		if errors.Is(err, ErrBusy) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("take run lock: %w", err)
		}
		return unlock, nil
	}
	return nil, fmt.Errorf("run lock: %w: it runs on this node already", ErrBusy)
}

// claimed is an item with its claim.
type claimed struct {
	item  Item
	claim Claim
}

// peek tells whether the index has anything for this node, without the poll lock.
func (r *Runner) peek(ctx context.Context, t *Tick) bool {
	items, err := r.query(ctx, t)
	if err != nil {
		t.Err = fmt.Errorf("query: %w", err)
	}
	return len(items) > 0
}

// poll is what happens under the poll lock: query, and claim up to room. Nothing is worked on before it has returned.
func (r *Runner) poll(ctx context.Context, room int, t *Tick) []claimed {
	wait, cancel := context.WithTimeout(ctx, r.cfg.PollWait)
	unlock, err := r.cfg.Locks.LockPoll(wait, r.cfg.Component)
	timedOut := errors.Is(wait.Err(), context.DeadlineExceeded)
	cancel()
	switch {
	case err != nil && (timedOut || errors.Is(err, ErrBusy)):
		t.Err = fmt.Errorf("poll lock: %w: %w", ErrBusy, err)
		return nil
	case err != nil:
		t.Err = fmt.Errorf("take poll lock: %w", err)
		return nil
	}
	began := time.Now()
	defer func() {
		r.unlock("poll lock", unlock)
		t.PollHeld = time.Since(began)
	}()
	items, err := r.query(ctx, t)
	if err != nil {
		t.Err = fmt.Errorf("query: %w", err)
		return nil
	}
	t.Queried = len(items)
	return r.claim(ctx, items, room, began.Add(r.cfg.PollHold), t)
}

func (r *Runner) query(ctx context.Context, t *Tick) ([]Item, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.PollWait)
	defer cancel()
	now := r.cfg.Now()
	items, err := r.cfg.Index.Query(ctx, Query{r.cfg.Component, r.cfg.triggers(), now, r.cfg.QueryLimit})
	if err != nil {
		return nil, err
	}
	t.Next = firstReady(items, now)
	return r.wanted(Order(items, now)), nil
}

// firstReady is when the first of the items that only wait for their time will be ready; zero when none does.
func firstReady(items []Item, now time.Time) (first time.Time) {
	for _, it := range items {
		at := it.Record.NotBefore
		if !it.Record.Quarantined && at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// wanted leaves out what this node cannot do or leaves alone for now.
func (r *Runner) wanted(items []Item) []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	var out []Item
	for _, it := range items {
		if !r.skips.has(it, now) && (r.cfg.Able == nil || r.cfg.Able(it)) {
			out = append(out, it)
		}
	}
	return out
}

// silentTries is how many tries in a row may have no answer: then the group is out of reach, and no more are made.
const silentTries = 3

// claim tries items in order until there are room claims, the time is over, or three tries in a row had no answer. It tries
// as many at once as there is room for, so that their grants share an entry of the group's log, and never more: each
// of them may be given. With room for one, which is all that One has, it tries one after the other.
func (r *Runner) claim(ctx context.Context, items []Item, room int, until time.Time, t *Tick) []claimed {
	var out []claimed
	var unknown error
	silent := 0
	for len(items) > 0 && len(out) < room && silent < silentTries && ctx.Err() == nil && time.Now().Before(until) {
		n := min(room-len(out), len(items))
		for _, try := range r.tryAll(ctx, items[:n]) {
			switch {
			case try.err == nil:
				out, silent = append(out, try.claimed), 0
				t.Claimed++
			case errors.Is(try.err, ErrBusy):
				t.Busy++
				silent = 0
			default:
				t.Unknown++
				silent++
				unknown = fmt.Errorf("claim %s: %w", ItemLock(r.cfg.Component, try.item.ID, try.item.RoundTrip), try.err)
			}
		}
		items = items[n:]
	}
	if len(out) == 0 {
		t.Err = unknown // some that are had are enough for a tick
	}
	return out
}

// tried is the answer to one try.
type tried struct {
	claimed
	err error
}

// tryAll tries to claim items at once, and answers in their order.
func (r *Runner) tryAll(ctx context.Context, items []Item) []tried {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.ItemWait)
	defer cancel()
	out := make([]tried, len(items))
	var wait sync.WaitGroup
	for i, it := range items {
		wait.Go(func() {
			c, err := r.cfg.Claims.TryClaim(ctx, r.cfg.Component, it.ID, it.RoundTrip)
			out[i] = tried{claimed{it, c}, err}
		})
	}
	wait.Wait()
	return out
}

func (r *Runner) unlock(what string, unlock Unlock) {
	ctx, cancel := r.settling()
	defer cancel()
	if err := unlock(ctx); err != nil {
		r.cfg.Logger.WarnContext(ctx, "lock not given back, it ends with the run", "lock", what, "err", err)
	}
}

// children works on all claims side by side and waits for them; each releases its item at its own end.
func (r *Runner) children(ctx, run context.Context, list []claimed, t *Tick, tickets *tickets) {
	results := make([]result, len(list))
	var wait sync.WaitGroup
	for i, c := range list {
		wait.Go(func() { results[i] = r.child(ctx, run, c, tickets) })
	}
	wait.Wait()
	reports := make([]Report, 0, len(results))
	for _, res := range results {
		t.Counts.add(res.counts())
		if res.kind != stale {
			reports = append(reports, res.report)
		}
		if res.err != nil && t.Err == nil && res.kind != stale && res.kind != stored {
			t.Err = res.err
		}
	}
	t.Report = Merge(reports...)
}

// tickets keep a run's context alive until the tick and all that it started have ended.
type tickets struct {
	mu  sync.Mutex
	n   int
	end context.CancelFunc
}

func (k *tickets) take() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n++
}

func (k *tickets) give() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n--; k.n == 0 {
		k.end()
	}
}
