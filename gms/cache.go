package gms

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// MaxValue bounds one value of the state cache, in bytes.
const MaxValue = 64 << 10

// Key names an entry of the state cache.
type Key struct {
	Component string // 1 to 255 bytes
	Member    string // node the entry is about; empty for the whole group
	Key       string // 1 to 255 bytes
}

func (k Key) wire() *wire.CacheKey {
	return &wire.CacheKey{Component: k.Component, Member: k.Member, Key: k.Key}
}

// Entry is what the state cache holds under a key.
type Entry struct {
	Key
	Value   []byte // the reader's own copy
	Version uint64 // position of the Put; grows with every one
}

// Condition is what must hold, where a transaction takes effect, for it to happen at all. Made by VersionIs, RunOpen,
// ClaimHeld and FenceHeld.
type Condition struct {
	w   *wire.Condition
	err error
}

// VersionIs holds while the entry has that version; 0: while there is none.
func VersionIs(k Key, version uint64) Condition {
	return Condition{w: &wire.Condition{Kind: &wire.Condition_VersionIs{VersionIs: &wire.VersionIs{Key: k.wire(), Version: version}}}}
}

// RunOpen holds while the run is open.
func RunOpen(run string) Condition {
	id, err := parseRun(run)
	return Condition{w: &wire.Condition{Kind: &wire.Condition_RunOpen{RunOpen: id.Bytes()}}, err: err}
}

// ClaimHeld holds while the run holds the claim on the item under that token.
func ClaimHeld(component, item, run string, token uint64) Condition {
	id, err := parseRun(run)
	return Condition{w: &wire.Condition{Kind: &wire.Condition_ClaimHeld{ClaimHeld: &wire.ClaimHeld{Component: component, Item: item, Run: id.Bytes(), Token: token}}}, err: err}
}

// FenceHeld holds while the fence on the component of the node's dead run is raised under that token.
func FenceHeld(component, node, deadRun string, token uint64) Condition {
	id, err := parseRun(deadRun)
	return Condition{w: &wire.Condition{Kind: &wire.Condition_FenceHeld{FenceHeld: &wire.FenceHeld{Component: component, Node: node, Run: id.Bytes(), Token: token}}}, err: err}
}

// Put is one write of a transaction.
type Put struct {
	Key
	Value []byte // at most MaxValue bytes; not kept by the call
	Bound bool   // goes with the run that wrote it, when its last recovery has ended
	// Protocol is the lowest one whose programs understand Value; 0: any. While the group writes an older one, Commit refuses it:
	// a program of that would read it, too.
	Protocol uint32
}

// Txn is a transaction: all conditions, then all puts and deletes, or nothing.
type Txn struct {
	Conditions []Condition // all must hold where the transaction is applied; none: it always takes effect
	Puts       []Put       // no key twice, neither here nor in Deletes
	Deletes    []Key       // one that is not there is no error
}

// ConditionError says which condition of a transaction did not hold: it is ErrConflict for a VersionIs, and ErrFenced
// for the others.
type ConditionError struct {
	Index  int // in Txn.Conditions
	fenced bool
}

// Error says what did not hold.
func (e *ConditionError) Error() string {
	if e.fenced {
		return fmt.Sprintf("condition %d does not hold: %v", e.Index, ErrFenced)
	}
	return fmt.Sprintf("condition %d does not hold: %v", e.Index, ErrConflict)
}

// Is makes it ErrConflict or ErrFenced.
func (e *ConditionError) Is(target error) bool {
	return target == ErrFenced && e.fenced || target == ErrConflict && !e.fenced
}

// Cache is the distributed state cache: a map that every member holds a copy of, changed through the log. It survives
// full restarts. Values are at most MaxValue bytes, one transaction at most 384 KiB, all entries 16 MiB.
type Cache struct{ g *Group }

// Cache gives access to the state cache.
func (g *Group) Cache() *Cache { return &Cache{g} }

