package gms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// Group is one node's part in a group. Its methods may be called from any goroutine.
type Group struct {
	cfg    Config
	log    *slog.Logger
	router *signals.Router
	// ownRouter: the router is started and stopped with the group.
	ownRouter bool

	rep       *replica
	peers     *peers
	guide     *guide
	reports   reports
	seen      sightings
	commands  *commander
	batch     *batcher
	closings  closings
	signalled *signalling
	messages  *messenger
	turns     *turns
	post      *courier

	// Made by Start, in this order.
	temporary   string // the home, when it goes with the group
	home        *homeDir
	memory      groupFile
	server      *rpc.Server
	dialer      *rpc.Dialer
	clusterAddr string // as others dial it
	gossipAddr  string // likewise; port 0: whatever will be bound
	keeper      *certs.Keeper
	keys        *keyKeeper
	ringWanted  chan struct{} // capacity 1: somebody may have newer gossip keys
	cons        *consensus.Node
	cancel      context.CancelCauseFunc
	wg          sync.WaitGroup

	starting sync.Mutex // held by Start throughout, and by Stop at its begin
	stopOnce sync.Once
	done     chan struct{} // closed when Stop is through

	mu          sync.Mutex
	life        life
	stand       *standing // of the present run; nil before it is opened
	runID       state.RunID
	leading     *leading
	gos         *gossip.Gossip // of the present run
	standstill  standstill
	known       []byte        // cluster id, empty while unformed
	changed     chan struct{} // closed and replaced when stand, leading, known or err change
	err         error
	full        error           // of the disk of the home
	polite      context.Context // of Stop's polite part; nil before
	consStarted bool
	bg          context.Context
}

type life int

const (
	lifeNew life = iota
	lifeStarted
	lifeStopped
)

// New checks the configuration; its error names each field that is wrong, and the remedy. Nothing is opened and nothing runs
// before Start. A process may make any number of groups: they share nothing.
func New(cfg Config) (*Group, error) {
	ownRouter := cfg.Router == nil
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("gms: configuration: %w", err)
	}
	g := &Group{
		cfg: cfg, log: cfg.Logger, router: cfg.Router, ownRouter: ownRouter, peers: newPeers(), guide: newGuide(),
		changed: make(chan struct{}), done: make(chan struct{}), ringWanted: make(chan struct{}, 1),
	}
	g.rep = newReplica(cfg.Clock, g.fail)
	g.rep.applied = cfg.Seam.Applied
	g.commands = newCommander(g)
	g.post = &courier{send: g.submitTo, spawn: g.background}
	g.batch = newBatcher(g.propose, g.rep.protocol)
	g.batch.proposing = g.proposing
	g.signalled = newSignalling(g)
	g.messages, g.turns = newMessenger(), newTurns()
	return g, nil
}

