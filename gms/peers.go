package gms

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// peer is what gossip says of one run.
type peer struct {
	meta   *wire.Meta
	gossip string // address
	alive  bool
}

// peers is this node's copy of what gossip says, by run: names in gossip are node/run, so a restarted node is another
// name, and what was said of its dead run never hides its living one (FIELD.md M3, M4, M6).
type peers struct {
	mu      sync.Mutex
	runs    map[state.RunID]peer
	changed chan struct{}
}

func newPeers() *peers {
	return &peers{runs: make(map[state.RunID]peer), changed: make(chan struct{})}
}

// reset forgets all: a new gossip instance knows nobody, and must not take for joined whom an earlier one knew.
func (p *peers) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.runs)
	p.announce()
}

func (p *peers) put(meta *wire.Meta, gossip string, alive bool) {
	id, ok := state.RunIDOf(meta.GetRun())
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[id] = peer{meta: meta, gossip: gossip, alive: alive}
	p.announce()
}

// announce wakes those who wait; with p.mu held.
func (p *peers) announce() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// gone notes that gossip holds the run dead or left.
func (p *peers) gone(id state.RunID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.runs[id]; ok {
		e.alive = false
		p.runs[id] = e
		p.announce()
	}
}

// forget drops dead runs that are over.
func (p *peers) forget(over func(node string, id state.RunID) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.runs, func(id state.RunID, e peer) bool { return !e.alive && over(e.meta.GetNode(), id) })
}

func (p *peers) dead(id state.RunID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.runs[id]
	return ok && !e.alive
}

// alive lists what gossip holds alive, in the order of nodes.
func (p *peers) alive() ([]peer, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []peer
	for _, e := range p.runs {
		if e.alive {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b peer) int { return compareMeta(a.meta, b.meta) })
	return list, p.changed
}

func compareMeta(a, b *wire.Meta) int {
	if a.GetNode() != b.GetNode() {
		if a.GetNode() < b.GetNode() {
			return -1
		}
		return 1
	}
	return slices.Compare(a.GetRun(), b.GetRun())
}

// address finds a node's cluster address among what gossip has said of its runs: best a living run of the home on record
// (another home may try to stand under the name), then the run that the log has open, then whatever is left. A nil home
// is any.
func (p *peers) address(node string, home []byte, open state.RunID) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	var found peer
	for id, e := range p.runs {
		if e.meta.GetNode() != node {
			continue
		}
		rightful := len(home) == 0 || string(home) == string(e.meta.GetHome())
		score := weight(e.alive && rightful, 8) + weight(id == open, 4) + weight(rightful, 2) + weight(e.alive, 1)
		if score > best || score == best && compareMeta(e.meta, found.meta) < 0 {
			best, found = score, e
		}
	}
	return found.meta.GetClusterAddr(), best >= 0
}

func weight(has bool, w int) int {
	if has {
		return w
	}
	return 0
}

// resolve finds a node's cluster address: from gossip, else from the last run in the log, else from what the home remembers.
func (g *Group) resolve(node string) (string, error) {
	if node == g.cfg.Node {
		return g.clusterAddr, nil
	}
	var a string
	var home []byte
	var last state.RunID
	g.rep.read(func(m *state.Machine) {
		if n, ok := m.Node(node); ok {
			last, _ = state.RunIDOf(n.GetLastRun())
			if run, ok := m.Run(last); ok {
				a = run.Open.GetClusterAddr()
			}
			if !n.GetReplaced() {
				home = n.GetHome()
			}
		}
	})
	if heard, ok := g.peers.address(node, home, last); ok {
		return heard, nil
	}
	if a == "" {
		a = g.remembered().Cluster[node]
	}
	if a == "" {
		return "", fmt.Errorf("address of node %s is not known", node)
	}
	return a, nil
}

// client is the other members' calls of a node.
func (g *Group) client(node string) (wire.ClusterClient, error) { return g.dialer.Client(node) }

// bystander is some living member other than those in not, empty names apart.
func (g *Group) bystander(not ...string) string {
	list, _ := g.peers.alive()
	var names []string
	for _, p := range list {
		if n := p.meta.GetNode(); !slices.Contains(not, n) && n != g.cfg.Node {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[rand.IntN(len(names))]
}
