package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// bridge joins the pipeline and its components to the group: locks, claims and standing one way, recoveries the other.
type bridge struct {
	group   *gms.Group
	manager *recovery.Manager
	worker  *pipeline.Worker
	ledger  ledger.Ledger
	granted func(ctx context.Context, token uint64) error // told of each token before it is used
	drained func() bool                                   // this node begins nothing
	log     *slog.Logger

	items  component.Items                          // of the components that work on items
	runner func(component string) *component.Runner // of this node; nil: none, or not yet

	mu    sync.Mutex
	seats map[string]bool      // run locks that are held
	lost  map[uint64]time.Time // claims of this run that nobody here works on: since when, by token
	aside map[uint64]bool      // claims whose items an operator wants set aside when they end, by token
}

var (
	_ component.Locks  = (*bridge)(nil)
	_ component.Claims = (*bridge)(nil)
	_ pipeline.Gate    = (*bridge)(nil)
)

// LockPoll implements component.Locks.
func (b *bridge) LockPoll(ctx context.Context, name string) (component.Unlock, error) {
	l, err := b.group.WaitLock(ctx, component.PollLock(name))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := b.group.Unlock(ctx, l)
		if errors.Is(err, gms.ErrNotHolder) || errors.Is(err, gms.ErrRunClosed) {
			return nil // it has ended by itself
		}
		return err
	}, nil
}

// LockRun implements component.Locks. A node is one process, which its home's lock sees to, so that the group need not
// know.
func (b *bridge) LockRun(_ context.Context, name string, seat int) (component.Unlock, error) {
	lock := component.RunLock(name, b.Self().Node, seat)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seats[lock] {
		return nil, component.ErrBusy
	}
	if b.seats == nil {
		b.seats = make(map[string]bool)
	}
	b.seats[lock] = true
	return func(context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.seats, lock)
		return nil
	}, nil
}

// TryClaim implements component.Claims.
func (b *bridge) TryClaim(ctx context.Context, name, item string, roundTrip int) (component.Claim, error) {
	c, err := b.group.Claim(ctx, name, item, uint32(roundTrip))
	switch {
	case errors.Is(err, gms.ErrBusy), errors.Is(err, gms.ErrQuarantined):
		b.giveBackLost(ctx, name, item)
		return component.Claim{}, fmt.Errorf("%w: %w", component.ErrBusy, err)
	case err != nil:
		return component.Claim{}, err
	}
	if err := b.granted(ctx, c.Token); err != nil {
		return component.Claim{}, errors.Join(err, b.end(ctx, claimOf(c), signals.Abandon))
	}
	return claimOf(c), nil
}

// lostAfter is how long a claim of this run may go without anybody here working on it. A recovery hands what it adopted
// to the worker in much less.
const lostAfter = 30 * time.Second

// giveBackLost ends a claim that this very run holds and nobody here works on: a Release that took effect, but whose
// answer came too late for its recovery to go on, leaves what it adopted so, and a claim that could not be given back
// stays so. A component asks for an item only while it does not work on it. To end too much does no harm: whoever works
// under the claim is fenced then.
func (b *bridge) giveBackLost(ctx context.Context, component, item string) {
	_, self := b.group.Self()
	for _, c := range b.group.Claims() {
		mine := c.Run == self && !c.Orphan && !c.Adopted && !c.Quarantined
		if c.Component != component || c.Item != item || !mine || !b.isLost(c.Token) {
			continue
		}
		b.log.Warn("app: nobody works on a claim of this node, giving it back", "task", item, "token", c.Token)
		if err := b.end(ctx, claimOf(c.Claim), signals.Abandon); err != nil {
			b.log.Warn("app: claim not given back", "task", item, "error", err)
		}
	}
}

// isLost notes that the claim was met without work, and tells whether that is so for long enough.
func (b *bridge) isLost(token uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := b.lost[token]
	if !ok {
		if b.lost == nil || len(b.lost) >= 1000 {
			b.lost = make(map[uint64]time.Time)
		}
		b.lost[token] = time.Now()
		return false
	}
	if time.Since(since) < lostAfter {
		return false
	}
	delete(b.lost, token)
	return true
}

func claimOf(c signals.Claim) component.Claim {
	return component.Claim{Component: c.Component, Item: c.Item, RoundTrip: int(c.RoundTrip), Token: c.Token}
}

// EndClaim implements component.Claims.
func (b *bridge) EndClaim(ctx context.Context, c component.Claim, done bool) error {
	how := signals.Abandon
	b.mu.Lock()
	switch {
	case b.aside[c.Token]:
		how = signals.Quarantine
	case done:
		how = signals.Complete
	}
	b.mu.Unlock()
	err := b.end(ctx, c, how)
	if err == nil && how == signals.Quarantine {
		b.mu.Lock()
		delete(b.aside, c.Token)
		b.mu.Unlock()
	}
	return err
}

// setAside has the item of a claim be quarantined when the claim ends, whatever became of the work.
func (b *bridge) setAside(token uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.aside == nil {
		b.aside = make(map[uint64]bool)
	}
	b.aside[token] = true
}

