package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/gmstest"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// The components of a plant: what a dead run was at work on is free for whoever comes next in one, and adopted in the other.
const (
	freeing  = "ingest"
	adopting = "digest"
)

// plant is a group of real nodes in virtual time, each with runners of components whose items the embedded ledger keeps.
type plant struct {
	*testing.T
	*gmstest.World
	rnd     *rand.Rand
	lag     time.Duration // of every index
	quick   bool          // work takes no time to speak of
	runners func(node string) []component.Config

	mu     sync.Mutex
	apps   map[*gmstest.Node]*App
	worked map[string]int // work that ended by itself in a living process, by component and item
	stale  int
	was    []snapshot // what the items were, oldest first
	log    gatelog
}

type snapshot struct {
	at    time.Time
	items map[string][]component.Item // by component
}

func newPlant(t *testing.T, lag time.Duration, runners func(node string) []component.Config) *plant {
	p := &plant{T: t, lag: lag, runners: runners, apps: map[*gmstest.Node]*App{}, worked: map[string]int{}}
	seed := gmstest.Seed(t)
	p.rnd = rand.New(rand.NewPCG(seed, 1))
	p.World = gmstest.Cluster(t, 3, gmstest.WithSeed(seed), gmstest.WithSparseHashes(100), gmstest.WithConfig(func(_ string, c *gms.Config) {
		c.MaxAttempts = 1000 // there are more deaths here than an item would be given
	}), gmstest.WithApp(p.host), gmstest.WithFacts(p.log.see))
	return p
}

func (p *plant) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rnd.IntN(n)
}

func (p *plant) span(most time.Duration) time.Duration { return time.Duration(p.draw(int(most))) }

// host is the host's part of a node: what app.go joins, on a group of the world.
func (p *plant) host(n *gmstest.Node) (stop func(), err error) {
	a := &App{
		cfg: configs.Config{Node: n.Name, Components: []configs.Component{{Name: adopting, Orphans: configs.OrphansAdopt}}}, group: n.Group, router: n.Router,
		log: slog.New(slog.DiscardHandler), clock: newGroupClock(time.Now),
	}
	if a.manager, err = recovery.New(recovery.Options{Log: recovery.GroupLog(n.Group), Router: n.Router, Node: n.Name, StopGrace: time.Second}); err != nil {
		return nil, err
	}
	joint, err := components.New(components.Config{Group: n.Group, Manager: a.manager, Runner: a.runnerOf, Drained: a.drained})
	if err != nil {
		return nil, err
	}
	b := &bridge{Joint: joint, group: n.Group, drained: a.drained, log: a.log}
	w := &work{ledger: joint.Ledger(), items: joint.Items(), bridge: b, runners: map[string]*component.Runner{}}
	if err := errors.Join(
		n.Router.AddRecoveryFactory(freeing, signals.HandleRecovery(b.FreeOrphans)),
		n.Router.AddRecoveryFactory(adopting, signals.HandleRecovery(b.AdoptOrphans)),
		n.Router.AddMessageFactory(components.YieldComponent, signals.Handle(a.hearYield)),
		a.manager.Start(context.Background()),
	); err != nil {
		return nil, err
	}
	var all []*component.Runner
	for _, cfg := range p.runners(n.Name) {
		r, err := p.runner(n, a, b, cfg)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		w.runners[cfg.Component] = r
	}
	a.work = w
	p.mu.Lock()
	p.apps[n] = a
	p.mu.Unlock()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var stopping sync.WaitGroup
		for _, r := range all {
			stopping.Go(func() {
				_ = r.Stop(ctx) // of a killed process nothing counts any more
				p.mu.Lock()
				defer p.mu.Unlock()
				p.stale += r.Totals().Stale
			})
		}
		stopping.Wait()
		a.manager.Stop()
	}, nil
}