// Start takes the home, opens the ports and begins to join; it returns when that is done, or with the first error, with
// nothing left open. Standing in the group comes later: see [Group.AwaitStanding]. Errors: ErrHomeInUse, ErrOtherGroup, a
// port that is taken. ctx bounds the start only.
func (g *Group) Start(ctx context.Context) error {
	g.starting.Lock()
	defer g.starting.Unlock()
	switch g.lifeNow() {
	case lifeStarted:
		return errors.New("gms: started already")
	case lifeStopped:
		return ErrStopped
	}
	if err := g.open(ctx); err != nil {
		return fmt.Errorf("start group: %w", errors.Join(err, g.closeAll()))
	}
	if len(g.founders()) == 2 {
		g.log.Warn(pairIsNoMajority)
	}
	run, cancel := context.WithCancelCause(context.Background())
	if g.ownRouter {
		if err := g.router.Start(context.WithoutCancel(ctx)); err != nil {
			cancel(err)
			return fmt.Errorf("start group: %w", errors.Join(err, g.closeAll()))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancel, g.bg = cancel, run
	g.life = lifeStarted
	g.wg.Go(func() { g.batch.run(run) })
	g.wg.Go(func() { g.signalled.run(run) })
	g.wg.Go(func() { g.standLoop(run) })
	g.wg.Go(func() { g.rememberLoop(run) })
	g.wg.Go(func() { g.watchHealth(run) })
	g.wg.Go(func() { g.ringLoop(run) })
	g.wg.Go(func() { g.watchCertificate(run) })
	return nil
}

func (g *Group) lifeNow() life {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.life
}

// open takes what Start needs; what it got stays in g for closeAll. Nothing runs yet but the cluster port, which asks for
// the identity only.
func (g *Group) open(ctx context.Context) error {
	dir := g.cfg.Home
	if dir == TemporaryHome {
		var err error
		if dir, err = os.MkdirTemp("", "fencepost-"); err != nil {
			return err
		}
		g.temporary = dir
	}
	home, memory, err := openHome(dir, g.cfg.Group)
	if err != nil {
		return err
	}
	g.home, g.memory = home, memory
	if g.known, err = memory.clusterID(); err != nil {
		return err
	}
	if g.keys, err = openKeys(home, g.cfg.GossipKeys); err != nil {
		return err
	}
	if err := g.openPorts(ctx); err != nil {
		return err
	}
	g.cons, err = consensus.New(consensus.Config{
		ServerID: server{node: g.cfg.Node, home: g.home.idHex()}.id(), Address: g.cfg.Node, Dir: g.home.raftDir(), Stores: g.cfg.Seam.Stores,
		Streams: newRaftStreams(g), FSM: g.rep, Logger: g.log, OnStall: func(err error) { g.fail(fmt.Errorf("%w: %w", ErrDiskStalled, err)) },
		OnFull:            g.filled,
		SnapshotThreshold: g.cfg.SnapshotThreshold, TrailingLogs: g.cfg.Seam.TrailingLogs,
		Timing: consensus.Timing{
			HeartbeatTimeout: g.cfg.Timing.Heartbeat, ElectionTimeout: g.cfg.Timing.Heartbeat, LeaderLeaseTimeout: g.cfg.Timing.LeaderLease,
		},
	})
	return err
}

// closeAll closes what is open, in the reverse order.
func (g *Group) closeAll() error {
	var errs []error
	if g.cons != nil {
		g.cons.Stop()
	}
	if g.dialer != nil {
		g.dialer.Stop()
	}
	if g.server != nil {
		g.server.Stop()
	}
	if g.home != nil {
		errs = append(errs, g.home.close())
	}
	if g.temporary != "" {
		errs = append(errs, os.RemoveAll(g.temporary))
	}
	return errors.Join(errs...)
}

// Stop ends this node's part, as a planned shutdown: the run is closed as left (work that is not settled goes to
// recovery like any other), leadership is handed over, and everything is closed. settled names components of which the
// host has no work left: they need no recovery, unless the log sees a claim or a fence of theirs. It waits, at most until
// ctx ends for the polite part. It may come before Start and more than once. An action must not call it when the router is
// the group's own: it would wait for itself.
func (g *Group) Stop(ctx context.Context, settled ...string) error {
	var err error
	g.stopOnce.Do(func() { err = g.stop(ctx, settled) })
	<-g.done
	return err
}

func (g *Group) stop(ctx context.Context, settled []string) error {
	defer close(g.done)
	g.starting.Lock() // a Start under way comes to its end first
	g.mu.Lock()
	was := g.life
	g.life, g.polite = lifeStopped, ctx
	g.mu.Unlock()
	g.starting.Unlock()
	if was != lifeStarted {
		return nil
	}
	g.leave(ctx, settled)
	if g.cons.IsLeader() {
		tctx, cancel := context.WithTimeout(ctx, time.Second)
		if err := g.cons.TransferLeadership(tctx); err != nil {
			g.log.Debug("gms: leadership not handed over", "error", err)
		}
		cancel()
	}
	g.cancel(ErrStopped)
	g.wg.Wait()
	if g.ownRouter {
		g.router.Stop()
	}
	return g.closeAll()
}

// leave closes the own run in the log.
func (g *Group) leave(ctx context.Context, settled []string) {
	s := g.standingNow()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := g.ask(ctx, "leave", &wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{
		Node: g.cfg.Node, Run: s.run[:], Evidence: wire.Evidence_EVIDENCE_LEFT, Detail: "planned stop", Settled: settled, Position: g.applied(),
	}}})
	if err != nil && !errors.Is(err, ErrRunClosed) { // closed is what was wanted; the answer to a repeat says so
		g.log.Warn("gms: could not leave in order, the others will notice", "error", err)
	}
}

