package state

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// itemKey names an item of a component.
type itemKey struct{ component, item string }

func (k itemKey) compare(o itemKey) int {
	if c := strings.Compare(k.component, o.component); c != 0 {
		return c
	}
	return strings.Compare(k.item, o.item)
}

// itemSet holds claims by item.
type itemSet = map[string]*wire.ClaimState

// claimTable holds claims by item, and again by run and component: who claimed them, or the dead run of an orphan.
// Quarantined ones are nobody's and only in the first.
type claimTable struct {
	all    map[itemKey]*wire.ClaimState
	byRun  map[RunID]map[string]itemSet
	before map[itemKey]*wire.OrphanedItem // free items that were orphaned before
}

func newClaimTable() claimTable {
	return claimTable{
		all:    map[itemKey]*wire.ClaimState{},
		byRun:  map[RunID]map[string]itemSet{},
		before: map[itemKey]*wire.OrphanedItem{},
	}
}

// of are the claims of a run and the orphans of a dead one, by component.
func (t *claimTable) of(id RunID) map[string]itemSet { return t.byRun[id] }

func keyOf(c *wire.ClaimState) itemKey { return itemKey{c.GetComponent(), c.GetItem()} }

// put replaces the claim of an item.
func (t *claimTable) put(c *wire.ClaimState) {
	t.remove(keyOf(c))
	t.all[keyOf(c)] = c
	if c.GetQuarantined() {
		return
	}
	id, _ := RunIDOf(c.GetRun())
	components := t.byRun[id]
	if components == nil {
		components = map[string]itemSet{}
		t.byRun[id] = components
	}
	if components[c.GetComponent()] == nil {
		components[c.GetComponent()] = itemSet{}
	}
	components[c.GetComponent()][c.GetItem()] = c
}

func (t *claimTable) remove(key itemKey) {
	c, ok := t.all[key]
	if !ok {
		return
	}
	delete(t.all, key)
	id, _ := RunIDOf(c.GetRun())
	components := t.byRun[id]
	delete(components[key.component], key.item)
	if len(components[key.component]) == 0 {
		delete(components, key.component)
	}
	if len(components) == 0 {
		delete(t.byRun, id)
	}
}

// copyClaim is where every change of a claim begins: claims that were handed out are never changed.
func copyClaim(c *wire.ClaimState) *wire.ClaimState {
	return &wire.ClaimState{
		Component: c.GetComponent(), Item: c.GetItem(), RoundTrip: c.GetRoundTrip(), Run: c.GetRun(), Token: c.GetToken(),
		Orphan: c.GetOrphan(), Adopted: c.GetAdopted(), Quarantined: c.GetQuarantined(), Orphanings: c.GetOrphanings(),
	}
}

// claim gives the right to work on an item that nobody holds, whatever the round trip (PROTOCOL.md 20).
func (m *Machine) claim(run RunID, c *wire.Claim) *wire.Result {
	if !validName(c.GetComponent()) || !validName(c.GetItem()) {
		return m.invalid("component or item is out of bounds")
	}
	if !works(m.runs.all[run].Open.GetRole()) {
		return m.invalid("the run's role claims nothing")
	}
	key := itemKey{c.GetComponent(), c.GetItem()}
	if held, ok := m.claims.all[key]; ok {
		if held.GetQuarantined() {
			return m.refuse(wire.Code_CODE_QUARANTINED, "the item is quarantined until an operator frees it")
		}
		return m.busy(held.GetRun(), "the item is claimed")
	}
	if len(m.claims.all) >= MaxClaims {
		return m.refuse(wire.Code_CODE_TOO_LARGE, "there are too many claims")
	}
	granted := &wire.ClaimState{
		Component: c.GetComponent(), Item: c.GetItem(), RoundTrip: c.GetRoundTrip(), Run: run.Bytes(), Token: m.grant(),
		Orphanings: m.claims.before[key].GetOrphanings(),
	}
	delete(m.claims.before, key)
	m.claims.put(granted)
	m.emit(ClaimGranted{Claim: granted})
	r := m.granted(granted.GetToken())
	r.RoundTrip = granted.GetRoundTrip()
	return r
}

