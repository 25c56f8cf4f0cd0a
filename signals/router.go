package signals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Errors of a Router that a caller branches on.
var (
	// ErrStopped: the router was stopped. It is also the cause with which Stop ends the contexts of actions.
	ErrStopped = errors.New("signal router is stopped")
	// ErrNotStarted: recoveries are delivered to a running router only.
	ErrNotStarted = errors.New("signal router is not started")
	// ErrRegistered: the component has such a factory already.
	ErrRegistered = errors.New("component has a factory already")
	// ErrNoFactory: no factory is registered for the component.
	ErrNoFactory = errors.New("no factory for the component")
	// ErrQueueFull: the component is so slow that no more messages are kept for it; this one was dropped.
	ErrQueueFull = errors.New("queue of messages is full")
)

// Options of a Router. The zero value is usable.
type Options struct {
	// Logger gets errors and panics of actions; nil: nobody does, and OnError is the place to notice.
	Logger *slog.Logger
	// MessageBytes bounds what waits for one message factory, in bytes; a single message is always taken.
	// 0: 64 MiB. Other signals are few and are never dropped.
	MessageBytes int
	// OnError, if set, is called for each action that failed or panicked (*PanicError), recoveries excepted. It is
	// called on that factory's worker: while it blocks, only that factory waits.
	OnError func(s Signal, err error)
}

const defaultMessageBytes = 64 << 20

// Router hands signals to the host's actions.
//
// Each factory has a queue and a worker of its own: it gets signals in the order of Deliver, one at a time, and a slow
// action delays nobody but its own factory. Recoveries do not queue: each runs on its own goroutine.
type Router struct {
	opts Options
	log  *slog.Logger

	mu         sync.Mutex
	state      routerState
	lanes      []*lane             // of notices, in order of registration
	messages   map[string]*lane    // by component
	recoveries map[string]recovery // by component
	changed    chan struct{}       // closed and replaced when a recovery component is added
	spawn      func(func(ctx context.Context))
	quit       context.CancelCauseFunc
	wg         sync.WaitGroup
}

type routerState int

const (
	stateNew routerState = iota
	stateRunning
	stateStopped
)

type recovery struct {
	Component
	factory ActionFactory
}

// NewRouter makes a router that holds signals back until Start.
func NewRouter(opts Options) *Router {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.MessageBytes <= 0 {
		opts.MessageBytes = defaultMessageBytes
	}
	return &Router{
		opts:       opts,
		log:        opts.Logger.With("component", "signals"),
		messages:   make(map[string]*lane),
		recoveries: make(map[string]recovery),
		changed:    make(chan struct{}),
	}
}

