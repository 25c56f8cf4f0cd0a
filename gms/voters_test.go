package gms

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Notation: "a b* c!" is a configuration of voters a and c and the follower b; c is dead. "d+" stands, caught up, but is
// not in the configuration; "b~" stands and is behind; "b?" has a role without a vote; "c!x" is to be forgotten; "a^" leads;
// "a-" wants no vote.
func parseGroup(text string) (config []server, standing []standingNode) {
	for _, f := range strings.Fields(text) {
		name := f[:1]
		if !strings.Contains(f, "+") {
			config = append(config, server{node: name, home: "h", voter: !strings.Contains(f, "*"), goes: strings.Contains(f, "x")})
		}
		if !strings.Contains(f, "!") {
			standing = append(standing, standingNode{node: name, home: "h", votes: !strings.Contains(f, "?"), declines: strings.Contains(f, "-"), caughtUp: !strings.Contains(f, "~"), leads: strings.Contains(f, "^")})
		}
	}
	return config, standing
}

func TestPlanVoters(t *testing.T) {
	for _, c := range []struct{ group, want string }{
		{"a", ""},
		{"a b+", "add b"},
		{"a b*", ""}, // two members: a second voter would only make one loss fatal twice
		{"a b* c*", "promote b"},
		{"a b c*", "promote c"},
		{"a b~* c~*", ""},
		{"a b c", ""},
		{"a b c!", ""}, // a dead voter stays
		{"a b c! d+", "add d"},
		{"a b c! d~*", ""},
		{"a b c! d*", "promote d"},
		{"a b c! d", "demote c"},
		{"a b c d", "demote d"},  // c came back
		{"a b c d^", "demote c"}, // d leads
		{"a b", ""},
		{"a b! c! d*", "promote d"}, // cannot commit without a majority, and harms nobody
		{"a b! c! d", ""},           // demoting one would leave 2 of 3 dead
		{"a b c d* e*", ""},
		{"a b c d* e* f+", ""},  // no room: it is fed
		{"a b c d* e*! f+", ""}, // a dead follower keeps its place
		{"a b c! d* e*! f+", "promote d"},
		{"a b c! d*! e*! f+", "remove d"}, // nobody else could succeed c
		{"a b c d*! e*! f+", ""},          // a dead follower comes back
		{"a b c d+?", ""},                 // who has no vote is fed
		{"a b c d*?", "remove d"},
		{"a b c? d*", "promote d"},
		{"a b c? d", "demote c"},
		{"a b c*? d", "remove c"},
		{"a? b c", ""},
		{"a b! c? d", "demote b"},
		{"a? b!", ""},
		{"a^-", ""}, // who else?
		{"a^- b*", "promote b"},
		{"a^- b", "demote a"},
		{"a- b c", ""}, // two voters would be worse
		{"a- b c d*", "promote d"},
		{"a- b c d", "demote a"},
		{"a b-*", ""}, // it goes on as a follower
		{"a b-+", ""},
		{"a b c! d-*", ""},
		{"a b c!x", "remove c"},
		{"a b c!x d*", "promote d"},
		{"a b c!x d~*", ""}, // its successor comes first
		{"a b c!*x d", "remove c"},
		{"a b! c!x", ""},  // not below a healthy majority
		{"a b cx d*", ""}, // it stands
	} {
		config, standing := parseGroup(c.group)
		ch, ok := planVoters(config, standing, 3, 2)
		got := ""
		if ok {
			got = map[serverAct]string{addNonvoter: "add", promote: "promote", demote: "demote", remove: "remove"}[ch.act] + " " + ch.node
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.group, got, c.want)
		}
	}
}

// TestPlanVotersNeverLosesAMajority drives random groups to rest: whatever dies, a plan never makes a configuration in
// which the healthy voters are no majority out of one in which they were, and it comes to rest.
func TestPlanVotersNeverLosesAMajority(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		config := []server{{node: "a", home: "h", voter: true}, {node: "b", home: "h", voter: true}, {node: "c", home: "h", voter: true}}
		var standing []standingNode
		for _, n := range "abcdefg" {
			if r.IntN(3) > 0 {
				standing = append(standing, standingNode{node: string(n), home: "h", votes: r.IntN(4) > 0, caughtUp: true})
			}
		}
		for i := range config {
			config[i].goes = r.IntN(3) == 0
		}
		was := healthyMajority(config, standing)
		for step := 0; ; step++ {
			if step > 50 {
				t.Fatalf("seed %d: no rest after 50 changes", seed)
			}
			ch, ok := planVoters(config, standing, 5, 1+r.IntN(3))
			if !ok {
				break
			}
			config = applyChange(config, ch)
			now := healthyMajority(config, standing)
			if was && !now {
				t.Fatalf("seed %d: %v lost the majority: %v", seed, ch, config)
			}
			was = now
		}
	}
}

func healthyMajority(config []server, standing []standingNode) bool {
	up := map[string]bool{}
	for _, n := range standing {
		up[n.id()] = true
	}
	voters, healthy := 0, 0
	for _, s := range config {
		if s.voter {
			voters++
			if up[s.id()] {
				healthy++
			}
		}
	}
	return healthy > voters/2
}

func applyChange(config []server, ch serverChange) []server {
	if ch.act == addNonvoter {
		return append(config, server{node: ch.node, home: ch.home})
	}
	for i, s := range config {
		if s.id() == ch.id() {
			if ch.act == remove {
				return slices.Delete(config, i, i+1)
			}
			config[i].voter = ch.act == promote
			return config
		}
	}
	panic(fmt.Sprintf("change of an unknown server %v", ch))
}

// TestPlanVotersReplacedHome: no two servers may have one name, so the old home goes before the new one comes, but never
// at the price of the majority.
func TestPlanVotersReplacedHome(t *testing.T) {
	up := func(names ...string) (list []standingNode) {
		for _, n := range names {
			list = append(list, standingNode{node: n[:1], home: n[1:], votes: true, caughtUp: true})
		}
		return list
	}
	config := []server{{node: "a", home: "h", voter: true}, {node: "b", home: "h", voter: true}, {node: "c", home: "h", voter: true}}
	var done []string
	for {
		ch, ok := planVoters(config, up("ah", "bh", "cnew"), 3, 16)
		if !ok {
			break
		}
		done = append(done, fmt.Sprint(ch.act == remove, ch.id()))
		if ch.act == remove {
			config = config[:2]
			continue
		}
		config = applyChange(config, ch)
	}
	if got, want := strings.Join(done, ", "), "truec/h, falsec/new, falsec/new"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	if ch, ok := planVoters([]server{{node: "a", home: "h", voter: true}, {node: "b", home: "h", voter: true}, {node: "c", home: "h", voter: true}}, up("ah", "cnew"), 3, 16); ok {
		t.Errorf("with one healthy voter of three: %+v", ch)
	}
}
