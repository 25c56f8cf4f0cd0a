package gms

import (
	"slices"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// guide is what others tell this node of the log: its own Raft knows nothing of it while its home is not in the
// configuration. Feeders and the leader's acknowledgements fill it.
type guide struct {
	mu      sync.Mutex
	leader  string
	term    uint64
	voters  []string
	feeders []string
	feeder  string        // who feeds this node; empty while nobody does
	newest  uint64        // highest index that a leader is known to have applied
	fed     bool          // the leader says that this home is not in the configuration
	changed chan struct{} // closed and replaced when leader, fed, or what the own Raft knows of the leader change
}

func newGuide() *guide { return &guide{changed: make(chan struct{})} }

// announce wakes those who wait for a leader.
func (t *guide) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}

// wake is announce with t.mu held.
func (t *guide) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *guide) moved() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// lead notes who leads; an earlier term than the last one heard of counts for nothing. t.mu is held.
func (t *guide) lead(node string, term uint64) {
	if node == "" || term < t.term || node == t.leader && term == t.term {
		return
	}
	moved := node != t.leader
	t.leader, t.term = node, term
	if moved {
		t.wake()
	}
}

// acknowledged takes what a leader's answer to a renewal tells beside the lease.
func (t *guide) acknowledged(a *wire.RenewReply) {
	if !a.GetAcknowledged() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lead(a.GetLeader(), a.GetTerm())
	t.newest = max(t.newest, a.GetApplied())
	if a.GetFed() != t.fed {
		t.fed = a.GetFed()
		t.wake()
	}
}

// status takes what a feeder says.
func (t *guide) status(s *wire.FeedStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lead(s.GetLeader(), s.GetTerm())
	if len(s.GetFeeders()) > 0 {
		t.voters, t.feeders = s.GetVoters(), s.GetFeeders()
	}
}

func (t *guide) leads() (node string, fed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leader, t.fed
}

// forgetServers lets any member be asked for a feed again.
func (t *guide) forgetServers() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feeders = nil
}

func (t *guide) servers() (voters, feeders []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.voters), slices.Clone(t.feeders)
}

// ahead is the highest index that a leader is known to have applied.
func (t *guide) ahead() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}

// follows tells whether the own log brings the entries: the home is in the configuration as far as it knows, and a leader
// speaks to it or has not said otherwise.
func (g *Group) follows() bool {
	if !g.consensusRuns() || !g.cons.Listed() {
		return false
	}
	if now, _ := g.cons.Watch(); now.Address != "" {
		return true
	}
	_, fed := g.guide.leads()
	return !fed
}

// leaderHint is the node that leads as far as is known here: by the own Raft, or by what others told when the home has no
// part in it.
func (g *Group) leaderHint() string {
	if g.consensusRuns() {
		if now, _ := g.cons.Watch(); now.Address != "" {
			return now.Address
		}
	}
	if g.follows() {
		return ""
	}
	node, _ := g.guide.leads()
	return node
}

// leaderChanged is closed when the hint may have changed.
func (g *Group) leaderChanged() <-chan struct{} { return g.guide.moved() }

// heard takes the answer to a renewal.
func (g *Group) heard(a *wire.RenewReply) { g.guide.acknowledged(a) }

// fedBy notes who feeds this node.
func (t *guide) fedBy(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feeder = node
}

// Feeder is the member that feeds this node now; empty while nobody does, and for a node that follows the log itself.
func (g *Group) Feeder() string {
	g.guide.mu.Lock()
	defer g.guide.mu.Unlock()
	return g.guide.feeder
}

// Server is one home's place in the Raft configuration.
type Server struct {
	Node, Home string // Home: its id in hex
	Voter      bool   // it votes; the others only follow the log
}

// Servers lists the Raft configuration as this node's log knows it, dead members included; nothing on a node that is fed.
func (g *Group) Servers() []Server {
	if !g.follows() {
		return nil
	}
	var list []Server
	for _, s := range g.cons.Configuration().Servers {
		p := parseServer(s.ID, s.Voter)
		list = append(list, Server{Node: p.node, Home: p.home, Voter: p.voter})
	}
	return list
}

// Follows tells whether this node's home is in the Raft configuration, as a voter or a follower; a member beyond those is
// fed by one of them, and sees and does the same.
func (g *Group) Follows() bool { return g.follows() }
