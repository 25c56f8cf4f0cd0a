package gossip

import (
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/memberlist"
)

// table is this package's own copy of the living members; the library's is never read, because what it hands out points
// into its live state.
type table struct {
	mu      sync.Mutex
	members map[string]Member
}

func newTable() *table { return &table{members: map[string]Member{}} }

func (t *table) set(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[m.Name] = m
}

func (t *table) drop(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.members, name)
}

func (t *table) list() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Member, 0, len(t.members))
	for _, m := range t.members {
		all = append(all, m.clone())
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// copyOf copies what may be read of a node while the library holds its lock.
func copyOf(n *memberlist.Node) Member {
	return Member{Name: n.Name, Addr: n.Address(), Meta: n.Meta}.clone()
}
