package gms

import (
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// standing is this node's present run, once the log has opened it.
type standing struct {
	run     state.RunID
	epoch   uint64
	session *session
	ctx     context.Context // ends with the run, cause ErrRunClosed
}

// standLoop opens one run after the other: the first at start, another whenever the present one was closed by somebody
// else. Each has a gossip instance of its own; Raft, the ports and the host's factories stay.
func (g *Group) standLoop(ctx context.Context) {
	wait := firstStandPause
	for {
		begun := time.Now()
		err := g.standOnce(ctx)
		if ctx.Err() != nil || g.Err() != nil || g.politeness() != nil {
			return
		}
		g.log.Warn("gms: run is over, opening another", "error", err)
		if time.Since(begun) > g.cfg.Timing.TTL {
			wait = firstStandPause
		}
		if !pause(ctx, nil, wait) {
			return
		}
		wait = min(2*wait, lastStandPause)
	}
}

// The pause before the next run doubles while runs do not last.
const (
	firstStandPause = 50 * time.Millisecond
	lastStandPause  = 2 * time.Second
)

// standOnce is the life of one run: gossip, join, open, renew until it is closed.
func (g *Group) standOnce(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	run := g.nextRun()
	g.setRun(run)
	gos, err := g.startGossip(ctx, run)
	if err != nil {
		if ctx.Err() == nil {
			g.fail(err)
		}
		return err
	}
	defer gos.Stop()
	g.setGossip(gos)
	defer g.setGossip(nil)
	defer func() { _ = g.keys.attach(nil) }() // never fails
	tasks.Go(func() { g.tellMeta(ctx, gos, run) })
	tasks.Go(func() { g.hearGossip(ctx, gos) })
	tasks.Go(func() { g.joinLoop(ctx, gos) })
	if err := g.startConsensus(ctx); err != nil {
		return err
	}
	epoch, err := g.openRun(ctx, run, gos.Addr())
	if err != nil {
		return err
	}
	return g.hold(ctx, run, epoch, gos)
}

// nextRun is the id of the next run: the warden's for the first one.
func (g *Group) nextRun() (run state.RunID) {
	if g.ownRun().IsZero() && g.cfg.Run != [16]byte{} {
		return state.RunID(g.cfg.Run)
	}
	_, _ = rand.Read(run[:]) // never fails
	return run
}

// hold keeps an opened run's lease until the run is closed.
func (g *Group) hold(ctx context.Context, run state.RunID, epoch uint64, gos *gossip.Gossip) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel(ErrRunClosed)
	s := newSession(run, g.cfg, g, func(leader string) {
		tasks.Go(func() { g.leaderBroke(ctx, leader) })
	})
	s.quorum = g.signalled.quorum.set
	open, over := context.WithCancelCause(context.Background())
	defer over(ErrRunClosed)
	g.setStanding(&standing{run: run, epoch: epoch, session: s, ctx: open})
	defer g.setStanding(nil)
	defer s.close()
	g.log.Info("gms: standing", "run", run.String(), "epoch", epoch)
	tasks.Go(func() { s.watchDeadlines(ctx) })
	tasks.Go(func() { g.registerLoop(ctx) })
	tasks.Go(func() { cancel(g.awaitClosed(ctx, run, epoch)) }) // the log's word comes before the leader's
	tasks.Go(func() { cancel(g.awaitFailure(ctx)) })
	err := s.keep(ctx)
	s.close()
	if polite := g.politeness(); polite != nil {
		lctx, done := context.WithTimeout(polite, 2*time.Second)
		defer done()
		if err := gos.Leave(lctx); err != nil {
			g.log.Debug("gms: gossip not left in order", "error", err)
		}
	}
	return err
}

// awaitClosed blocks until the log has closed the run, and says why; or until ctx ends. A run that a newer one of the same
// home has closed, which is not of this process, means that the home stands twice: the newer one stays.
func (g *Group) awaitClosed(ctx context.Context, run state.RunID, epoch uint64) error {
	var closed state.Run
	err := g.rep.await(ctx, func(m *state.Machine) bool {
		closed, _ = m.Run(run)
		return m.Position() >= epoch && !m.IsOpen(run)
	})
	switch {
	case err != nil:
		return err
	case closed.Open == nil:
		return ErrRunClosed
	case closed.Evidence == wire.Evidence_EVIDENCE_NEWER_RUN:
		return g.refused(fmt.Errorf("%w: another process stands with the node key of this home", ErrNameTaken), "a home must not be copied: stop the other process, or give it an empty home and a name of its own")
	}
	return fmt.Errorf("%w as %s: %s", ErrRunClosed, evidences[closed.Evidence], closed.Detail)
}