// end ends a claim; that it is somebody else's by now, or nobody's, is no error.
func (b *bridge) end(ctx context.Context, c component.Claim, how signals.How) error {
	claim := signals.Claim{Component: c.Component, Item: c.Item, RoundTrip: uint32(c.RoundTrip), Token: c.Token}
	err := b.group.EndClaim(ctx, claim, how)
	if errors.Is(err, gms.ErrNotHolder) || errors.Is(err, gms.ErrNotFound) || errors.Is(err, gms.ErrRunClosed) {
		return nil
	}
	return err
}

// Self implements pipeline.Gate.
func (b *bridge) Self() pipeline.Standing {
	node, run := b.group.Self()
	return pipeline.Standing{Node: node, Run: run}
}

// Standing implements component.Gate.
func (b *bridge) Standing(ctx context.Context) (context.Context, error) {
	open, ok := b.group.RunContext()
	node, run := b.group.Self()
	if standing, _ := b.group.Standing(); !ok || run == "" || standing != gms.Held {
		return nil, fmt.Errorf("node %s may not start work: its lease is not held", node)
	}
	held, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(open, func() { cancel(context.Cause(open)) })
	context.AfterFunc(held, func() { stop() })
	return held, nil
}

// AwaitHeld implements component.Gate.
func (b *bridge) AwaitHeld(ctx context.Context) error {
	for {
		standing, changed := b.group.Standing()
		if standing == gms.Held {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AwaitUnfenced implements component.Gate.
func (b *bridge) AwaitUnfenced(ctx context.Context, component string) error {
	return b.manager.AwaitUnfenced(ctx, component)
}

// recover is the action of a FailureRecoverySignal: each of the dead run's tasks is taken over, reverted or completed,
// and what is to run again runs here once the fence is lowered.
func (b *bridge) recover(ctx context.Context, s signals.FailureRecoverySignal) error {
	a := s.Appointment()
	log := b.log.With("recovers", a.Component, "node", a.Node, "run", a.Run)
	fence, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	ctx = fence.Context()
	claims, err := b.adopt(ctx, fence)
	if err != nil {
		return err
	}
	if len(claims) > 0 { // else nothing is written under the token, and the storages need not hear of it
		if err := b.granted(ctx, fence.Token()); err != nil {
			return fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
		}
	}
	var again []signals.Claim
	for _, c := range claims {
		rerun, err := b.settle(ctx, a, fence, c)
		if err != nil {
			return fmt.Errorf("recover task %s: %w", c.Item, err)
		}
		if rerun {
			again = append(again, c)
		}
	}
	if err := s.Release(ctx); err != nil {
		return err
	}
	log.Info("app: recovered", "tasks", len(claims), "again", len(again), "token", fence.Token())
	for _, c := range again {
		b.resume(context.WithoutCancel(ctx), c)
	}
	return nil
}

// adopt makes the orphans claims of this run, and finds those that an earlier delivery under this fence adopted. The
// orphans are read first: one that is adopted in between is then in the second list, and never in neither.
func (b *bridge) adopt(ctx context.Context, fence signals.Fence) ([]signals.Claim, error) {
	orphans, err := fence.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var claims []signals.Claim
	for _, c := range b.group.Claims() {
		if c.Adopted && c.Fence == fence.Token() {
			claims = append(claims, c.Claim)
		}
	}
	for _, o := range orphans {
		c, err := fence.Adopt(ctx, o)
		if errors.Is(err, signals.ErrPoison) {
			b.log.Error("app: a task has cost its node its life too often and is set aside", "task", o.Item, "times", o.Orphanings)
			if err := fence.End(ctx, o.Claim, signals.Quarantine); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		b.log.Info("app: task adopted", "task", c.Item, "token", c.Token, "fence", fence.Token())
		claims = append(claims, c)
	}
	return claims, nil
}

// settle has the pipeline decide about one task, and ends its claim unless it runs again.
func (b *bridge) settle(ctx context.Context, a signals.Appointment, fence signals.Fence, c signals.Claim) (rerun bool, err error) {
	if err := b.granted(ctx, c.Token); err != nil {
		return false, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	}
	node, run := b.group.Self()
	guard := ledger.Guard{
		Run: run, Component: c.Component, Item: c.Item, Token: c.Token,
		Fence: &ledger.Fence{Component: a.Component, Node: a.Node, Run: a.Run, Token: fence.Token()},
	}
	verdict, err := b.worker.Recover(ctx, guard, node)
	switch {
	case errors.Is(err, pipeline.ErrUnavailable), errors.Is(err, ledger.ErrUnavailable):
		return false, fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
	case err != nil:
		return false, err
	case verdict == pipeline.Rerun:
		return true, nil
	}
	return false, fence.End(ctx, c, signals.Complete)
}

// resumeWithin bounds the hand-over of an adopted task to the worker; a claim that stays behind is given back later.
const resumeWithin = 15 * time.Second

var errDrained = errors.New("this node is drained")

// resume runs an adopted task again; when this node cannot, the claim is given back and any node takes it.
func (b *bridge) resume(ctx context.Context, c signals.Claim) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	err := errDrained
	if !b.drained() {
		err = b.worker.Resume(ctx, claimOf(c))
	}
	if err == nil {
		return
	}
	b.log.Warn("app: task not resumed here, giving it back", "task", c.Item, "error", err)
	if err := b.end(ctx, claimOf(c), signals.Abandon); err != nil {
		b.log.Warn("app: claim not given back", "task", c.Item, "error", err)
	}
}
