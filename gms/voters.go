package gms

import (
	"slices"
	"strings"
)

// server is one entry of the Raft configuration.
type server struct {
	node, home string // home in hex
	voter      bool
	goes       bool // its node was forgotten for good, or is gone for so long that it is to be forgotten
}

func (s server) id() string { return s.node + "/" + s.home }

func parseServer(id string, voter bool) server {
	node, home, _ := strings.Cut(id, "/")
	return server{node: node, home: home, voter: voter}
}

// standingNode is what the voters' rule needs to know of a node with an open run.
type standingNode struct {
	node, home string
	votes      bool // its role may vote: core or witness
	declines   bool // it wants no vote: DetailVoteless
	caughtUp   bool // its applied index was close to the leader's at its last two renewals
	leads      bool
}

func (n standingNode) id() string { return n.node + "/" + n.home }

// electable tells whether the node may have a vote.
func (n standingNode) electable() bool { return n.votes && !n.declines }

// serverAct is one change of the Raft configuration.
type serverAct int

const (
	addNonvoter serverAct = iota + 1
	promote
	demote
	remove
)

type serverChange struct {
	act serverAct
	server
}

// planVoters decides the next single change of the Raft configuration, or none (DESIGN.md section 5, "Forming"):
//
//   - a home whose node stands with another one was replaced by an operator, and goes: it would bar the other, since no two
//     servers may have one name;
//   - who stands, may vote and is not in it follows first, as a non-voter, while there is room: the others are fed;
//   - a caught-up follower is promoted while there are fewer voters than the largest odd number that voters and standing
//     members allow, or while one of the voters is dead, has taken a role without a vote or wants none;
//   - such a voter stays one until that made the number even, and is then demoted, if the rest is a healthy majority;
//   - one that came back after its successor was promoted makes the number even too: then the last one goes that does not lead;
//   - who is to be forgotten goes: a follower at once, a voter when there is no successor for it and the rest is a healthy
//     majority;
//   - a follower whose role does not vote goes, and is fed from then on; a dead one goes only when its place is needed for a
//     successor of a voter.
//
// Voters are never removed because somebody believes them dead: 3 voters with 1 dead and nobody to follow stay 3.
func planVoters(config []server, standing []standingNode, voters, followers int) (serverChange, bool) {
	p := newPlan(config, standing)
	for _, s := range config {
		if !p.stands(s) && p.names[s.node] && (!s.voter || p.healthy() > len(p.voting)/2) {
			return serverChange{remove, s}, true
		}
		if !s.voter && p.stands(s) && !p.byID[s.id()].votes || !s.voter && s.goes && !p.stands(s) {
			return serverChange{remove, s}, true
		}
	}
	var next *standingNode // who would follow
	for i, n := range standing {
		if _, known := p.in[n.id()]; next == nil && n.electable() && !known && !p.taken[n.node] {
			next = &standing[i]
		}
	}
	if next != nil && p.nonvoters < followers {
		return serverChange{addNonvoter, server{node: next.node, home: next.home}}, true
	}
	target := oddTarget(voters, p.eligible())
	if next != nil && len(p.successors) == 0 && len(p.gone) > 0 && (len(p.unfit) > 0 || len(p.voting) < target) {
		return serverChange{remove, p.gone[0]}, true
	}
	if ch, ok := p.changeVoters(target); ok || len(p.successors) > 0 {
		return ch, ok
	}
	for _, s := range p.voting {
		if s.goes && !p.stands(s) && p.healthy() > (len(p.voting)-1)/2 {
			return serverChange{remove, s}, true
		}
	}
	return serverChange{}, false
}

// plan is what the rule looks at.
type plan struct {
	standing   []standingNode
	byID       map[string]standingNode
	names      map[string]bool   // nodes that stand
	in         map[string]server // the configuration
	taken      map[string]bool   // its nodes
	nonvoters  int
	voting     []server
	dead       int      // voters that do not stand
	unfit      []server // voters that do not stand, then those whose role does not vote, or who want no vote
	gone       []server // non-voters that do not stand
	successors []server // non-voters that stand and may vote, in the order of standing
}

func newPlan(config []server, standing []standingNode) *plan {
	p := &plan{
		standing: standing, byID: make(map[string]standingNode), names: make(map[string]bool), in: make(map[string]server), taken: make(map[string]bool),
	}
	for _, n := range standing {
		p.byID[n.id()], p.names[n.node] = n, true
	}
	var voteless []server
	for _, s := range config {
		p.in[s.id()], p.taken[s.node] = s, true
		n, stands := p.byID[s.id()]
		switch {
		case !s.voter && !stands:
			p.gone = append(p.gone, s)
		case s.voter && !stands:
			p.unfit = append(p.unfit, s)
		case s.voter && !n.electable():
			voteless = append(voteless, s)
		}
		if s.voter {
			p.voting = append(p.voting, s)
		} else {
			p.nonvoters++
		}
	}
	p.dead = len(p.unfit)
	p.unfit = append(p.unfit, voteless...)
	for _, n := range standing {
		if s, known := p.in[n.id()]; known && !s.voter && n.electable() {
			p.successors = append(p.successors, s)
		}
	}
	return p
}

func (p *plan) stands(s server) bool {
	_, ok := p.byID[s.id()]
	return ok
}

func (p *plan) healthy() int { return len(p.voting) - p.dead }

// eligible counts the standing members that may vote.
func (p *plan) eligible() (n int) {
	for _, s := range p.standing {
		if s.electable() {
			n++
		}
	}
	return n
}

func (p *plan) changeVoters(target int) (serverChange, bool) {
	even := len(p.voting)%2 == 0
	if len(p.unfit) > 0 && even {
		first, healthy, of := p.unfit[0], p.healthy(), len(p.voting)
		if p.stands(first) {
			healthy, of = healthy-1, of-1
		}
		if healthy > of/2 {
			return serverChange{demote, first}, true
		}
	}
	if len(p.unfit) == 0 && even && len(p.voting) > max(target, 2) {
		for _, s := range slices.Backward(p.voting) {
			if !p.byID[s.id()].leads {
				return serverChange{demote, s}, true
			}
		}
	}
	if len(p.voting) >= target && (len(p.unfit) == 0 || even) {
		return serverChange{}, false
	}
	i := slices.IndexFunc(p.successors, func(s server) bool { return p.byID[s.id()].caughtUp })
	if i < 0 {
		return serverChange{}, false
	}
	return serverChange{promote, p.successors[i]}, true
}

func oddTarget(voters, eligible int) int {
	n := min(voters, eligible)
	if n%2 == 0 {
		n--
	}
	return n
}
