package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// maxOrphanedItems bounds what is remembered of free items; the oldest eighth goes when it is exceeded. An item that is
// forgotten begins to count at 0 again.
const maxOrphanedItems = 8192

func (t *claimTable) remember(o *wire.OrphanedItem) {
	t.before[itemKey{o.GetComponent(), o.GetItem()}] = o
	if len(t.before) <= maxOrphanedItems {
		return
	}
	list := make([]*wire.OrphanedItem, 0, len(t.before))
	for _, o := range t.before {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *wire.OrphanedItem) int {
		return cmp.Or(cmp.Compare(a.GetPosition(), b.GetPosition()), compareItems(a, b))
	})
	for _, o := range list[:maxOrphanedItems/8] {
		delete(t.before, itemKey{o.GetComponent(), o.GetItem()})
	}
}

func compareItems(a, b *wire.OrphanedItem) int {
	return cmp.Or(cmp.Compare(a.GetComponent(), b.GetComponent()), cmp.Compare(a.GetItem(), b.GetItem()))
}

// ClaimFilter chooses claims; a zero field chooses all.
type ClaimFilter struct {
	Component string
	Item      string
	Run       RunID // holder, or the dead run of an orphan; quarantined claims are no run's
}

// Claims lists the claims that the filter chooses, by component and item.
func (m *Machine) Claims(f ClaimFilter) []*wire.ClaimState {
	var list []*wire.ClaimState
	switch {
	case f == ClaimFilter{}:
		return m.claims.snapshot()
	case f.Component != "" && f.Item != "":
		if c, ok := m.claims.all[itemKey{f.Component, f.Item}]; ok {
			list = append(list, c)
		}
	case !f.Run.IsZero():
		list = sortedClaims(m.claims.of(f.Run), f.Component)
	default:
		for _, c := range m.claims.all {
			list = append(list, c)
		}
		sortClaims(list)
	}
	return slices.DeleteFunc(list, func(c *wire.ClaimState) bool {
		return f.Component != "" && c.GetComponent() != f.Component ||
			f.Item != "" && c.GetItem() != f.Item ||
			!f.Run.IsZero() && (!isRun(c.GetRun(), f.Run) || c.GetQuarantined())
	})
}

// snapshot lists all claims by component and item.
func (t *claimTable) snapshot() []*wire.ClaimState {
	list := make([]*wire.ClaimState, 0, len(t.all))
	for _, k := range slices.SortedFunc(maps.Keys(t.all), itemKey.compare) {
		list = append(list, t.all[k])
	}
	return list
}

// Claim returns the claim of an item: held, orphan or quarantined.
func (m *Machine) Claim(component, item string) (*wire.ClaimState, bool) {
	c, ok := m.claims.all[itemKey{component, item}]
	return c, ok
}
