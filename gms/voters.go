package gms

import (
	"slices"
	"strings"
)

// server is one entry of the Raft configuration.
type server struct {
	node, home string // home in hex
	voter      bool
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
	caughtUp   bool // its applied index was close to the leader's at its last two renewals
}

func (n standingNode) id() string { return n.node + "/" + n.home }

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
//   - who stands and is not in it follows first, as a non-voter, while there is room;
//   - a caught-up follower is promoted while there are fewer voters than the largest odd number that voters and standing
//     members allow, or while one of the voters is dead;
//   - a dead voter stays one until that made the number even, and is then demoted, if the rest is a healthy majority.
//
// Voters are never removed because somebody believes them dead: 3 voters with 1 dead and nobody to follow stay 3.
func planVoters(config []server, standing []standingNode, voters, followers int) (serverChange, bool) {
	in := make(map[string]server, len(config))
	var voting, dead []server
	nonvoters := 0
	byID := make(map[string]standingNode, len(standing))
	for _, n := range standing {
		byID[n.id()] = n
	}
	names := make(map[string]bool, len(standing))
	for _, n := range standing {
		names[n.node] = true
	}
	taken := make(map[string]bool, len(config))
	for _, s := range config {
		in[s.id()] = s
		taken[s.node] = true
		if !s.voter {
			nonvoters++
			continue
		}
		voting = append(voting, s)
		if _, ok := byID[s.id()]; !ok {
			dead = append(dead, s)
		}
	}
	for _, s := range config {
		if _, ok := byID[s.id()]; !ok && names[s.node] && (!s.voter || len(voting)-len(dead) > len(voting)/2) {
			return serverChange{remove, s}, true
		}
	}
	eligible := 0
	for _, n := range standing {
		if n.votes {
			eligible++
		}
		if _, known := in[n.id()]; !known && !taken[n.node] && nonvoters < followers {
			return serverChange{addNonvoter, server{node: n.node, home: n.home}}, true
		}
	}
	return changeVoters(in, standing, voting, dead, oddTarget(voters, eligible))
}

func changeVoters(in map[string]server, standing []standingNode, voting, dead []server, target int) (serverChange, bool) {
	healthy := len(voting) - len(dead)
	even := len(voting)%2 == 0
	if len(dead) > 0 && even && healthy >= len(voting)/2+1 {
		return serverChange{demote, dead[0]}, true
	}
	if len(voting) >= target && (len(dead) == 0 || even) {
		return serverChange{}, false
	}
	i := slices.IndexFunc(standing, func(n standingNode) bool {
		s, known := in[n.id()]
		return known && !s.voter && n.votes && n.caughtUp
	})
	if i < 0 {
		return serverChange{}, false
	}
	return serverChange{promote, in[standing[i].id()]}, true
}

func oddTarget(voters, eligible int) int {
	n := min(voters, eligible)
	if n%2 == 0 {
		n--
	}
	return n
}
