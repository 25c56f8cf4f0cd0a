package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// ErrStopped: the manager was stopped. It is also the cause with which Stop ends the contexts of actions.
var ErrStopped = errors.New("recovery manager is stopped")

// Deliverer runs the host's recovery actions; signals.Router is one.
type Deliverer interface {
	// DeliverRecovery runs the action of the signal's component and calls done once with its result; see signals.Router. On
	// an error (signals.ErrNotStarted, ErrStopped, ErrNoFactory) nothing runs and done is not called.
	DeliverRecovery(ctx context.Context, s signals.FailureRecoverySignal, done func(error)) error
	// Component gives the options with which a component was registered.
	Component(name string) (signals.Component, bool)
}

// Options of a Manager.
type Options struct {
	Log    Log          // required
	Router Deliverer    // required
	Node   string       // name of this member's node; required
	Logger *slog.Logger // gets what failed and what moved; nil: nobody does

	// MinBackoff is the pause before a failed action is delivered again; it doubles with each failure of the same
	// recovery up to MaxBackoff. 0: 200 ms and 5 s. MaxBackoff must stay below the group's fence_ttl, since an
	// appointment that is not acquired in that time moves on.
	MinBackoff, MaxBackoff time.Duration
	// StopGrace is how long Stop still tries to lower the fence of an action that returned nil while being stopped.
	// 0: 5 s.
	StopGrace time.Duration
}

func (o Options) withDefaults() (Options, error) {
	setDefault(&o.MinBackoff, 200*time.Millisecond)
	setDefault(&o.MaxBackoff, 5*time.Second)
	setDefault(&o.StopGrace, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Log == nil, o.Router == nil:
		return o, errors.New("recovery needs a log and a router")
	case o.Node == "":
		return o, errors.New("recovery needs the name of its node")
	case o.MinBackoff < 0 || o.MaxBackoff < o.MinBackoff:
		return o, fmt.Errorf("back-off from %v to %v: must be positive and grow", o.MinBackoff, o.MaxBackoff)
	case o.StopGrace < 0:
		return o, fmt.Errorf("stop grace of %v: must be positive", o.StopGrace)
	}
	return o, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Manager delivers FailureRecoverySignals for as long as the log wants them delivered.
type Manager struct {
	opts  Options
	log   *slog.Logger
	pokes chan struct{} // holds one mark when jobs are to be looked at again

	mu      sync.Mutex
	started bool
	stopped bool
	quit    context.CancelCauseFunc
	wg      sync.WaitGroup
}

// ForGroup makes the manager of a group, with the group's log, router and node, whatever opts says of these three. A process
// with several groups has a manager for each. Its error is New's.
func ForGroup(g *gms.Group, opts Options) (*Manager, error) {
	opts.Log, opts.Router = GroupLog(g), g.Router()
	opts.Node, _ = g.Self()
	return New(opts)
}

// New makes a manager that does nothing until Start. Its error names the option that is wrong or missing.
func New(opts Options) (*Manager, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make recovery manager: %w", err)
	}
	return &Manager{
		opts:  opts,
		log:   opts.Logger.With("component", "recovery"),
		pokes: make(chan struct{}, 1),
	}, nil
}

// Start begins to deliver. The router must be started before. The contexts of actions descend from ctx. A second Start
// is an error, Start after Stop is ErrStopped.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopped:
		return fmt.Errorf("start recovery manager: %w", ErrStopped)
	case m.started:
		return errors.New("start recovery manager: started already")
	}
	m.started = true
	ctx, m.quit = context.WithCancelCause(ctx)
	d := newDriver(m)
	m.wg.Go(func() { d.drive(ctx) })
	return nil
}

// Stop ends the contexts of running actions with the cause ErrStopped and waits until they have returned. What they did
// not finish is not reported as failed: it is handed over when this run is closed. Stop the manager before the router
// and the group. It may come first, or twice; an action must not call it.
func (m *Manager) Stop() {
	m.mu.Lock()
	m.stopped = true
	if m.quit != nil {
		m.quit(ErrStopped)
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// poke has the driver look again. It never blocks.
func (m *Manager) poke() {
	select {
	case m.pokes <- struct{}{}:
	default:
	}
}