// Commit makes a transaction. It blocks until the outcome is known: *ConditionError, ErrTooLarge, ErrRunClosed, ErrProtocol (see
// Put.Protocol); or until ctx ends: ErrUnknown, ErrNoQuorum. It returns the position: the version of what was put. Repeats on the way are
// answered once.
func (c *Cache) Commit(ctx context.Context, t Txn) (version uint64, err error) {
	op := &wire.CacheTxn{}
	for _, x := range t.Conditions {
		if x.err != nil {
			return 0, fmt.Errorf("commit to the state cache: %w", x.err)
		}
		op.Conditions = append(op.Conditions, x.w)
	}
	for _, p := range t.Puts {
		if len(p.Value) > MaxValue {
			return 0, fmt.Errorf("commit to the state cache: %w: %s/%s has %d bytes, at most %d", ErrTooLarge, p.Component, p.Key.Key, len(p.Value), MaxValue)
		}
		if writes := max(1, c.g.Protocol()); p.Protocol > writes { // the group's only grows: what may be written here may be wherever it is applied
			return 0, withHint(fmt.Errorf("commit to the state cache: %w: %s/%s is of protocol %d, and the group writes %d", ErrProtocol, p.Component, p.Key.Key, p.Protocol, writes), notYet)
		}
		op.Puts = append(op.Puts, &wire.CachePut{Key: p.Key.wire(), Value: p.Value, Bound: p.Bound})
	}
	for _, k := range t.Deletes {
		op.Deletes = append(op.Deletes, k.wire())
	}
	r, err := c.g.ask(ctx, "commit to the state cache", &wire.Command{Op: &wire.Command_CacheTxn{CacheTxn: op}})
	if r.GetCode() == wire.Code_CODE_CONDITION_FAILED {
		i := int(r.GetCondition())
		_, version := op.GetConditions()[i].GetKind().(*wire.Condition_VersionIs)
		return 0, &ConditionError{Index: i, fenced: !version}
	}
	return r.GetPosition(), err
}

// Get reads an entry, not staler than the call: it asks the leader for an index and waits for it here. ErrNotFound when
// there is none, ErrNoQuorum when no leader answers while ctx lasts.
func (c *Cache) Get(ctx context.Context, k Key) (Entry, error) {
	if err := c.g.Sync(ctx); err != nil {
		return Entry{}, fmt.Errorf("read %s/%s: %w", k.Component, k.Key, err)
	}
	return c.GetLocal(k)
}

// GetLocal reads this node's copy, which may be behind. It does not block. ErrNotFound when there is no such entry here.
func (c *Cache) GetLocal(k Key) (Entry, error) {
	var e Entry
	found := false
	c.g.rep.read(func(m *state.Machine) {
		if w, ok := m.CacheGet(state.CacheKey{Component: k.Component, Member: k.Member, Key: k.Key}); ok {
			e, found = entryOf(w), true
		}
	})
	if !found {
		return Entry{}, fmt.Errorf("read %s/%s: %w", k.Component, k.Key, ErrNotFound)
	}
	return e, nil
}

// List reads the entries of a component and member whose keys begin with prefix, in order of key, not staler than the
// call. ErrNoQuorum when no leader answers while ctx lasts.
func (c *Cache) List(ctx context.Context, component, member, prefix string) ([]Entry, error) {
	if err := c.g.Sync(ctx); err != nil {
		return nil, fmt.Errorf("list %s/%s: %w", component, prefix, err)
	}
	return c.ListLocal(component, member, prefix), nil
}

// ListLocal lists this node's copy, which may be behind. It does not block.
func (c *Cache) ListLocal(component, member, prefix string) []Entry {
	var list []Entry
	c.g.rep.read(func(m *state.Machine) {
		for _, w := range m.CacheList(component, member, prefix) {
			list = append(list, entryOf(w))
		}
	})
	return list
}

func entryOf(w *wire.CacheEntry) Entry {
	k := w.GetKey()
	return Entry{Key: Key{k.GetComponent(), k.GetMember(), k.GetKey()}, Value: w.GetValue(), Version: w.GetVersion()}
}

// Changed returns a channel that is closed when this node applies the next entry of the log after the call: a hint to
// read again.
func (c *Cache) Changed() <-chan struct{} {
	return c.g.rep.watch(func(*state.Machine) {})
}
