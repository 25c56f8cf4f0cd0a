package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// An autonomous component on a group: it finds its own work by what has happened to items, claims it so that no other node
// does it too, and keeps what it did with the item. Here batches that were scanned are to be checked. Packages gms and
// component do not know each other; an app joins them by the two small types below.
func Example_autonomousComponent() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, err := gms.New(gms.DefaultConfig())
	must(err)
	manager, err := recovery.ForGroup(group, recovery.Options{})
	must(err)
	must(errors.Join(group.Start(ctx), manager.Start(ctx), group.AwaitStanding(ctx)))
	defer func() {
		manager.Stop()
		must(group.Stop(ctx))
	}()

	items := shelf{group}
	scanned := component.Event{Type: "scan", Start: time.Date(2026, 5, 2, 2, 0, 0, 0, time.UTC), Success: true}
	must(items.put(ctx, component.Item{Type: "batch", ID: "batch-1", Events: []component.Event{scanned}}))
	must(items.put(ctx, component.Item{Type: "batch", ID: "batch-2"})) // not scanned yet

	at := junction{group, manager}
	runner, err := component.New(component.Config{
		Component: "check", Node: "n1", SimultaneousProcesses: 2,
		Trigger: component.Trigger{Past: []string{"scan"}, Future: []string{"check"}},
		Worker: component.Func(func(_ context.Context, j component.Job) (component.Report, error) {
			fmt.Println("checking", j.Item.ID)
			return component.Report{}, nil
		}),
		Locks: at, Claims: at, Gate: at, Index: items, Store: items,
	})
	must(err)
	for range 2 { // runner.Start does so by a timer
		tick := runner.RunOnce(ctx)
		fmt.Println("done:", tick.Done)
	}
	// Output:
	// checking batch-1
	// done: 1
	// done: 0
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("example: %v", err))
	}
}

// junction is the group as components see it.
type junction struct {
	group   *gms.Group
	manager *recovery.Manager
}

func (j junction) LockPoll(ctx context.Context, name string) (component.Unlock, error) {
	l, err := j.group.WaitLock(ctx, component.PollLock(name))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return j.group.Unlock(ctx, l) }, nil
}

// LockRun has nothing to do: a node is one process, and this one ticks once at a time.
func (j junction) LockRun(context.Context, string, int) (component.Unlock, error) {
	return func(context.Context) error { return nil }, nil
}

func (j junction) TryClaim(ctx context.Context, name, item string, roundTrip int) (component.Claim, error) {
	c, err := j.group.Claim(ctx, name, item, uint32(roundTrip))
	if errors.Is(err, gms.ErrBusy) || errors.Is(err, gms.ErrQuarantined) {
		return component.Claim{}, component.ErrBusy
	}
	return component.Claim{Component: c.Component, Item: c.Item, RoundTrip: int(c.RoundTrip), Token: c.Token}, err
}

func (j junction) EndClaim(ctx context.Context, c component.Claim, done bool) error {
	how := signals.Abandon
	if done {
		how = signals.Complete
	}
	err := j.group.EndClaim(ctx, signals.Claim{Component: c.Component, Item: c.Item, RoundTrip: uint32(c.RoundTrip), Token: c.Token}, how)
	if errors.Is(err, gms.ErrNotHolder) || errors.Is(err, gms.ErrNotFound) || errors.Is(err, gms.ErrRunClosed) {
		return nil // it has moved, which is no error
	}
	return err
}

func (j junction) Standing(ctx context.Context) (context.Context, error) {
	run, ok := j.group.RunContext()
	if st, _ := j.group.Standing(); !ok || st != gms.Held {
		return nil, gms.ErrLeaseExpired
	}
	ctx, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(run, func() { cancel(context.Cause(run)) })
	return ctx, nil
}

func (j junction) AwaitHeld(ctx context.Context) error {
	for {
		st, changed := j.group.Standing()
		if st == gms.Held {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (j junction) AwaitUnfenced(ctx context.Context, name string) error {
	return j.manager.AwaitUnfenced(ctx, name)
}

// shelf keeps items in the state cache. What it decides is component.Kept's; that a write is refused whose claim has moved
// is the group's, at the very entry of the log that would make it.
type shelf struct{ group *gms.Group }

func (s shelf) key(id string) gms.Key { return gms.Key{Component: "items", Key: id} }

func (s shelf) put(ctx context.Context, it component.Item) error {
	return s.commit(ctx, component.Kept{Item: it})
}

func (s shelf) commit(ctx context.Context, k component.Kept, conditions ...gms.Condition) error {
	value, err := json.Marshal(k)
	if err != nil {
		return err
	}
	_, err = s.group.Cache().Commit(ctx, gms.Txn{Conditions: conditions, Puts: []gms.Put{{Key: s.key(k.Item.ID), Value: value}}})
	return err
}

func (s shelf) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	entries, err := s.group.Cache().List(ctx, "items", "", "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	var all []component.Item
	for _, e := range entries {
		var k component.Kept
		if err := json.Unmarshal(e.Value, &k); err != nil {
			return nil, err
		}
		all = append(all, k.Seen(q.Component))
	}
	return component.Answer(all, q), nil
}

// change reads an item, has next say what becomes of it under the claim, and writes that if nobody else has changed it and
// the claim still holds.
func (s shelf) change(ctx context.Context, c component.Claim, next func(component.Kept) (component.Kept, bool)) (component.Kept, error) {
	_, run := s.group.Self()
	for {
		entry, err := s.group.Cache().Get(ctx, s.key(c.Item))
		if err != nil {
			return component.Kept{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		var k component.Kept
		if err := json.Unmarshal(entry.Value, &k); err != nil {
			return k, err
		}
		k, fenced := next(k)
		if fenced {
			return k, ledger.ErrFenced
		}
		err = s.commit(ctx, k, gms.ClaimHeld(c.Component, c.Item, run, c.Token), gms.VersionIs(entry.Key, entry.Version))
		switch {
		case errors.Is(err, gms.ErrConflict):
			continue // somebody else's event came in between
		case errors.Is(err, gms.ErrFenced), errors.Is(err, gms.ErrRunClosed):
			return k, fmt.Errorf("%w: %w", ledger.ErrFenced, err)
		case err != nil:
			return k, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		return k, nil
	}
}

func (s shelf) Begin(ctx context.Context, c component.Claim, at time.Time) (component.Item, error) {
	k, err := s.change(ctx, c, func(k component.Kept) (component.Kept, bool) { return k.AfterBegin(c, at) })
	return k.Seen(c.Component), err
}

func (s shelf) Finish(ctx context.Context, c component.Claim, r component.Result) error {
	_, err := s.change(ctx, c, func(k component.Kept) (component.Kept, bool) { return k.AfterFinish(c, r) })
	return err
}
