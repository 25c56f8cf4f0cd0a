package gmstest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/seam"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/signals"
)

// Node is one process of a node, from its start to its end; after a restart the World has another one of the same name.
type Node struct {
	Name   string          // n1, n2, …
	Group  *gms.Group      // the real thing; to be stopped through the World only
	Router *signals.Router // of the same group, running before WithApp is called

	world *World
	site  *site
	proc  *process
	stop  []func()
	down  chan struct{} // closed when nothing of the process runs any more

	mu   sync.Mutex
	life life
}

type life int

const (
	running life = iota
	paused
	stopping // as planned
	killed
)

// site is what outlives a node's processes: its host and its disk.
type site struct {
	name, ip string
	home     string
	disk     *consensus.MemStores
	node     *Node // the last process; nil before the first
}

func (s *site) gossip() string  { return s.ip + ":7946" }
func (s *site) cluster() string { return s.ip + ":7947" }

// clock counts the bubble's time, from an hour before the world began.
type clock struct{ start time.Time }

func (c clock) Now() time.Duration { return time.Since(c.start) }

// Alive tells whether the process runs, paused ones included. What a killed one still does has no effect on the others,
// but it may still call the host's handlers for a moment: handlers that record what they see ask this first.
func (n *Node) Alive() bool { l := n.lifeNow(); return l == running || l == paused }

func (n *Node) lifeNow() life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

func (n *Node) setLife(l life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life = l
}

// Standing tells whether the node's run holds its lease.
func (n *Node) Standing() bool {
	st, _ := n.Group.Standing()
	return n.Alive() && st == gms.Held
}

// Run is the node's present run, empty between two runs.
func (n *Node) Run() string {
	_, run := n.Group.Self()
	return run
}

// start makes a process on the site.
func (w *World) start(s *site) (*Node, error) {
	n := &Node{Name: s.name, world: w, site: s, proc: w.net.boot(s.ip), down: make(chan struct{})}
	n.Router = signals.NewRouter(signals.Options{Logger: w.tape.logger(n)})
	var err error
	if n.Group, err = gms.New(w.config(n)); err != nil {
		return nil, err
	}
	if err := n.Router.Start(context.Background()); err != nil {
		return nil, err
	}
	s.node = n
	for _, app := range w.opts.app {
		stop, err := app(n)
		if err != nil {
			return nil, err
		}
		if stop != nil {
			n.stop = append(n.stop, stop)
		}
	}
	return n, n.Group.Start(context.Background())
}

func (w *World) config(n *Node) gms.Config {
	s := n.site
	cfg := gms.Config{
		Group: "test", Node: s.name, Home: s.home, Bootstrap: w.founders, Seeds: w.seeds,
		Gossip: gms.Endpoint{Bind: s.gossip()}, Cluster: gms.Endpoint{Bind: s.cluster()},
	}
	if w.safe != nil {
		cfg.GossipKeys, cfg.Certificates = [][]byte{w.safe.key}, w.safe.of(s.name)
	}
	for _, change := range w.opts.config {
		change(s.name, &cfg)
	}
	cfg.Network, cfg.Clock = n.proc, clock{w.began.Add(-time.Hour)}
	cfg.Router, cfg.Logger = n.Router, w.tape.logger(n)
	cfg.Seam = &seam.Hooks{Stores: s.disk, TrailingLogs: w.opts.trailing, Applied: func(index uint64, m *state.Machine, changes []state.Change) {
		w.observer.applied(n, index, m, changes)
	}}
	return cfg
}

// end takes the process down; ctx bounds the polite part.
func (n *Node) end(ctx context.Context, settled ...string) error {
	defer close(n.down)
	for _, stop := range n.stop {
		stop()
	}
	err := n.Group.Stop(ctx, settled...)
	n.Router.Stop()
	n.world.net.kill(n.proc)
	return err
}

// crash is kill -9: what the process still does reaches neither the network nor the disk.
func (n *Node) crash() {
	n.setLife(killed)
	n.world.net.kill(n.proc)
	n.site.disk.Crash()
}

// bury takes down what is left of a killed process.
func (n *Node) bury() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.end(gone) // nothing of it counts any more
}

var errDead = errors.New("the node is not running")
