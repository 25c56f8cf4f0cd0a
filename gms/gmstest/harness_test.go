package gmstest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// bubble runs f with virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// long tells whether the long forms run.
func long() bool { return os.Getenv("FENCEPOST_LONG") != "" }

// app is a host app on every node: it records signals, and recovers components.
type app struct {
	components []string
	// only, when set, tells which nodes register a component.
	only func(node, component string) bool
	// act, when set, is the recovery; else all orphans are freed.
	act func(ctx context.Context, n *Node, s signals.FailureRecoverySignal) error

	mu      sync.Mutex
	heard   map[string][]signals.Facts // by node
	actions []action
}

// action is one run of a recovery action on a living node.
type action struct {
	By, Component, Node, Run string
	Token                    uint64
	Begun, Ended             time.Time
	Err                      error
}

func newApp(components ...string) *app {
	return &app{components: components, heard: map[string][]signals.Facts{}}
}

func (a *app) option() Option {
	return WithApp(func(n *Node) (stop func(), err error) {
		err = n.Router.AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
			if n.Alive() {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.heard[n.Name] = append(a.heard[n.Name], s.Facts())
			}
			return nil
		}))
		if err != nil {
			return nil, err
		}
		for _, c := range a.components {
			if a.only != nil && !a.only(n.Name, c) {
				continue
			}
			if err := a.register(n, c); err != nil {
				return nil, err
			}
		}
		m, err := recovery.New(recovery.Options{Log: recovery.GroupLog(n.Group), Router: n.Router, Node: n.Name, Logger: n.world.tape.logger(n)})
		if err != nil {
			return nil, err
		}
		return m.Stop, m.Start(context.Background())
	})
}

func (a *app) register(n *Node, component string) error {
	return n.Router.AddRecoveryFactory(component, signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
		f := s.Facts()
		did := action{By: n.Name, Component: s.Appointment().Component, Node: f.Member.Node, Run: f.Member.Run, Begun: time.Now()}
		if a.act != nil {
			did.Err = a.act(ctx, n, s)
		} else {
			did.Token, did.Err = freeAll(ctx, s)
		}
		did.Ended = time.Now()
		if n.Alive() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.actions = append(a.actions, did)
		}
		return did.Err
	}))
}

// freeAll reverts what the dead run left.
func freeAll(ctx context.Context, s signals.FailureRecoverySignal) (token uint64, err error) {
	fence, err := s.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	orphans, err := fence.Orphans(fence.Context())
	if err != nil {
		return 0, err
	}
	for _, o := range orphans {
		if o.Orphanings >= 3 {
			err = fence.End(fence.Context(), o.Claim, signals.Quarantine)
		} else {
			err = fence.Free(fence.Context(), o)
		}
		if err != nil {
			return 0, err
		}
	}
	return fence.Token(), nil
}

// done lists the actions that ended without an error.
func (a *app) done(nodes ...string) []action {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []action
	for _, d := range a.actions {
		if d.Err == nil && slices.Contains(nodes, d.Node) {
			list = append(list, d)
		}
	}
	return list
}

// signalsOf lists what a node heard, of some kinds; of all when none is named.
func (a *app) signalsOf(node string, kinds ...signals.Kind) []signals.Facts {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []signals.Facts
	for _, f := range a.heard[node] {
		if len(kinds) == 0 || slices.Contains(kinds, f.Kind) {
			list = append(list, f)
		}
	}
	return list
}

// forget drops what was heard so far.
func (a *app) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.heard)
	a.actions = nil
}

func profile(p gms.Profile) Option {
	return WithConfig(func(_ string, c *gms.Config) { c.Profile = p })
}

func voters(n int) Option {
	return WithConfig(func(_ string, c *gms.Config) { c.Voters = n })
}

// awaitVoters waits until n nodes vote.
func awaitVoters(w *World, n int) {
	w.t.Helper()
	w.Await(fmt.Sprintf("%d voters", n), func() bool {
		count := 0
		for _, m := range w.Living()[0].Group.Members() {
			if m.Voter {
				count++
			}
		}
		return count == n
	})
}

// awaitRecovered waits until no recovery is open, but for parked ones, as every living node sees it.
func awaitRecovered(w *World) time.Duration {
	w.t.Helper()
	return w.Await("the end of all recoveries", func() bool {
		for _, n := range w.Living() {
			list, _ := n.Group.Recoveries()
			if slices.ContainsFunc(list, func(r gms.Recovery) bool { return r.State != "parked" }) {
				return false
			}
		}
		return true
	})
}

// once demands that the named nodes' closed runs were each recovered once, and no other node's.
func once(w *World, a *app, nodes ...string) {
	w.t.Helper()
	for _, name := range w.Names() {
		closings := w.observer.closed(name)
		if want := slices.Contains(nodes, name); want != (len(closings) > 0) {
			w.t.Errorf("%s: %d runs closed, it died: %v", name, len(closings), want)
		}
		for _, c := range closings {
			for _, component := range a.components {
				if n := w.observer.releasedOf(component, c.Run); n != 1 {
					w.t.Errorf("%s of %s was released %d times", component, name, n)
				}
			}
		}
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
