package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// candidate is a run that may recover another one's work.
type candidate struct {
	run   RunID
	node  string
	epoch uint64
}

// choice is what an order of candidates depends on.
type choice struct {
	component string
	dead      candidate
	selector  wire.Selector
	host      [][]byte // order of a host's own selector, empty without one
}

// order puts candidates into the order in which they are appointed (PROTOCOL.md 8): a host's own order first, then the
// group's; the dead run's own node is last whatever the selector.
func (c choice) order(candidates []candidate) []candidate {
	list := slices.Clone(candidates)
	if c.selector == wire.Selector_SELECTOR_SUCCESSOR {
		successors(c.dead, list)
	} else {
		rendezvous(c.component, c.dead, list)
	}
	hostFirst(c.host, list)
	ownLast(c.dead.node, list)
	return list
}

// rendezvous sorts by weight, the highest first: it spreads the components of a dead node over all others, and a
// candidate that comes or goes changes nothing among the rest.
func rendezvous(component string, dead candidate, list []candidate) {
	weights := make(map[string]uint64, len(list))
	for _, c := range list {
		weights[c.node] = weight(component, dead.run, c.node)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(weights[b.node], weights[a.node]), cmp.Compare(a.node, b.node))
	})
}

// weight is stable over versions: members of different builds must agree.
func weight(component string, dead RunID, node string) uint64 {
	h := make([]byte, 0, 8+len(component)+len(dead)+len(node))
	h = binary.BigEndian.AppendUint64(h, uint64(len(component)))
	h = append(h, component...)
	h = append(h, dead[:]...)
	h = append(h, node...)
	sum := sha256.Sum256(h)
	return binary.BigEndian.Uint64(sum[:])
}

// successors sorts by order of joining, beginning after the dead run and wrapping.
func successors(dead candidate, list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int {
		if before(a, dead) != before(b, dead) {
			if before(b, dead) {
				return -1
			}
			return 1
		}
		return compareAge(a, b)
	})
}

func before(a, b candidate) bool { return compareAge(a, b) < 0 }

func compareAge(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.node, b.node))
}

// hostFirst moves the runs that a host's selector named to the front, in its order.
func hostFirst(host [][]byte, list []candidate) {
	if len(host) == 0 {
		return
	}
	rank := make(map[RunID]int, len(host))
	for i, b := range host {
		id, _ := RunIDOf(b)
		if _, named := rank[id]; !named {
			rank[id] = i - len(host)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(rank[a.run], rank[b.run]) })
}

func ownLast(node string, list []candidate) {
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case (a.node == node) == (b.node == node):
			return 0
		case a.node == node:
			return 1
		default:
			return -1
		}
	})
}
