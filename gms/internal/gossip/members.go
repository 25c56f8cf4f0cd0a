package gossip

import (
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/memberlist"
)

// leaveMark replaces the meta of a member that is about to leave. The library does not tell its host whether a member has
// died or left, so the member says it itself, shortly before. It is no protobuf message.
const leaveMark = "\x00"

// table is this package's own copy of the living members; the library's is never read, because what it hands out points
// into its live state.
type table struct {
	mu      sync.Mutex
	members map[string]entry
}

type entry struct {
	Member
	leaving bool
}

func newTable() *table { return &table{members: map[string]entry{}} }

// set notes a living member. It returns false when the news is only that the member is about to leave.
func (t *table) set(m Member) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if string(m.Meta) == leaveMark {
		old := t.members[m.Name]
		t.members[m.Name] = entry{Member: Member{Name: m.Name, Addr: m.Addr, Meta: old.Meta}, leaving: true}
		return false
	}
	t.members[m.Name] = entry{Member: m}
	return true
}

// drop forgets a member, and tells what was known of it and whether it was about to leave.
func (t *table) drop(name string) (last Member, leaving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.members[name]
	delete(t.members, name)
	return e.Member, e.leaving
}

func (t *table) get(name string) (Member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.members[name]
	return e.Member.clone(), ok
}

func (t *table) list() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Member, 0, len(t.members))
	for _, e := range t.members {
		all = append(all, e.Member.clone())
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// copyOf copies what may be read of a node while the library holds its lock.
func copyOf(n *memberlist.Node) Member {
	return Member{Name: n.Name, Addr: n.Address(), Meta: n.Meta}.clone()
}