// awaitFailure blocks until the group has failed, or ctx ends. A process that must end holds no lease any more.
func (g *Group) awaitFailure(ctx context.Context) error {
	for {
		changed := g.Changed()
		if err := g.Err(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// politeness is the context of Stop's polite part, nil while the group is not stopping.
func (g *Group) politeness() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.polite
}

func (g *Group) setRun(run state.RunID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runID = run
}

func (g *Group) setGossip(gos *gossip.Gossip) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gos = gos
}

func (g *Group) ownRun() state.RunID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runID
}

func (g *Group) setStanding(s *standing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stand = s
	g.announce()
}

// openRun has the log open the run. Each try names the last run that the log is known to have (PROTOCOL.md 1).
func (g *Group) openRun(ctx context.Context, run state.RunID, gossipAddr string) (epoch uint64, err error) {
	op := &wire.OpenRun{
		Node: g.cfg.Node, Run: run.Bytes(), Home: g.home.id[:], NodeKey: g.home.publicKey(), Role: roleOf(g.cfg.Role),
		GossipAddr: gossipAddr, ClusterAddr: g.clusterAddr, OwnInterface: ownInterface(gossipAddr) && ownInterface(g.clusterAddr),
		Protocol: wire.Protocol, Details: g.cfg.Details, Components: g.components(),
		TtlMs: millis(g.cfg.Timing.TTL), FenceTtlMs: millis(g.cfg.FenceTTL),
	}
	if g.wardenKnows(run) {
		op.WardenKey = g.cfg.WardenKey
	}
	g.rep.read(func(m *state.Machine) {
		if n, ok := m.Node(g.cfg.Node); ok {
			op.PrevEpoch = n.GetLastEpoch()
		}
	})
	for ctx.Err() == nil {
		r, err := g.commands.do(ctx, &wire.Command{Run: run.Bytes(), Op: &wire.Command_OpenRun{OpenRun: proto.CloneOf(op)}})
		if err != nil {
			return 0, fmt.Errorf("open run: %w", err)
		}
		switch r.GetCode() {
		case wire.Code_CODE_OK, wire.Code_CODE_NO_CHANGE:
			return r.GetPosition(), nil
		case wire.Code_CODE_STALE:
			if r.GetEpoch() == op.GetPrevEpoch() { // this very run is the node's last one, and closed
				return 0, fmt.Errorf("open run: %w before its opening was answered", ErrRunClosed)
			}
			op.PrevEpoch = r.GetEpoch()
		case wire.Code_CODE_NAME_TAKEN:
			return 0, g.refused(fmt.Errorf("open run of %s: %w: %s", g.cfg.Node, ErrNameTaken, r.GetDetail()), takenName)
		case wire.Code_CODE_OTHER_HOME:
			return 0, g.refused(fmt.Errorf("open run of %s: %w", g.cfg.Node, ErrOtherHome), otherHome(g.cfg.Node))
		case wire.Code_CODE_FORGOTTEN:
			return 0, g.refused(fmt.Errorf("open run of %s: %w", g.cfg.Node, ErrForgotten), forgottenHome)
		case wire.Code_CODE_PROTOCOL:
			return 0, g.refused(fmt.Errorf("open run of %s: %w: %s", g.cfg.Node, ErrProtocol, r.GetDetail()), otherProgram)
		case wire.Code_CODE_NOT_FORMED:
			pause(ctx, g.leaderChanged(), 20*time.Millisecond)
		default:
			return 0, g.refused(g.errorOf("open run", r), "see the log of the leader")
		}
	}
	return 0, context.Cause(ctx)
}

// wardenKnows tells the warden which run it may bury from now on: the present one, of which the log hears only afterwards.
func (g *Group) wardenKnows(run state.RunID) bool {
	switch {
	case len(g.cfg.WardenKey) == 0:
		return false
	case run == state.RunID(g.cfg.Run):
		return true
	case g.cfg.TellWarden == nil:
		return false
	}
	if err := g.cfg.TellWarden(run); err != nil {
		g.log.Warn("gms: the warden could not be told of the new run, which is without one", "run", run.String(), "error", err)
		return false
	}
	return true
}

// refused ends the group with an error that only a person can mend.
func (g *Group) refused(err error, hint string) error {
	err = withHint(err, hint)
	g.fail(err)
	return err
}