// runner starts a runner with locks of its own, as if it were the only one on its node.
func (p *plant) runner(n *gmstest.Node, a *App, b *bridge, cfg component.Config) (*component.Runner, error) {
	own, err := components.New(components.Config{Group: n.Group, Manager: a.manager})
	if err != nil {
		return nil, err
	}
	cfg.Node, cfg.Locks, cfg.Claims, cfg.Gate, cfg.Store = n.Name, own, own, own, b.Items()
	cfg.Index = lagging{b.Items(), p}
	cfg.Trigger = component.Trigger{Types: []string{"thing"}, Future: []string{cfg.Component}}
	cfg.Settle, cfg.Grace, cfg.Proof = 2*time.Second, time.Second, time.Second
	cfg.Every, cfg.Fairness = 10*time.Second, component.Fairness{BackOff: 5 * time.Second, MaxBackOff: time.Minute, QuarantineAfter: -1}
	cfg.Random = func() float64 { return float64(p.draw(1000)) / 1000 }
	if cfg.Worker == nil {
		cfg.Worker = component.Func(func(ctx context.Context, j component.Job) (component.Report, error) { return p.work(ctx, n, j) })
	}
	r, err := component.New(cfg)
	if err != nil {
		return nil, err
	}
	return r, r.Start(context.Background())
}

// work takes some seconds, and fails now and then.
func (p *plant) work(ctx context.Context, n *gmstest.Node, j component.Job) (component.Report, error) {
	d := time.Second + p.span(12*time.Second)
	if p.quick {
		d = time.Millisecond
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return component.Report{}, context.Cause(ctx)
	}
	if !p.quick && p.draw(20) == 0 {
		return component.Report{}, errors.New("bad luck")
	}
	if n.Alive() {
		p.mu.Lock()
		p.worked[j.Component+"/"+j.Item.ID]++
		p.mu.Unlock()
	}
	return component.Report{}, nil
}

// lagging is an index that answers what was so a while ago.
type lagging struct {
	items component.Items
	p     *plant
}

func (l lagging) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	if l.p.lag == 0 {
		return l.items.Query(ctx, q)
	}
	all, err := l.items.All(ctx, q.Component, "")
	if err != nil {
		return nil, err
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	now := time.Now()
	l.p.was = append(l.p.was, snapshot{now, map[string][]component.Item{q.Component: all}})
	for len(l.p.was) > 1 && now.Sub(l.p.was[1].at) >= l.p.lag {
		l.p.was = l.p.was[1:]
	}
	for _, s := range l.p.was {
		if old, ok := s.items[q.Component]; ok {
			return component.Answer(old, q), nil
		}
	}
	return nil, nil
}

// fill puts n items, through whichever node can.
func (p *plant) fill(n int) {
	p.Helper()
	items := p.apps[p.Node("n1")].work.items
	for i := range n {
		if _, err := items.Put(p.Context(), component.Item{Type: "thing", ID: fmt.Sprintf("i%03d", i)}, false); err != nil {
			p.Fatal(err)
		}
	}
}

// look reads all items through some node that can; nil when none can.
func (p *plant) look() []component.Item {
	for _, n := range p.Living() {
		if !n.Standing() {
			continue
		}
		p.mu.Lock()
		a := p.apps[n]
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		all, err := a.work.items.All(ctx, "", "")
		cancel()
		if err == nil {
			return all
		}
	}
	return nil
}

func successes(it component.Item, eventType string) (n int) {
	for _, e := range it.Events {
		if e.Type == eventType && e.Success {
			n++
		}
	}
	return n
}

// finished tells whether all items were done by the components.
func (p *plant) finished(components ...string) bool {
	all := p.look()
	return len(all) > 0 && !slices.ContainsFunc(all, func(it component.Item) bool {
		return slices.ContainsFunc(components, func(c string) bool { return successes(it, c) == 0 })
	})
}

// check holds what must be so when all is done.
func (p *plant) check(components ...string) {
	p.Helper()
	for _, it := range p.look() {
		tokens := map[uint64]bool{}
		for _, e := range it.Events {
			if tokens[e.Token] {
				p.Errorf("%s: two events under token %d", it.ID, e.Token)
			}
			tokens[e.Token] = true
		}
		for _, c := range components {
			if n := successes(it, c); n != 1 {
				p.Errorf("%s: %d successes of %s, want exactly one", it.ID, n, c)
			}
		}
	}
	for _, problem := range p.log.problems() {
		p.Error(problem)
	}
}

// gatelog judges the group's log: between the granting of a poll lock and its end nobody works on what was claimed under
// it.
type gatelog struct {
	mu     sync.Mutex
	polls  map[string]gmstest.Fact // who holds the poll lock, by component
	claims map[string]pollClaim    // by component/item
	ended  map[uint64]bool         // poll locks that have ended, by token
	bad    []string
	counts map[gmstest.FactKind]int
}

