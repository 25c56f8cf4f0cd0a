package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	drainLimit = 250 * time.Millisecond // for proposals that are under way when Stop is called
	afterLimit = time.Second            // for their answers once Raft has ended
	keptConns  = 3                      // idle connections per peer
)

// Node is one replica of the log. Its methods may be called from any goroutine, except from within the FSM.
type Node struct {
	cfg     Config
	log     hclog.Logger
	machine *machine
	watch   *stallWatch
	lead    *leadership
	verify  *verifier
	notices *notices
	configs configIndex

	mu      sync.Mutex // guards the life below
	store   *storage
	stable  raft.StableStore // the parts of store, wrapped
	logs    raft.LogStore
	snaps   raft.SnapshotStore
	trans   *transport
	raft    *raft.Raft
	stopped bool
	ended   chan struct{} // closed when Stop is through

	stopping    chan struct{}
	loops       sync.WaitGroup // goroutines that end by stopping
	calls       sync.WaitGroup // goroutines that wait for Raft's answers
	proposals   atomic.Int64
	established atomic.Uint64 // term in which an own entry is known to be applied
}

// New checks the configuration. It opens nothing and starts nothing.
func New(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	n := &Node{
		cfg:      cfg,
		log:      &logger{slog: cfg.Logger},
		machine:  newMachine(cfg.FSM),
		lead:     newLeadership(),
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
	}
	n.watch = newStallWatch(cfg.Timing.StallLimit, n.onStall)
	n.verify = &verifier{node: n}
	n.notices = &notices{node: n, committed: make(chan struct{}, 1)}
	return n, nil
}

func (n *Node) onStall() {
	n.cfg.Logger.Error("a write to the log does not return: silent from now on", "limit", n.cfg.Timing.StallLimit)
	if n.cfg.OnStall != nil {
		n.cfg.OnStall(ErrDiskStalled)
	}
}

func (n *Node) onFull(err error) {
	n.cfg.Logger.Error("the disk of the log is full: its reserve is given up, to end in order", "error", err)
	if n.cfg.OnFull != nil {
		go n.cfg.OnFull(err) // Raft waits for the write
	}
}

// openStore opens the stores once; n.mu is held. full is nil where no room is to be kept.
func (n *Node) openStore(full func(error)) error {
	if n.stopped {
		return ErrStopped
	}
	if n.store != nil {
		return nil
	}
	s, err := n.cfg.Stores.open(n.cfg.Dir, n.log, full)
	if err != nil {
		return err
	}
	noted := &notedLogs{LogStore: &watchedLogs{LogStore: s.logs, watch: n.watch}, configs: &n.configs}
	cached, err := raft.NewLogCache(cachedEntries, noted)
	if err != nil {
		return errors.Join(fmt.Errorf("make the cache of the log: %w", err), s.close())
	}
	n.store, n.logs = s, cached
	n.snaps = &notedSnapshots{SnapshotStore: s.snaps, configs: &n.configs}
	n.stable = &votes{StableStore: &watchedStable{StableStore: s.stable, watch: n.watch}}
	return nil
}

// Start opens the log and joins in. The FSM has got the last snapshot back when it returns; the entries behind it follow
// once a leader has said what is committed. A node with an empty log waits to be added, or for [Node.Bootstrap]. After an
// error the Node can only be stopped.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if n.raft != nil && !n.stopped {
		return errors.New("consensus: started already")
	}
	if err := n.openStore(n.onFull); err != nil {
		return err
	}
	n.trans = n.newTransport()
	notify := make(chan bool)
	r, err := raft.NewRaft(n.raftConfig(notify), n.machine, n.logs, n.stable, n.snaps, n.trans)
	if err != nil {
		_ = n.trans.Close() // the error that counts is err
		n.trans = nil
		return fmt.Errorf("start raft: %w", err)
	}
	n.raft = r
	n.loops.Go(func() { n.lead.drain(r, notify, n.stopping) })
	n.loops.Go(func() { n.notices.loop(r) })
	return nil
}

func (n *Node) newTransport() *transport {
	inner := func(s raft.StreamLayer) *raft.NetworkTransport {
		return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Logger:          n.log.Named("net"),
			Stream:          s,
			MaxPool:         keptConns,
			MaxRPCsInFlight: 1,
			Timeout:         n.cfg.Timing.RPCTimeout,
		})
	}
	return newTransport(newStreams(n.cfg.Streams, n.cfg.Address), inner, n.watch.tripped.Load, n.cfg.Logger.Warn)
}

func (n *Node) raftConfig(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.cfg.ServerID)
	c.HeartbeatTimeout = n.cfg.Timing.HeartbeatTimeout
	c.ElectionTimeout = n.cfg.Timing.ElectionTimeout
	c.LeaderLeaseTimeout = n.cfg.Timing.LeaderLeaseTimeout
	c.CommitTimeout = n.cfg.Timing.CommitTimeout
	c.SnapshotInterval = n.cfg.Timing.SnapshotInterval
	c.SnapshotThreshold = n.cfg.SnapshotThreshold
	c.TrailingLogs = n.cfg.TrailingLogs
	c.ShutdownOnRemove = false // a removed node stays up, sees it in Configuration, and may be added again
	c.NoLegacyTelemetry = true
	c.Logger = n.log
	c.NotifyCh = notify
	return c
}

// Stop ends the replica and closes the log. Proposals under way get a moment to finish, then ErrUnknown. It may be called
// before Start and more than once, and waits until all is closed; after a stalled disk it does not wait for the disk.
func (n *Node) Stop() {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		<-n.ended
		return
	}
	n.stopped = true
	n.mu.Unlock()
	n.waitUntil(drainLimit, func() bool { return n.proposals.Load() == 0 })
	if n.raft != nil {
		n.shutdownRaft()
	} else {
		_ = n.cfg.Streams.Close() // nothing has used it
	}
	n.watch.close()
	close(n.stopping)
	n.loops.Wait()
	n.waitFor(&n.calls, afterLimit)
	if n.store != nil && !n.watch.tripped.Load() {
		if err := n.store.close(); err != nil {
			n.cfg.Logger.Warn("close the log", "error", err)
		}
	}
	close(n.ended)
}

// shutdownRaft waits for Raft's goroutines, unless one of them hangs in a write that will not return.
func (n *Node) shutdownRaft() {
	down := make(chan struct{})
	go func() {
		defer close(down)
		if err := n.raft.Shutdown().Error(); err != nil {
			n.cfg.Logger.Warn("shut raft down", "error", err)
		}
	}()
	select {
	case <-down:
		return
	case <-n.watch.stalled: // perhaps only now
	}
	select {
	case <-down:
	case <-time.After(afterLimit):
		_ = n.trans.Close() // Raft's loop, which would, hangs
	}
}

func (n *Node) waitUntil(limit time.Duration, done func() bool) {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}

func (n *Node) waitFor(g *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// running gives Raft to a caller that has added itself to calls, and must call done.
func (n *Node) running() (r *raft.Raft, done func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.stopped:
		return nil, nil, ErrStopped
	case n.raft == nil:
		return nil, nil, ErrNotStarted
	}
	n.calls.Add(1)
	return n.raft, n.calls.Done, nil
}

// peek gives Raft for reading numbers, nil before Start.
func (n *Node) peek() *raft.Raft {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.raft
}
