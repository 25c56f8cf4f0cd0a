package gmstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// parts of an item, each an effect of its own, which is visible to all once it is done.
const parts = 4

func allParts() (list []int) {
	for p := range parts {
		list = append(list, p)
	}
	return list
}

// point is where an action can be held.
type point string

const (
	nowhere       point = ""
	beforeAcquire point = "appointed"
	afterAcquire  point = "raised"
	halfDone      point = "half done"
	hanging       point = "hanging" // after Acquire, and deaf to its context for a minute
)

// workshop is a host app: it works on items, part by part, and recovers those of the dead by doing the rest.
type workshop struct {
	*app

	mu      sync.Mutex
	at      point
	release chan struct{}
	holding []string // component and recoverer of held actions
	late    bool     // nobody registers the components when it starts
	effects []effect
	claims  []begun
}

// effect is a part that was done.
type effect struct {
	component, item string
	part            int
	by, run         string // node and run that did it
	node            string // whose work it was
	recovery        bool
	at              time.Time
}

// begun is a claim of a worker.
type begun struct {
	component, item, node, run string
	token                      uint64
}

func newWorkshop(components ...string) *workshop {
	s := &workshop{app: newApp(components...), release: make(chan struct{})}
	s.app.act = s.recover
	return s
}

// option starts the app on every node. Progress is promised, so that who hangs is found.
func (s *workshop) option() Option {
	return WithApp(func(n *Node) (func(), error) {
		for _, c := range s.components {
			if s.late {
				continue
			}
			if err := s.register(n, c); err != nil {
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

func (s *workshop) register(n *Node, component string) error {
	act := func(ctx context.Context, sig signals.FailureRecoverySignal) error { return s.recover(ctx, n, sig) }
	return n.Router.AddRecoveryFactory(component, signals.HandleRecovery(act), signals.WithProgress(2*time.Second))
}

// begin has a node claim an item and do its first parts.
func (s *workshop) begin(t *testing.T, n *Node, component, item string, stage int) {
	t.Helper()
	c, err := n.Group.Claim(t.Context(), component, item, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := n.Run()
	s.mu.Lock()
	s.claims = append(s.claims, begun{component, item, n.Name, run, c.Token})
	s.mu.Unlock()
	for p := range stage {
		if err := s.effect(t.Context(), n, component, item, p, gms.ClaimHeld(component, item, run, c.Token)); err != nil {
			t.Fatal(err)
		}
	}
}

// effect does a part, where and when the condition holds. It is refused nowhere for having been done before: to know that
// is the workers' business.
func (s *workshop) effect(ctx context.Context, n *Node, component, item string, part int, holds gms.Condition) error {
	k := gms.Key{Component: component, Key: fmt.Sprint(item, "/", part)}
	run := n.Run()
	if _, err := n.Group.Cache().Commit(ctx, gms.Txn{Conditions: []gms.Condition{holds}, Puts: []gms.Put{{Key: k, Value: []byte(n.Name)}}}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := effect{component: component, item: item, part: part, by: n.Name, run: run, at: time.Now()}
	for _, c := range s.claims {
		if c.component == component && c.item == item {
			e.node, e.recovery = c.node, c.run != run
		}
	}
	s.effects = append(s.effects, e)
	return nil
}

// recover does what is left of each item of the dead run, and completes it.
func (s *workshop) recover(ctx context.Context, n *Node, sig signals.FailureRecoverySignal) error {
	a := sig.Appointment()
	if err := s.pass(ctx, n, a.Component, beforeAcquire); err != nil {
		return err
	}
	fence, err := sig.Acquire(ctx)
	if err != nil {
		return err
	}
	ctx = fence.Context()
	for _, p := range []point{afterAcquire, hanging} {
		if err := s.pass(ctx, n, a.Component, p); err != nil {
			return err
		}
	}
	orphans, err := fence.Orphans(ctx)
	if err != nil {
		return err
	}
	for _, c := range n.Group.Claims() { // of an earlier delivery under this fence
		if c.Adopted && c.Fence == fence.Token() {
			if err := s.rest(ctx, n, fence, a, c.Claim); err != nil {
				return err
			}
		}
	}
	for _, o := range orphans {
		claim, err := fence.Adopt(ctx, o)
		if errors.Is(err, signals.ErrPoison) {
			err = fence.End(ctx, o.Claim, signals.Quarantine)
		}
		if err != nil {
			return err
		}
		if err := s.rest(ctx, n, fence, a, claim); err != nil {
			return err
		}
	}
	return nil
}

// rest does the parts that nobody has done.
func (s *workshop) rest(ctx context.Context, n *Node, fence signals.Fence, a signals.Appointment, claim signals.Claim) error {
	for p := range parts {
		fence.Progress()
		if p == parts/2 {
			if err := s.pass(ctx, n, a.Component, halfDone); err != nil {
				return err
			}
		}
		_, err := n.Group.Cache().Get(ctx, gms.Key{Component: a.Component, Key: fmt.Sprint(claim.Item, "/", p)})
		if err == nil {
			continue
		}
		if !errors.Is(err, gms.ErrNotFound) {
			return err
		}
		if err := s.effect(ctx, n, a.Component, claim.Item, p, gms.FenceHeld(a.Component, a.Node, a.Run, fence.Token())); err != nil {
			return err
		}
	}
	return fence.End(ctx, claim, signals.Complete)
}

// hold has the first action of each component wait there.
func (s *workshop) hold(at point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
}

// letGo lets those go on that are held, and nobody is held any more.
func (s *workshop) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = nowhere
	close(s.release)
}

// pass waits when actions are held here and this is the first one of its component.
func (s *workshop) pass(ctx context.Context, n *Node, component string, at point) error {
	s.mu.Lock()
	held := s.at == at && !slices.ContainsFunc(s.holding, func(h string) bool { return h[:len(component)] == component })
	if held {
		s.holding = append(s.holding, component+" "+n.Name)
	}
	s.mu.Unlock()
	if !held {
		return nil
	}
	if at == hanging {
		select {
		case <-time.After(time.Minute): // whatever its context says
		case <-n.down:
		}
		return context.Cause(ctx)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.release:
		return nil
	}
}

func (s *workshop) heldBy() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.holding)
}

func (s *workshop) all() []effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

func (s *workshop) begun() []begun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.claims)
}

// byItem lists the parts that were done of each item that was begun, in order.
func (s *workshop) byItem() map[string][]int {
	out := map[string][]int{}
	for _, b := range s.begun() {
		out[b.component+" "+b.item] = nil
	}
	for _, e := range s.all() {
		k := e.component + " " + e.item
		out[k] = append(out[k], e.part)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}