// AddActionFactory registers f for kinds; none given: for all kinds. FailureRecovery and MessageReceived have calls of
// their own and are refused here. It may be called before Start or later, from anywhere; f gets what is delivered from
// then on. A factory added twice gets everything twice.
func (r *Router) AddActionFactory(f ActionFactory, kinds ...Kind) error {
	for _, k := range kinds {
		if k == FailureRecovery || k == MessageReceived || !slices.Contains(Kinds(), k) {
			return fmt.Errorf("add action factory: kind %q is not delivered this way", k)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.addLane(f, 0)
	if err != nil {
		return fmt.Errorf("add action factory: %w", err)
	}
	l.kinds = slices.Clone(kinds)
	r.lanes = append(r.lanes, l)
	return nil
}

// AddMessageFactory registers f for messages to component: ErrRegistered when it has one. Otherwise like
// AddActionFactory.
func (r *Router) AddMessageFactory(component string, f ActionFactory) error {
	if _, err := newComponent(component, nil); err != nil {
		return fmt.Errorf("add message factory: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.messages[component] != nil {
		return fmt.Errorf("add message factory of %s: %w", component, ErrRegistered)
	}
	l, err := r.addLane(f, r.opts.MessageBytes)
	if err != nil {
		return fmt.Errorf("add message factory of %s: %w", component, err)
	}
	r.messages[component] = l
	return nil
}

// AddRecoveryFactory registers f for recoveries of component, and so offers this member as a candidate for them. All
// members call it in the same way. ErrRegistered when the component has one. It may be called before Start or later.
func (r *Router) AddRecoveryFactory(component string, f ActionFactory, opts ...ComponentOption) error {
	c, err := newComponent(component, opts)
	if err != nil {
		return fmt.Errorf("add recovery factory: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == stateStopped {
		return fmt.Errorf("add recovery factory of %s: %w", component, ErrStopped)
	}
	if _, dup := r.recoveries[component]; dup {
		return fmt.Errorf("add recovery factory of %s: %w", component, ErrRegistered)
	}
	r.recoveries[component] = recovery{Component: c, factory: f}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// Components lists the components with a recovery factory, by name. changed is closed when there is another one.
func (r *Router) Components() (list []Component, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.recoveries {
		list = append(list, rec.Component)
	}
	slices.SortFunc(list, func(a, b Component) int { return strings.Compare(a.Name, b.Name) })
	return list, r.changed
}

// Component finds the options with which the component was registered for recovery.
func (r *Router) Component(name string) (Component, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.recoveries[name]
	return rec.Component, ok
}

// Start begins to hand out what was delivered. The contexts of actions descend from ctx. A second Start is an error,
// Start after Stop is ErrStopped.
func (r *Router) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case stateStopped:
		return fmt.Errorf("start signal router: %w", ErrStopped)
	case stateRunning:
		return errors.New("start signal router: started already")
	}
	ctx, r.quit = context.WithCancelCause(ctx)
	r.spawn = func(f func(context.Context)) { r.wg.Go(func() { f(ctx) }) }
	r.state = stateRunning
	for _, l := range slices.Concat(r.lanes, slices.Collect(maps.Values(r.messages))) {
		r.spawn(l.work)
	}
	return nil
}

// Stop ends the contexts of all running actions with the cause ErrStopped, drops what is still queued and waits until
// the actions have returned. It may come first, or twice. An action must not call it: it would wait for itself.
func (r *Router) Stop() {
	r.mu.Lock()
	if r.state == stateRunning {
		r.quit(ErrStopped)
	}
	r.state = stateStopped
	r.mu.Unlock()
	r.wg.Wait()
}

// Deliver queues s for every factory that wants it and never blocks. Calls that follow one another are seen in that
// order by each factory. Signals delivered before Start wait for it.
//
// Messages: ErrNoFactory or ErrQueueFull when nobody will get it. Other kinds nobody wants are no error. Recoveries go
// through DeliverRecovery. ErrStopped after Stop.
func (r *Router) Deliver(s Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == stateStopped {
		return fmt.Errorf("deliver %s signal: %w", s.Kind(), ErrStopped)
	}
	switch s := s.(type) {
	case *Message:
		l := r.messages[s.component]
		if l == nil {
			return fmt.Errorf("deliver message to %s: %w", s.component, ErrNoFactory)
		}
		if !l.push(s) {
			return fmt.Errorf("deliver message to %s: %w", s.component, ErrQueueFull)
		}
		return nil
	case FailureRecoverySignal:
		return fmt.Errorf("deliver %s signal: it has a call of its own", s.Kind())
	}
	for _, l := range r.lanes {
		if l.wants(s.Kind()) {
			l.push(s)
		}
	}
	return nil
}

// DeliverRecovery runs the action of s's component on a goroutine of its own, whatever else is running, and does not
// wait for it. The action's context ends with ctx, and when the router stops.
//
// When it returns nil, done is called exactly once, on that goroutine, with the action's result: nil, its error, or a
// *PanicError; an error that came while the router was stopping also wraps ErrStopped. Otherwise (ErrNotStarted, ErrStopped, ErrNoFactory) nothing runs and done is not called.
func (r *Router) DeliverRecovery(ctx context.Context, s FailureRecoverySignal, done func(error)) error {
	component := s.Appointment().Component
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.recoveries[component]
	switch {
	case r.state == stateNew:
		return fmt.Errorf("deliver recovery of %s: %w", component, ErrNotStarted)
	case r.state == stateStopped:
		return fmt.Errorf("deliver recovery of %s: %w", component, ErrStopped)
	case !ok:
		return fmt.Errorf("deliver recovery of %s: %w", component, ErrNoFactory)
	}
	r.spawn(func(running context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		unhook := context.AfterFunc(running, func() { cancel(context.Cause(running)) })
		defer unhook()
		err := consume(ctx, rec.factory, s)
		if err != nil && running.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrStopped, err)
		}
		done(err)
	})
	return nil
}