// endClaim ends a claim by its holder, an orphan or adopted claim by the holder of its fence, or a quarantined one by
// an operator.
func (m *Machine) endClaim(run RunID, c *wire.EndClaim) *wire.Result {
	if c.GetHow() < wire.EndClaim_HOW_COMPLETE || c.GetHow() > wire.EndClaim_HOW_QUARANTINE {
		return m.invalid("the way to end the claim is unknown")
	}
	held, ok := m.claims.all[itemKey{c.GetComponent(), c.GetItem()}]
	if !ok {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "nobody claims the item")
	}
	if refusal := m.mayEnd(run, c, held); refusal != nil {
		return refusal
	}
	m.settle(held, c.GetHow(), run.IsZero())
	return m.ok()
}

// mayEnd refuses to end a claim that is not the issuer's to end, or not in this way.
func (m *Machine) mayEnd(run RunID, c *wire.EndClaim, held *wire.ClaimState) *wire.Result {
	switch {
	case held.GetQuarantined():
		if !run.IsZero() || c.GetHow() != wire.EndClaim_HOW_FREE {
			return m.refuse(wire.Code_CODE_QUARANTINED, "only an operator frees a quarantined item")
		}
		return nil
	case run.IsZero() || c.GetToken() != held.GetToken():
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "the token is not the claim's")
	case held.GetOrphan() || held.GetAdopted() != nil:
		return m.mayEndFenced(run, c, held)
	case c.GetFence() != nil:
		return m.refuse(wire.Code_CODE_FENCED, "the claim belongs to no fence")
	case !isRun(held.GetRun(), run):
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "another run holds the claim")
	case c.GetHow() == wire.EndClaim_HOW_FREE:
		return m.invalid("a holder completes or abandons its claim; only orphans are freed")
	}
	return nil
}

// mayEndFenced: an orphan, and an adopted claim until Release, is touched only under its fence (PROTOCOL.md 12); one
// that was orphaned too often can only be quarantined (PROTOCOL.md 16).
func (m *Machine) mayEndFenced(run RunID, c *wire.EndClaim, held *wire.ClaimState) *wire.Result {
	dead := held.GetRun()
	if held.GetAdopted() != nil {
		dead = held.GetAdopted().GetRun()
	}
	if !m.holdsFence(run, c.GetFence(), held.GetComponent(), dead) {
		return m.refuse(wire.Code_CODE_FENCED, "the fence on the dead run is not held under this token")
	}
	if held.GetOrphan() && held.GetOrphanings() >= m.maxAttempts() && c.GetHow() != wire.EndClaim_HOW_QUARANTINE {
		return m.refuse(wire.Code_CODE_QUARANTINED, "the claim was orphaned too often: it can only be quarantined")
	}
	return nil
}

// settle ends a claim. A free item keeps the count of its orphanings, unless its work is done or an operator freed it.
func (m *Machine) settle(held *wire.ClaimState, how wire.EndClaim_How, operator bool) {
	if how == wire.EndClaim_HOW_QUARANTINE {
		next := copyClaim(held)
		if held.GetAdopted() != nil {
			next.Run = held.GetAdopted().GetRun()
		}
		next.Quarantined, next.Orphan, next.Adopted = true, false, nil
		m.claims.put(next)
		m.emit(ClaimEnded{Claim: next, How: how})
		return
	}
	m.claims.remove(keyOf(held))
	if n := held.GetOrphanings(); n > 0 && how != wire.EndClaim_HOW_COMPLETE && !operator {
		m.claims.remember(&wire.OrphanedItem{
			Component: held.GetComponent(), Item: held.GetItem(), Orphanings: n, Position: m.Position(),
		})
	}
	m.emit(ClaimEnded{Claim: held, How: how})
}

