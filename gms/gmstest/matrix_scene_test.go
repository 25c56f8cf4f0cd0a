package gmstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

const (
	millisecond = time.Millisecond
	second      = time.Second
	minute      = time.Minute
)

// scene is a group in which a row of the matrix is played.
type scene struct {
	casting
	t          *testing.T
	w          *World
	app        *workshop
	components []string
	victim     string

	deaths map[string]time.Time

	mu     sync.Mutex
	orders []order
}

// order is what the host's selector was asked: by whom, and for whom.
type order struct {
	leader     string
	candidates []string
}

// newScene makes the group, all of whose members vote, and casts its victim.
func newScene(t *testing.T, r row, c casting) *scene {
	t.Helper()
	x := &scene{casting: c, t: t, deaths: map[string]time.Time{}}
	x.components = []string{"paint", "polish"}[:c.components]
	x.app = newWorkshop(x.components...)
	if r.late {
		x.app.late = true
	}
	nodes := cmp.Or(r.nodes, 5)
	opts := []Option{x.app.option(), voters(nodes), WithConfig(func(node string, c *gms.Config) {
		c.FenceTTL = 5 * time.Second
		c.Order = func(_ string, _ signals.Member, candidates []signals.Member) []string {
			return x.order(node, candidates)
		}
	})}
	if r.config != nil {
		opts = append(opts, WithConfig(r.config(x)))
	}
	x.w = Cluster(t, nodes, opts...)
	awaitVoters(x.w, nodes)
	x.victim = x.w.Leader()
	if !c.victimLeads {
		x.victim = x.w.Others(x.victim)[0]
	}
	return x
}