// ownInterface tells whether the address is one of this machine's: only then do refused ports prove anything.
func ownInterface(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// components lists what the host can recover.
func (g *Group) components() []*wire.Component {
	if !g.works() {
		return nil
	}
	list, _ := g.router.Components()
	out := make([]*wire.Component, 0, len(list))
	for _, c := range list {
		out = append(out, componentOf(c))
	}
	return out
}

// registerLoop registers components that the host adds while the run stands.
func (g *Group) registerLoop(ctx context.Context) {
	if !g.works() {
		return
	}
	registered := make(map[string]bool)
	for _, c := range g.components() {
		registered[c.GetName()] = g.isRegistered(c.GetName())
	}
	for {
		list, changed := g.router.Components()
		again := time.Hour
		for _, c := range list {
			if registered[c.Name] {
				continue
			}
			_, err := g.ask(ctx, "register component "+c.Name, &wire.Command{Op: &wire.Command_RegisterComponent{
				RegisterComponent: &wire.RegisterComponent{Component: componentOf(c)},
			}})
			registered[c.Name] = err == nil
			if err != nil && ctx.Err() == nil {
				g.log.Warn("gms: component not registered, trying on", "recovers", c.Name, "error", err)
				again = time.Second
			}
		}
		if !pause(ctx, changed, again) {
			return
		}
	}
}

func componentOf(c signals.Component) *wire.Component {
	out := &wire.Component{Name: c.Name, Exclusion: wire.Exclusion_EXCLUSION_TOKEN}
	if c.Exclusion == signals.ExclusionLease {
		out.Exclusion = wire.Exclusion_EXCLUSION_LEASE
	}
	switch c.Selector {
	case signals.Rendezvous:
		out.Selector = wire.Selector_SELECTOR_RENDEZVOUS
	case signals.Successor:
		out.Selector = wire.Selector_SELECTOR_SUCCESSOR
	}
	return out
}

// AwaitRegistered blocks until the log has this node's present run as a candidate for each of the components, or ctx ends.
// Components are registered by themselves soon after the router gets their factories.
// ErrRole on a witness or a watchdog, which register none.
func (g *Group) AwaitRegistered(ctx context.Context, components ...string) error {
	if !g.works() {
		return fmt.Errorf("wait for components to be registered: %w: a %s has none", ErrRole, g.cfg.Role)
	}
	err := g.rep.await(ctx, func(m *state.Machine) bool {
		run, ok := openRunOf(m, g.cfg.Node)
		return ok && !slices.ContainsFunc(components, func(c string) bool { return !run.Registered(c) })
	})
	if err != nil {
		return fmt.Errorf("wait for components to be registered: %w", err)
	}
	return nil
}

// works tells whether this node's role does work of components: a witness only votes, a watchdog only reports.
func (g *Group) works() bool { return g.cfg.Role == signals.Core || g.cfg.Role == signals.Spectator }

func (g *Group) isRegistered(component string) bool {
	run, ok := g.rep.open(g.cfg.Node)
	return ok && run.Registered(component)
}

// joinLoop joins, and joins again for ever, whatever address might lead to members that gossip does not hold alive: the
// seeds, the last view on disk, the runs in the log (FIELD.md M5).
func (g *Group) joinLoop(ctx context.Context, gos *gossip.Gossip) {
	told := false
	for ctx.Err() == nil {
		if targets := g.joinTargets(gos.Addr()); len(targets) > 0 {
			n, err := gos.Join(ctx, targets)
			g.log.Debug("gms: joined", "addresses", targets, "answered", n, "error", err)
			if n == 0 && !told && ctx.Err() == nil {
				g.log.Warn("gms: no seed answers, trying on", "addresses", targets, "error", err)
			}
			if told = n == 0; told {
				g.askRings() // they may have other keys by now
			}
		}
		list, _ := g.peers.alive()
		every := 3 * time.Second
		if len(list) < 2 {
			every = 300 * time.Millisecond
		}
		if !pause(ctx, nil, every+time.Duration(mrand.Int64N(int64(every/2)))) {
			return
		}
	}
}

func (g *Group) joinTargets(self string) []string {
	targets := slices.Clone(g.cfg.Seeds)
	for _, address := range g.remembered().Peers {
		targets = append(targets, address)
	}
	g.rep.read(func(m *state.Machine) {
		for _, r := range m.Runs() {
			if r.IsOpen() {
				targets = append(targets, r.Open.GetGossipAddr())
			}
		}
	})
	alive := map[string]bool{self: true, "": true}
	list, _ := g.peers.alive()
	for _, p := range list {
		alive[p.gossip] = true
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	return slices.DeleteFunc(targets, func(a string) bool { return alive[a] })
}