// Err is why the group ended by itself, nil while it did not: ErrNameTaken, ErrOtherHome, ErrOlderHome, ErrForgotten,
// ErrDiskStalled, ErrDiverged, or what kept gossip or the log of the home from starting. Its run stands no more then; the
// host ends the process.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail notes a reason to end; the first one counts.
func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		g.announce()
	}
}

// DiskFull is that the home's disk is full (ErrDiskFull), nil while it is not. The room that was kept for that is used up from
// now on: the host stops the group, which then still ends in order, and starts again when there is room (KeepRoom).
func (g *Group) DiskFull() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

func (g *Group) filled(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full == nil {
		g.full = fmt.Errorf("%w: %w", ErrDiskFull, err)
		g.announce()
	}
}

// announce wakes those who wait; with g.mu held.
func (g *Group) announce() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Changed is closed when this node's run is opened or over, when it begins or ends to lead, and when Err or DiskFull is set.
func (g *Group) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// background runs f, which ends when the group stops; false when the group does not run (any more).
func (g *Group) background(f func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life != lifeStarted {
		return false
	}
	g.wg.Go(func() { f(g.bg) })
	return true
}

func (g *Group) standingNow() *standing {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stand
}

func (g *Group) epoch() uint64 {
	if s := g.standingNow(); s != nil {
		return s.epoch
	}
	return 0
}

// mayStart refuses new work without a lease.
func (g *Group) mayStart() error {
	st, _ := g.Standing()
	switch st {
	case Held:
		return nil
	case Closed:
		return ErrRunClosed
	}
	return ErrLeaseExpired
}

// Standing is what this node's present run may do, and a channel that is closed when that may have changed.
func (g *Group) Standing() (Standing, <-chan struct{}) {
	g.mu.Lock()
	s, changed := g.stand, g.changed
	g.mu.Unlock()
	if s == nil {
		return Closed, changed
	}
	return s.session.standing()
}

// AwaitStanding blocks until this node's run holds its lease, the group fails (its Err) or is stopped (ErrStopped), or ctx
// ends.
func (g *Group) AwaitStanding(ctx context.Context) error {
	for {
		changed := g.Changed()
		if err := g.Err(); err != nil {
			return err
		}
		st, moved := g.Standing()
		if st == Held {
			return nil
		}
		if st == Closed && g.lifeNow() == lifeStopped {
			return ErrStopped
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for standing in the group: %w", context.Cause(ctx))
		case <-changed:
		case <-moved:
		}
	}
}

// Router is the router of this group's signals: Config.Router, or the group's own. Factories are added to it before Start.
func (g *Group) Router() *signals.Router { return g.router }

// GossipAddress is the host:port by which others find this node: one of their Seeds. Empty while the node has no run.
func (g *Group) GossipAddress() (address string) {
	if g.standingNow() == nil {
		return ""
	}
	run, _ := g.rep.open(g.cfg.Node)
	return run.Open.GetGossipAddr()
}

// Self is this node's present run as hex, empty while it has none.
func (g *Group) Self() (node, run string) {
	if s := g.standingNow(); s != nil {
		return g.cfg.Node, s.run.String()
	}
	return g.cfg.Node, ""
}