// adopt turns an orphan of round trip n into the fence holder's claim of round trip n+1 (PROTOCOL.md 12, 20).
func (m *Machine) adopt(run RunID, c *wire.Adopt) *wire.Result {
	held, ok := m.claims.all[itemKey{c.GetComponent(), c.GetItem()}]
	if !ok {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "nobody claims the item")
	}
	if held.GetQuarantined() {
		return m.refuse(wire.Code_CODE_QUARANTINED, "the item is quarantined until an operator frees it")
	}
	if !held.GetOrphan() {
		return m.busy(held.GetRun(), "the claim is no orphan")
	}
	if !m.holdsFence(run, c.GetFence(), held.GetComponent(), held.GetRun()) && mutant != "adopt" {
		return m.refuse(wire.Code_CODE_FENCED, "the fence on the dead run is not held under this token")
	}
	if held.GetOrphanings() >= m.maxAttempts() {
		return m.refuse(wire.Code_CODE_QUARANTINED, "the claim was orphaned too often: it can only be quarantined")
	}
	next := copyClaim(held)
	next.Orphan, next.Run, next.Token, next.RoundTrip = false, run.Bytes(), m.grant(), held.GetRoundTrip()+1
	next.Adopted = copyFence(c.GetFence())
	m.claims.put(next)
	m.emit(ClaimAdopted{Claim: next})
	r := m.granted(next.GetToken())
	r.RoundTrip = next.GetRoundTrip()
	return r
}

// orphanClaimsOf makes orphans of the claims of a closed run; what it had adopted falls back with its fences.
func (m *Machine) orphanClaimsOf(id RunID) {
	for _, held := range sortedClaims(m.claims.of(id), "") {
		if held.GetAdopted() == nil && !held.GetOrphan() {
			m.orphan(held, id, true)
		}
	}
}

// orphanAdopted makes what the holder of a fence has adopted orphans of the same dead run again (PROTOCOL.md 12).
func (m *Machine) orphanAdopted(r *wire.Recovery, counts bool) {
	dead, _ := RunIDOf(r.GetRun())
	for _, held := range m.adopted(r) {
		m.orphan(held, dead, counts)
	}
}

// adopted are the claims that belong to the fence of a recovery.
func (m *Machine) adopted(r *wire.Recovery) []*wire.ClaimState {
	holder, _ := RunIDOf(r.GetAppointee())
	list := sortedClaims(m.claims.of(holder), r.GetComponent())
	return slices.DeleteFunc(list, func(c *wire.ClaimState) bool {
		return string(c.GetAdopted().GetRun()) != string(r.GetRun())
	})
}

// orphan makes an orphan of a claim. It counts towards quarantine (PROTOCOL.md 16) unless the resource was only away.
func (m *Machine) orphan(held *wire.ClaimState, dead RunID, counts bool) {
	next := copyClaim(held)
	next.Orphan, next.Adopted, next.Run = true, nil, dead.Bytes()
	if counts {
		next.Orphanings++
	}
	m.claims.put(next)
	m.emit(ClaimOrphaned{Claim: next, Previous: held})
}

// orphans are the orphans of a dead run in a component.
func (m *Machine) orphans(dead RunID, component string) []*wire.ClaimState {
	list := sortedClaims(m.claims.of(dead), component)
	return slices.DeleteFunc(list, func(c *wire.ClaimState) bool { return !c.GetOrphan() })
}

// keepAdopted gives adopted claims to the run of their adopter, when it releases the fence.
func (m *Machine) keepAdopted(r *wire.Recovery) {
	for _, held := range m.adopted(r) {
		next := copyClaim(held)
		next.Adopted = nil
		m.claims.put(next)
	}
}

// sortedClaims lists the claims of one component, or of all of them.
func sortedClaims(components map[string]itemSet, component string) []*wire.ClaimState {
	var list []*wire.ClaimState
	for name, items := range components {
		if component == "" || component == name {
			list = slices.AppendSeq(list, maps.Values(items))
		}
	}
	sortClaims(list)
	return list
}

func sortClaims(list []*wire.ClaimState) {
	slices.SortFunc(list, func(a, b *wire.ClaimState) int { return keyOf(a).compare(keyOf(b)) })
}
