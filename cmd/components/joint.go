package components

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// Config says what components are joined to.
type Config struct {
	Group   *gms.Group        // required
	Manager *recovery.Manager // required: that of the group
	// Ledger and Items are where items are kept, both or neither; nil: in the group's state cache, where the daemon of the
	// same group has those of an embedded ledger. Of the Ledger only ShutOut is asked.
	Ledger ledger.Ledger
	Items  component.Items
	// Granted is told of each token before it is used; its error gives the claim back. nil: nobody needs to know.
	Granted func(ctx context.Context, token uint64) error
	// Runner is this node's runner of a component, nil for none. A Host knows its own, and leaves this alone.
	Runner func(component string) *component.Runner
	// Drained tells that nothing adopted shall begin on this node; nil: never. It must not block.
	Drained func() bool
	Logger  *slog.Logger // nil discards
}

func (c *Config) complete() error {
	switch {
	case c.Group == nil, c.Manager == nil:
		return errors.New("components: Group or Manager is missing")
	case (c.Ledger == nil) != (c.Items == nil):
		return errors.New("components: want both of Ledger and Items, or neither")
	}
	if c.Granted == nil {
		c.Granted = func(context.Context, uint64) error { return nil }
	}
	if c.Runner == nil {
		c.Runner = func(string) *component.Runner { return nil }
	}
	if c.Drained == nil {
		c.Drained = func() bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ledger != nil {
		return nil
	}
	led, err := embedded.New(embedded.Config{Store: Store(c.Group)})
	if err != nil {
		return fmt.Errorf("components: %w", err)
	}
	group := c.Group
	c.Ledger, c.Items = led, embedded.NewItems(led, func() string { _, run := group.Self(); return run })
	return nil
}

// Joint is a group as components see it: their Locks, Claims and Gate, and what recovers their claims. All methods are safe
// for concurrent use. A claim under the name of one of its components that nobody works on is given back: what a component
// claims is its runner's alone.
type Joint struct {
	cfg Config

	mu    sync.Mutex
	seats map[string]bool      // run locks that are held
	lost  map[uint64]time.Time // claims of this run that nobody here works on: since when, by token
	aside map[uint64]bool      // claims whose items an operator wants set aside when they end, by token
}

var (
	_ component.Locks  = (*Joint)(nil)
	_ component.Claims = (*Joint)(nil)
	_ component.Gate   = (*Joint)(nil)
)

// New makes a joint. It starts nothing. Its error names what is missing.
func New(cfg Config) (*Joint, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Joint{cfg: cfg, seats: make(map[string]bool), lost: make(map[uint64]time.Time), aside: make(map[uint64]bool)}, nil
}

// Items are those of all components.
func (j *Joint) Items() component.Items { return j.cfg.Items }

// Ledger is where they are kept: with Items it makes an index of the completed backups (pipeline.BackupItems).
func (j *Joint) Ledger() ledger.Ledger { return j.cfg.Ledger }

// LockPoll implements component.Locks; its errors are those of gms.Group.WaitLock.
func (j *Joint) LockPoll(ctx context.Context, name string) (component.Unlock, error) {
	l, err := j.cfg.Group.WaitLock(ctx, component.PollLock(name))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := j.cfg.Group.Unlock(ctx, l)
		if errors.Is(err, gms.ErrNotHolder) || errors.Is(err, gms.ErrRunClosed) {
			return nil // it has ended by itself
		}
		return err
	}, nil
}

// LockRun implements component.Locks; its only error is component.ErrBusy. A node is one process, which its home's lock sees to, so that the group need not
// know.
func (j *Joint) LockRun(_ context.Context, name string, seat int) (component.Unlock, error) {
	node, _ := j.cfg.Group.Self()
	lock := component.RunLock(name, node, seat)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seats[lock] {
		return nil, component.ErrBusy
	}
	j.seats[lock] = true
	return func(context.Context) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.seats, lock)
		return nil
	}, nil
}

// TryClaim implements component.Claims: component.ErrBusy; any other error, of gms.Group.Claim or Config.Granted, means
// unknown.
func (j *Joint) TryClaim(ctx context.Context, name, item string, roundTrip int) (component.Claim, error) {
	c, err := j.cfg.Group.Claim(ctx, name, item, uint32(roundTrip))
	switch {
	case errors.Is(err, gms.ErrBusy), errors.Is(err, gms.ErrQuarantined):
		j.giveBackLost(ctx, name, item)
		return component.Claim{}, fmt.Errorf("%w: %w", component.ErrBusy, err)
	case err != nil:
		return component.Claim{}, err
	}
	if err := j.cfg.Granted(ctx, c.Token); err != nil {
		return component.Claim{}, errors.Join(err, j.End(ctx, ClaimOf(c), signals.Abandon))
	}
	return ClaimOf(c), nil
}

// ClaimOf is a claim of the group as components see it.
func ClaimOf(c signals.Claim) component.Claim {
	return component.Claim{Component: c.Component, Item: c.Item, RoundTrip: int(c.RoundTrip), Token: c.Token}
}

// EndClaim implements component.Claims; its errors are those of End.
func (j *Joint) EndClaim(ctx context.Context, c component.Claim, done bool) error {
	how := signals.Abandon
	j.mu.Lock()
	switch {
	case j.aside[c.Token]:
		how = signals.Quarantine
	case done:
		how = signals.Complete
	}
	j.mu.Unlock()
	err := j.End(ctx, c, how)
	if err == nil {
		j.forget(c.Token)
	}
	return err
}

// End ends a claim of this run; that it is somebody else's by now, or nobody's, is no error. It is repeated until ctx ends, with an error of
// gms.Group.EndClaim then.
func (j *Joint) End(ctx context.Context, c component.Claim, how signals.How) error {
	claim := signals.Claim{Component: c.Component, Item: c.Item, RoundTrip: uint32(c.RoundTrip), Token: c.Token}
	err := j.cfg.Group.EndClaim(ctx, claim, how)
	if errors.Is(err, gms.ErrNotHolder) || errors.Is(err, gms.ErrNotFound) || errors.Is(err, gms.ErrRunClosed) {
		return nil
	}
	return err
}

// Standing implements component.Gate; an error means that the lease is not held.
func (j *Joint) Standing(ctx context.Context) (context.Context, error) {
	group := j.cfg.Group
	open, ok := group.RunContext()
	node, run := group.Self()
	if standing, _ := group.Standing(); !ok || run == "" || standing != gms.Held {
		return nil, fmt.Errorf("node %s may not start work: its lease is not held", node)
	}
	held, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(open, func() { cancel(context.Cause(open)) })
	context.AfterFunc(held, func() { stop() })
	return held, nil
}

// AwaitHeld implements component.Gate; its error is ctx's.
func (j *Joint) AwaitHeld(ctx context.Context) error {
	for {
		standing, changed := j.cfg.Group.Standing()
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

// AwaitUnfenced implements component.Gate; its errors are those of recovery.Manager.AwaitUnfenced.
func (j *Joint) AwaitUnfenced(ctx context.Context, component string) error {
	return j.cfg.Manager.AwaitUnfenced(ctx, component)
}
