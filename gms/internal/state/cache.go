package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of the state cache.
const (
	MaxValue      = 64 << 10 // bytes of a value
	MaxCache      = 16 << 20 // bytes of all entries: keys, values and entryOverhead each
	MaxOps        = 1024     // puts and deletes of a transaction
	MaxConditions = 256      // of a transaction
	entryOverhead = 64
)

// CacheKey names an entry of the distributed state cache. Member is empty for group-wide entries.
type CacheKey struct{ Component, Member, Key string }

func cacheKey(k *wire.CacheKey) CacheKey {
	return CacheKey{k.GetComponent(), k.GetMember(), k.GetKey()}
}

func (k CacheKey) wire() *wire.CacheKey {
	return &wire.CacheKey{Component: k.Component, Member: k.Member, Key: k.Key}
}

func (k CacheKey) compare(o CacheKey) int {
	return cmp.Or(space{k.Component, k.Member}.compare(space{o.Component, o.Member}), cmp.Compare(k.Key, o.Key))
}

// space is a member's part of a component.
type space struct{ component, member string }

func (s space) compare(o space) int {
	return cmp.Or(cmp.Compare(s.component, o.component), cmp.Compare(s.member, o.member))
}

// cacheTable holds the entries by (component, member) and key.
type cacheTable struct {
	spaces map[space]map[string]*wire.CacheEntry
	bound  map[RunID]map[CacheKey]bool
	count  int
	size   int
}

func newCacheTable() cacheTable {
	return cacheTable{spaces: map[space]map[string]*wire.CacheEntry{}, bound: map[RunID]map[CacheKey]bool{}}
}

func (t *cacheTable) get(k CacheKey) *wire.CacheEntry {
	return t.spaces[space{k.Component, k.Member}][k.Key]
}

func sizeOf(e *wire.CacheEntry) int {
	if e == nil {
		return 0
	}
	k := e.GetKey()
	return len(k.GetComponent()) + len(k.GetMember()) + len(k.GetKey()) + len(e.GetValue()) + entryOverhead
}

func (t *cacheTable) put(e *wire.CacheEntry) {
	k := cacheKey(e.GetKey())
	t.remove(k)
	s := space{k.Component, k.Member}
	if t.spaces[s] == nil {
		t.spaces[s] = map[string]*wire.CacheEntry{}
	}
	t.spaces[s][k.Key] = e
	t.count++
	t.size += sizeOf(e)
	if id, ok := RunIDOf(e.GetBound()); ok {
		if t.bound[id] == nil {
			t.bound[id] = map[CacheKey]bool{}
		}
		t.bound[id][k] = true
	}
}

// remove reports whether there was an entry.
func (t *cacheTable) remove(k CacheKey) bool {
	e := t.get(k)
	if e == nil {
		return false
	}
	s := space{k.Component, k.Member}
	delete(t.spaces[s], k.Key)
	if len(t.spaces[s]) == 0 {
		delete(t.spaces, s)
	}
	t.count--
	t.size -= sizeOf(e)
	if id, ok := RunIDOf(e.GetBound()); ok {
		delete(t.bound[id], k)
		if len(t.bound[id]) == 0 {
			delete(t.bound, id)
		}
	}
	return true
}

// cacheTxn does all puts and deletes when all conditions hold, else nothing. The conditions are judged where the
// effects are made, so a write of a closed run, or under an old token, is never seen by anybody.
func (m *Machine) cacheTxn(run RunID, c *wire.CacheTxn) *wire.Result {
	if refusal := m.checkTxn(run, c); refusal != nil {
		return refusal
	}
	for i, condition := range c.GetConditions() {
		if !m.holds(condition) {
			r := m.refuse(wire.Code_CODE_CONDITION_FAILED, "a condition does not hold")
			r.Condition = int32(i)
			return r
		}
	}
	if !m.fits(c) {
		return m.refuse(wire.Code_CODE_TOO_LARGE, "the state cache is full")
	}
	if !m.fresh(c) {
		return m.refuse(wire.Code_CODE_AGAIN, "the entry has written a key already")
	}
	change := CacheChanged{Version: m.Position()}
	for _, p := range c.GetPuts() {
		e := &wire.CacheEntry{Key: cacheKey(p.GetKey()).wire(), Value: p.GetValue(), Version: m.Position()}
		if p.GetBound() {
			e.Bound = run.Bytes()
		}
		m.cache.put(e)
		change.Events = append(change.Events, CacheEvent{Key: cacheKey(p.GetKey()), Value: e.GetValue()})
	}
	for _, k := range c.GetDeletes() {
		if m.cache.remove(cacheKey(k)) {
			change.Events = append(change.Events, CacheEvent{Key: cacheKey(k), Deleted: true})
		}
	}
	if len(change.Events) > 0 {
		m.emit(change)
	}
	return m.ok()
}

// fresh reports whether no key that c puts was put by an earlier transaction of this entry, and notes them. A version is the
// position of the entry, so a second one would be taken for the first by whoever made that one.
func (m *Machine) fresh(c *wire.CacheTxn) bool {
	for _, p := range c.GetPuts() {
		if m.written[cacheKey(p.GetKey())] {
			return false
		}
	}
	if m.written == nil {
		m.written = map[CacheKey]bool{}
	}
	for _, p := range c.GetPuts() {
		m.written[cacheKey(p.GetKey())] = true
	}
	return true
}