// order is the host's selector: whoever leads when a run is closed, which is where it runs, or anybody else first.
func (x *scene) order(leader string, candidates []signals.Member) (runs []string) {
	slices.SortStableFunc(candidates, func(a, b signals.Member) int {
		rank := func(m signals.Member) int {
			if (m.Node == leader) == x.recovererLeads {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	o := order{leader: leader}
	for _, m := range candidates {
		runs = append(runs, m.Run)
		o.candidates = append(o.candidates, m.Node)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.orders = append(x.orders, o)
	return runs
}

// cast holds that whoever was appointed to the victim's run first led then, or did not, as the casting has it. Where the victim's
// own node led, as it leaves or has come again, nobody who leads can be appointed.
func (x *scene) cast() {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.ended() {
		i := slices.IndexFunc(r.Steps, func(s gms.Step) bool { return s.What == "appointed" })
		if r.Node != x.victim || i < 0 {
			continue
		}
		first := r.Steps[i].Node
		if !slices.ContainsFunc(x.orders, func(o order) bool {
			return slices.Contains(o.candidates, first) && ((o.leader == first) == x.recovererLeads || o.leader == x.victim)
		}) {
			x.t.Errorf("%s was appointed to %s first, which is not the casting: %+v", first, r.Component, x.orders)
		}
	}
}

// begin has the victim claim an item of each component for each of the stages, and do so many parts of it.
func (x *scene) begin(stages ...int) { x.t.Helper(); x.beginOn(x.victim, stages...) }

func (x *scene) beginOn(node string, stages ...int) {
	x.t.Helper()
	for _, c := range x.components {
		for _, s := range stages {
			x.app.begin(x.t, x.w.Node(node), c, fmt.Sprintf("%s-%d", node, s), s)
		}
	}
}

// registers has a node that runs register the components.
func (x *scene) registers(node string) {
	x.t.Helper()
	for _, c := range x.components {
		must(x.t, x.app.register(x.w.Node(node), c))
	}
	must(x.t, x.w.Node(node).Group.AwaitRegistered(x.t.Context(), x.components...))
}

// kill ends nodes at once.
func (x *scene) kill(names ...string) { x.died(names...); x.w.Kill(names...) }

// died notes when: from then on nothing that the run claimed is finished by it.
func (x *scene) died(names ...string) {
	for _, n := range names {
		x.deaths[n] = time.Now()
	}
}

// held waits until the actions of all components of the victim are held.
func (x *scene) held() {
	x.t.Helper()
	x.w.Await("the actions to be held", func() bool { return len(x.app.heldBy()) == len(x.components) })
	must(x.t, x.witness().Group.Sync(x.t.Context())) // it knows what they know
}

// recoverer is who was appointed to the victim's run first.
func (x *scene) recoverer() string {
	x.t.Helper()
	for _, r := range append(x.open(), x.ended()...) {
		if r.Node != x.victim {
			continue
		}
		for _, s := range r.Steps {
			if s.What == "appointed" {
				return s.Node
			}
		}
	}
	x.t.Fatalf("nobody was appointed to %s", x.victim)
	return ""
}

// witness is a node whose lease holds: what it knows is not old. While the new leader is heard by nobody yet, there may be none
// for a moment.
func (x *scene) witness() *Node {
	x.t.Helper()
	for range 500 {
		for _, n := range x.w.Living() {
			if n.Standing() {
				return n
			}
		}
		Advance(10 * time.Millisecond)
	}
	x.t.Fatal("nobody stands")
	return nil
}

func (x *scene) open() []gms.Recovery {
	list, _ := x.witness().Group.Recoveries()
	return list
}

func (x *scene) ended() (list []gms.Recovery) {
	for _, e := range x.witness().Group.Ended() {
		list = append(list, e.Recovery)
	}
	return list
}

// tokens are those under which the victim's fences are raised, by component.
func (x *scene) tokens() map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range x.open() {
		if r.Node == x.victim {
			out[r.Component] = r.Token
		}
	}
	return out
}

func (x *scene) largerTokens(before map[string]uint64) {
	x.t.Helper()
	for _, r := range x.ended() {
		if r.Node == x.victim && r.Token <= before[r.Component] {
			x.t.Errorf("%s ended under token %d after %d", r.Component, r.Token, before[r.Component])
		}
	}
}

// finished waits until no recovery is open, and holds that each part of every item was done once, each item completed once,
// that nothing is claimed, and that nobody did anything under a claim after its run was closed.
func (x *scene) finished() {
	x.t.Helper()
	x.w.Await("the closing of the dead", func() bool {
		for name := range x.deaths {
			if len(x.w.observer.closed(name)) == 0 {
				return false
			}
		}
		return true
	})
	awaitRecovered(x.w)
	for item, parts := range x.app.byItem() {
		if fmt.Sprint(parts) != fmt.Sprint(allParts()) {
			x.t.Errorf("%s: parts %v were done, want each once", item, parts)
		}
	}
	if list := x.witness().Group.Claims(); len(list) > 0 {
		x.t.Errorf("claims left: %+v", list)
	}
	for _, e := range x.app.all() {
		for _, c := range x.w.observer.closed(e.by) {
			if c.Run == e.run && e.at.After(c.At) {
				x.t.Errorf("done %v after the run was closed: %+v", e.at.Sub(c.At), e)
			}
		}
	}
	for _, r := range x.open() {
		x.t.Errorf("parked: %+v", r)
	}
	x.cast()
}

// by holds that only these nodes recovered anything.
func (x *scene) by(nodes ...string) {
	x.t.Helper()
	for _, e := range x.app.all() {
		if e.recovery && !slices.Contains(nodes, e.by) {
			x.t.Errorf("recovered by another than %v: %+v", nodes, e)
		}
	}
}

// closedAfter is how long after its death a node's run was closed.
func (x *scene) closedAfter(node string) time.Duration {
	x.t.Helper()
	list := x.w.observer.closed(node)
	if len(list) != 1 {
		x.t.Fatalf("%d runs of %s were closed", len(list), node)
	}
	return list[0].At.Sub(x.deaths[node])
}

// closedAt is the position at which a node's run was closed.
func (x *scene) closedAt(node string) uint64 {
	x.t.Helper()
	for _, r := range append(x.open(), x.ended()...) {
		if r.Node == node {
			return r.Since
		}
	}
	x.t.Fatalf("%s has left nothing", node)
	return 0
}

// closedOthers are nodes that lived and were closed all the same, since they were silent for too long when the group came
// together again.
func (x *scene) closedOthers(dead []string) (list []string) {
	for _, c := range x.w.observer.closings {
		if !slices.Contains(dead, c.Node) && !slices.Contains(list, c.Node) {
			list = append(list, c.Node)
		}
	}
	return list
}

// refused holds that what the victim did under the claims of that run, and does late, has no effect.
func (x *scene) refused(run string) {
	x.t.Helper()
	for _, b := range x.app.begun() {
		if b.run != run {
			continue
		}
		ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Second)
		err := x.app.effect(ctx, x.w.Node(x.victim), b.component, b.item, parts-1, gms.ClaimHeld(b.component, b.item, run, b.token))
		cancel()
		if !errors.Is(err, gms.ErrFenced) {
			x.t.Errorf("a late effect on %s: %v", b.item, err)
		}
	}
}

// cannot holds that a node without a quorum starts nothing and says that what it knows may be old.
func (x *scene) cannot(n *Node) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
	defer cancel()
	if _, err := n.Group.Claim(ctx, x.components[0], "new", 1); !errors.Is(err, gms.ErrLeaseExpired) {
		x.t.Errorf("a claim without a quorum: %v", err)
	}
	if err := n.Group.Sync(ctx); !errors.Is(err, gms.ErrNoQuorum) {
		x.t.Errorf("a read without a quorum: %v", err)
	}
}

var evidences = map[wire.Evidence]string{
	wire.Evidence_EVIDENCE_OBITUARY: "obituary", wire.Evidence_EVIDENCE_REFUSED: "refused", wire.Evidence_EVIDENCE_NEWER_RUN: "newer run",
	wire.Evidence_EVIDENCE_LAPSED: "lapsed", wire.Evidence_EVIDENCE_LEFT: "left", wire.Evidence_EVIDENCE_OPERATOR: "operator",
}

func withoutRefused(*scene) func(string, *gms.Config) {
	return func(_ string, c *gms.Config) { c.NoRefused = true }
}