// pollClaim is a claim, and the poll lock under which it was made.
type pollClaim struct {
	claim gmstest.Fact
	poll  uint64
}

func (g *gatelog) see(f gmstest.Fact) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.polls == nil {
		g.polls, g.claims, g.ended, g.counts = map[string]gmstest.Fact{}, map[string]pollClaim{}, map[uint64]bool{}, map[gmstest.FactKind]int{}
	}
	g.counts[f.Kind]++
	switch f.Kind {
	case gmstest.LockGranted:
		g.polls[f.Lock] = f
	case gmstest.LockFreed:
		g.ended[f.Token] = true
		if g.polls[f.Lock].Token == f.Token {
			delete(g.polls, f.Lock)
		}
	case gmstest.ClaimGranted:
		poll, held := g.polls[component.PollLock(f.Component)]
		if !held || poll.Run != f.Run {
			poll.Token = 0 // it was asked for under the lock, and came late
		}
		g.claims[f.Component+"/"+f.Item] = pollClaim{f, poll.Token}
	case gmstest.ClaimAdopted, gmstest.ClaimEnded:
		delete(g.claims, f.Component+"/"+f.Item)
	case gmstest.CachePut:
		g.work(f)
	}
}

// work is the first or a later write about an item: its claim's poll lock must have ended.
func (g *gatelog) work(f gmstest.Fact) {
	id, ok := strings.CutPrefix(f.Key, "item/")
	if f.Component != components.LedgerComponent || !ok {
		return
	}
	for _, c := range []string{freeing, adopting} {
		if claim, ok := g.claims[c+"/"+id]; ok && claim.poll != 0 && !g.ended[claim.poll] {
			g.bad = append(g.bad, fmt.Sprintf("index %d: %s of %s is worked on while the poll lock is held under which it was claimed at %d", f.Index, id, c, claim.claim.Index))
		}
	}
}

func (g *gatelog) problems() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.bad[:min(len(g.bad), 20)])
}

// bothProcedures are the runners of a component in a plant of eight: one of procedure 2 on each node, the others of
// procedure 1.
func bothProcedures(name string) func(node string) []component.Config {
	return func(node string) (list []component.Config) {
		for i := range map[string]int{"n1": 3, "n2": 3, "n3": 2}[node] {
			cfg := component.Config{Component: name, Procedure: component.One, SimultaneousProcesses: 3}
			if i == 0 {
				cfg.Procedure, cfg.SimultaneousProcesses = component.Many, 6
			}
			list = append(list, cfg)
		}
		return list
	}
}

// chaos does one thing to the group at random, and lets it get well again.
func (p *plant) chaos() (what string) {
	names := p.Names()
	name := names[p.draw(len(names))]
	switch p.draw(5) {
	case 0:
		p.Restart(name)
		return "kill"
	case 1:
		p.Pause(name)
		gmstest.Advance(p.span(8 * time.Second))
		p.Resume(name)
		return "pause"
	case 2:
		name = cmp.Or(p.Leader(), name)
		p.Restart(name)
		return "leader killed"
	case 3:
		name = cmp.Or(p.Leader(), name)
		p.Isolate(name)
		gmstest.Advance(p.span(6 * time.Second))
		p.Heal()
		return "leader cut off"
	}
	p.Pause(cmp.Or(p.Leader(), name))
	gmstest.Advance(p.span(8 * time.Second))
	for _, n := range names {
		if p.Node(n).Alive() {
			p.Resume(n)
		}
	}
	return "leader paused"
}

// run lets the plant work until all is done, with chaos on the way, and then in peace until no claim is left.
func (p *plant) run(calm bool, components ...string) (did map[string]int) {
	p.Helper()
	began := time.Now()
	did = map[string]int{}
	for !p.finished(components...) {
		if time.Since(began) > 6*time.Hour {
			p.Fatalf("not done after six hours: %s", p)
		}
		gmstest.Advance(2*time.Second + p.span(8*time.Second))
		if !calm {
			did[p.chaos()]++
		}
	}
	p.AwaitView(p.Names()...)
	p.Await("no claim is left", func() bool { return len(p.Node("n1").Group.Claims()) == 0 })
	gmstest.Advance(20 * time.Second) // what was late is refused
	p.Logf("%s of virtual time, %v, %d claims, %d poll locks", time.Since(began), did, p.log.counts[gmstest.ClaimGranted], p.log.counts[gmstest.LockGranted])
	return did
}
