package components

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/signals"
)

// Host runs a host app's own components on its group. NewHost builds it, AddComponent adds to it, Start runs it, Stop ends
// it. Stop may come first, and more than once. All methods are safe for concurrent use.
type Host struct {
	*Joint

	mu      sync.Mutex
	added   []added
	state   hostState
	runners map[string]*component.Runner
	unwake  context.CancelFunc // ends the waking; nil before Start
	waking  sync.WaitGroup
}

// added is one component.
type added struct {
	runner  *component.Runner
	name    string
	orphans Orphans
}

type hostState int

const (
	hostNew hostState = iota
	hostStarted
	hostStopped
)

// ErrStopped is the answer of a host that has been stopped.
var ErrStopped = errors.New("host of components is stopped")

// NewHost makes a host without components. It starts nothing. Its error names what is missing.
func NewHost(cfg Config) (*Host, error) {
	h := &Host{runners: make(map[string]*component.Runner)}
	cfg.Runner = h.Runner
	var err error
	if h.Joint, err = New(cfg); err != nil {
		return nil, err
	}
	return h, nil
}

// AddComponent adds a component: its name, trigger, worker and times are the caller's. What is nil of Locks, Claims, Gate,
// Index and Store, and an empty Node, are the group's. It is to be the same on all nodes of the group that work for it, and
// its name no other's. Called before Start. Errors: what component.New says; a name that was added; ErrStopped.
func (h *Host) AddComponent(cfg component.Config, orphans Orphans) error {
	h.fill(&cfg)
	r, err := component.New(cfg)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state == hostStopped:
		return ErrStopped
	case h.state == hostStarted:
		return fmt.Errorf("component %s: the host is started already", cfg.Component)
	case h.runners[cfg.Component] != nil:
		return fmt.Errorf("component %s: it was added before", cfg.Component)
	}
	h.runners[cfg.Component] = r
	h.added = append(h.added, added{r, cfg.Component, orphans})
	return nil
}

// fill makes the group's part of a configuration.
func (h *Host) fill(cfg *component.Config) {
	if cfg.Node == "" {
		cfg.Node, _ = h.cfg.Group.Self()
	}
	if cfg.Locks == nil {
		cfg.Locks = h
	}
	if cfg.Claims == nil {
		cfg.Claims = h
	}
	if cfg.Gate == nil {
		cfg.Gate = h
	}
	if cfg.Index == nil {
		cfg.Index = h.Items()
	}
	if cfg.Store == nil {
		cfg.Store = h.Items()
	}
	if cfg.Logger == nil {
		cfg.Logger = h.cfg.Logger
	}
}

// Start has the group know the components, so that their claims are recovered wherever one of its nodes dies, and runs them:
// by their timers, and whenever the ledger has changed (Config.Peek keeps those that are mostly idle cheap). Group and Manager have been started; it waits until the node stands, or ctx ends, and then leaves nothing running. A second
// Start is an error, and so is one after Stop.
func (h *Host) Start(ctx context.Context) error {
	list, err := h.begin()
	if err != nil {
		return err
	}
	group := h.cfg.Group
	if err := group.Router().AddMessageFactory(YieldComponent, signals.Handle(h.HearYield)); err != nil {
		return err
	}
	for _, c := range list {
		act := h.FreeOrphans
		if c.orphans == Adopt {
			act = h.AdoptOrphans
		}
		if err := group.Router().AddRecoveryFactory(c.name, signals.HandleRecovery(act), signals.WithProgress(RecoveryStep)); err != nil {
			return fmt.Errorf("component %s: %w", c.name, err)
		}
	}
	if err := group.AwaitStanding(ctx); err != nil {
		return err
	}
	if err := group.AwaitRegistered(ctx, names(list)...); err != nil {
		return err
	}
	for _, c := range list {
		if err := c.runner.Start(ctx); err != nil {
			return fmt.Errorf("component %s: %w", c.name, err)
		}
	}
	h.wake(context.WithoutCancel(ctx), list)
	return nil
}

// wake passes the ledger's hints on until Stop.
func (h *Host) wake(ctx context.Context, list []added) {
	ctx, end := context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == hostStopped {
		end()
		return
	}
	h.unwake = end
	hints := h.cfg.Ledger.Watch(ctx)
	h.waking.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hints:
			}
			for _, c := range list {
				c.runner.Wake()
			}
		}
	})
}

func (h *Host) begin() ([]added, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case hostStopped:
		return nil, ErrStopped
	case hostStarted:
		return nil, errors.New("host of components is started already")
	}
	h.state = hostStarted
	return slices.Clone(h.added), nil
}

// Stop has all components end their work (context, grace, kill) and waits for its results to be stored and its claims to be
// given back. When ctx ends first it is component.ErrNotStopped. Manager and Group are stopped after it: Group.Stop is told
// Components, so that nothing is recovered that has been settled.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	h.state = hostStopped
	list := slices.Clone(h.added)
	if h.unwake != nil {
		h.unwake()
	}
	h.mu.Unlock()
	h.waking.Wait()
	errs := make([]error, len(list))
	var stopping sync.WaitGroup
	for i, c := range list {
		stopping.Go(func() { errs[i] = c.runner.Stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// Runner is the runner of a component, to be woken, asked and told; nil for one that was not added.
func (h *Host) Runner(component string) *component.Runner {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runners[component]
}

// Components are the names of those that were added, in that order.
func (h *Host) Components() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return names(h.added)
}

func names(list []added) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.name)
	}
	return out
}