// RunContext is a context that ends, with the cause ErrRunClosed, when this node's present run is closed; ok is false while
// it has none. What works under claims of the run works under it.
func (g *Group) RunContext() (ctx context.Context, ok bool) {
	s := g.standingNow()
	if s == nil {
		return nil, false
	}
	return s.ctx, true
}

// Epoch is the position at which this node's present run was opened; 0 while it has none.
func (g *Group) Epoch() uint64 { return g.epoch() }

// ClusterID is the formed group's id as hex; empty while it is not known.
func (g *Group) ClusterID() string { return hexID(g.cluster()) }

// SetReady reports that this node's run is ready for work, or is not any more: JoinedAndReadyNotification to all. A run
// begins as not ready. It blocks until it is decided (ErrRunClosed), or ctx ends (ErrUnknown, ErrNoQuorum).
func (g *Group) SetReady(ctx context.Context, ready bool) error {
	_, err := g.ask(ctx, "report ready", &wire.Command{Op: &wire.Command_SetReady{SetReady: &wire.SetReady{Ready: ready}}})
	return err
}

// Ended lists the recoveries that have ended lately, oldest first.
func (g *Group) Ended() []EndedRecovery {
	var list []EndedRecovery
	g.rep.read(func(m *state.Machine) {
		for _, e := range m.Ended() {
			list = append(list, EndedRecovery{Recovery: recoveryOf(m, e.GetRecovery()), Ended: e.GetEnded(), Dropped: e.GetDropped()})
		}
	})
	return list
}

// View is the present view as this node knows it.
func (g *Group) View() (v signals.View) {
	g.rep.read(func(m *state.Machine) { v = viewOf(m, m.View()) })
	return v
}

// Leader is the node that leads as far as is known here; empty for unknown.
func (g *Group) Leader() string { return g.leaderHint() }

// MemberDetail is what is known of a member beyond signals.Member.
type MemberDetail struct {
	signals.Member
	Gossip, Cluster string // addresses
	Suspected       bool   // gossip or its session gives reason to doubt that it lives
	Voter, Leader   bool   // of the log; as far as is known here
	Fed             bool   // it is not in the Raft configuration: another member brings it the log
	Protocol        uint32 // newest that its program reads
}

// Members lists the members of the present view with what operators want to see.
func (g *Group) Members() []MemberDetail {
	leader, voters, servers := g.leaderHint(), g.voterNodes(), g.serverNodes()
	var list []MemberDetail
	g.rep.read(func(m *state.Machine) {
		for _, mem := range m.View().Members {
			if run, ok := m.Run(mem.Run); ok {
				list = append(list, detailOf(run, leader, voters, servers))
			}
		}
	})
	return list
}

// Member is one of them; false when the node is not a member.
func (g *Group) Member(node string) (d MemberDetail, ok bool) {
	leader, voters, servers := g.leaderHint(), g.voterNodes(), g.serverNodes()
	if run, open := g.rep.open(node); open {
		return detailOf(run, leader, voters, servers), true
	}
	return MemberDetail{}, false
}

func detailOf(run state.Run, leader string, voters, servers []string) MemberDetail {
	return MemberDetail{
		Member: memberOf(run), Gossip: run.Open.GetGossipAddr(), Cluster: run.Open.GetClusterAddr(),
		Suspected: run.Suspected, Voter: slices.Contains(voters, run.Node()), Leader: run.Node() == leader,
		Fed: len(servers) > 0 && !slices.Contains(servers, run.Node()), Protocol: run.Protocol(),
	}
}

// Sync blocks until this node's replica is not staler than the call. ErrNoQuorum when no leader answers while ctx lasts.
func (g *Group) Sync(ctx context.Context) error {
	index, err := g.readIndex(ctx)
	if err != nil {
		return err
	}
	return g.rep.await(ctx, func(m *state.Machine) bool { return m.Index() >= index })
}