// checkTxn refuses what no state could accept.
func (m *Machine) checkTxn(run RunID, c *wire.CacheTxn) *wire.Result {
	if len(c.GetPuts())+len(c.GetDeletes()) > MaxOps || len(c.GetConditions()) > MaxConditions {
		return m.refuse(wire.Code_CODE_TOO_LARGE, "the transaction has too many parts")
	}
	seen := map[CacheKey]bool{}
	once := func(k *wire.CacheKey) bool {
		fresh := validCacheKey(k) && !seen[cacheKey(k)]
		seen[cacheKey(k)] = true
		return fresh
	}
	for _, p := range c.GetPuts() {
		if len(p.GetValue()) > MaxValue {
			return m.refuse(wire.Code_CODE_TOO_LARGE, "a value is larger than 64 KiB")
		}
		if !once(p.GetKey()) || p.GetBound() && run.IsZero() {
			return m.invalid("a key is out of bounds or named twice, or an entry is bound to no run")
		}
	}
	for _, k := range c.GetDeletes() {
		if !once(k) {
			return m.invalid("a key is out of bounds or named twice")
		}
	}
	for _, condition := range c.GetConditions() {
		if condition.GetKind() == nil {
			return m.refuse(wire.Code_CODE_UNKNOWN_COMMAND, "a condition is not known to this version")
		}
	}
	return nil
}

// fits reports whether the cache stays within its bound, or at least does not grow.
func (m *Machine) fits(c *wire.CacheTxn) bool {
	grows := 0
	for _, p := range c.GetPuts() {
		grows += sizeOf(&wire.CacheEntry{Key: p.GetKey(), Value: p.GetValue()}) - sizeOf(m.cache.get(cacheKey(p.GetKey())))
	}
	for _, k := range c.GetDeletes() {
		grows -= sizeOf(m.cache.get(cacheKey(k)))
	}
	return grows <= 0 || m.cache.size+grows <= MaxCache
}

func (m *Machine) holds(c *wire.Condition) bool {
	switch k := c.GetKind().(type) {
	case *wire.Condition_VersionIs:
		return m.cache.get(cacheKey(k.VersionIs.GetKey())).GetVersion() == k.VersionIs.GetVersion()
	case *wire.Condition_RunOpen:
		id, ok := RunIDOf(k.RunOpen)
		return ok && m.runs.isOpen(id)
	case *wire.Condition_ClaimHeld:
		return m.claimHeld(k.ClaimHeld)
	case *wire.Condition_FenceHeld:
		return m.fence(k.FenceHeld) != nil
	default:
		return false
	}
}

func (m *Machine) claimHeld(c *wire.ClaimHeld) bool {
	held, ok := m.claims.all[itemKey{c.GetComponent(), c.GetItem()}]
	return ok && !held.GetOrphan() && !held.GetQuarantined() &&
		string(held.GetRun()) == string(c.GetRun()) && held.GetToken() == c.GetToken()
}

// dropBound removes the entries that were bound to a run, when nothing of it is left to recover.
func (m *Machine) dropBound(id RunID) {
	if len(m.cache.bound[id]) == 0 {
		return
	}
	change := CacheChanged{Version: m.Position()}
	for k := range m.cache.bound[id] {
		change.Events = append(change.Events, CacheEvent{Key: k, Deleted: true})
	}
	slices.SortFunc(change.Events, func(a, b CacheEvent) int { return a.Key.compare(b.Key) })
	for _, e := range change.Events {
		m.cache.remove(e.Key)
	}
	m.emit(change)
}

// CacheGet returns an entry; false when there is none.
func (m *Machine) CacheGet(k CacheKey) (*wire.CacheEntry, bool) {
	e := m.cache.get(k)
	return e, e != nil
}

// CacheList returns the entries of one member's part of a component whose keys begin with prefix, by key.
func (m *Machine) CacheList(component, member, prefix string) []*wire.CacheEntry {
	var list []*wire.CacheEntry
	for key, e := range m.cache.spaces[space{component, member}] {
		if strings.HasPrefix(key, prefix) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *wire.CacheEntry) int { return strings.Compare(a.GetKey().GetKey(), b.GetKey().GetKey()) })
	return list
}

// snapshot lists all entries by component, member and key.
func (t *cacheTable) snapshot() []*wire.CacheEntry {
	list := make([]*wire.CacheEntry, 0, t.count)
	for _, s := range slices.SortedFunc(maps.Keys(t.spaces), space.compare) {
		list = append(list, sortedValues(t.spaces[s])...)
	}
	return list
}

// CacheMembers lists the members that have entries of a component, sorted; "" stands for the group-wide part.
func (m *Machine) CacheMembers(component string) []string {
	var list []string
	for s := range m.cache.spaces {
		if s.component == component {
			list = append(list, s.member)
		}
	}
	slices.Sort(list)
	return list
}

// CacheSize returns the number of entries and their bytes as counted against MaxCache.
func (m *Machine) CacheSize() (entries, size int) { return m.cache.count, m.cache.size }
