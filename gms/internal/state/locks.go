package state

import (
	"bytes"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// lockTable holds the poll locks that somebody holds; a free one has no entry, so that empty names disappear.
type lockTable struct {
	all   map[string]*wire.LockState
	byRun map[RunID]map[string]bool // names that the run holds or waits for
}

func newLockTable() lockTable {
	return lockTable{all: map[string]*wire.LockState{}, byRun: map[RunID]map[string]bool{}}
}

func (t *lockTable) link(id RunID, name string) {
	if t.byRun[id] == nil {
		t.byRun[id] = map[string]bool{}
	}
	t.byRun[id][name] = true
}

func (t *lockTable) unlink(id RunID, name string) {
	delete(t.byRun[id], name)
	if len(t.byRun[id]) == 0 {
		delete(t.byRun, id)
	}
}

// lock grants a poll lock or queues for it, first come first served. A run holds or waits once: its own threads queue
// before they come here.
func (m *Machine) lock(run RunID, c *wire.Lock) *wire.Result {
	if !validName(c.GetName()) {
		return m.invalid("the lock's name is out of bounds")
	}
	held, ok := m.locks.all[c.GetName()]
	if !ok && len(m.locks.all) >= MaxLocks {
		return m.refuse(wire.Code_CODE_TOO_LARGE, "there are too many locks")
	}
	if !ok {
		return m.granted(m.grantLock(c.GetName(), run, nil))
	}
	if isRun(held.GetRun(), run) || !c.GetWait() {
		return m.busy(held.GetRun(), "the lock is held")
	}
	if waits(held, run) < 0 {
		m.locks.all[c.GetName()] = &wire.LockState{
			Name: held.GetName(), Run: held.GetRun(), Token: held.GetToken(),
			Waiters: append(slices.Clone(held.GetWaiters()), run.Bytes()),
		}
		m.locks.link(run, c.GetName())
	}
	return &wire.Result{Code: wire.Code_CODE_QUEUED, Position: m.Position(), Holder: held.GetRun()}
}

func waits(l *wire.LockState, run RunID) int {
	return slices.IndexFunc(l.GetWaiters(), func(b []byte) bool { return isRun(b, run) })
}

func (m *Machine) grantLock(name string, run RunID, waiters [][]byte) uint64 {
	token := m.grant()
	m.locks.all[name] = &wire.LockState{Name: name, Run: run.Bytes(), Token: token, Waiters: waiters}
	m.locks.link(run, name)
	m.emit(LockGranted{Name: name, Run: run, Token: token})
	return token
}

// unlock frees a lock, or gives up a wait: then the answer has a token when the lock had been granted meanwhile, and
// the lock is still held under it (PROTOCOL.md 21).
func (m *Machine) unlock(run RunID, c *wire.Unlock) *wire.Result {
	held, ok := m.locks.all[c.GetName()]
	if c.GetToken() == 0 {
		return m.giveUp(run, held)
	}
	if !ok || held.GetToken() != c.GetToken() || !isRun(held.GetRun(), run) {
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "the lock is not held under this token")
	}
	m.freeLock(held)
	return m.ok()
}

func (m *Machine) giveUp(run RunID, held *wire.LockState) *wire.Result {
	if held != nil && isRun(held.GetRun(), run) {
		return m.granted(held.GetToken())
	}
	if held == nil || waits(held, run) < 0 {
		return m.refuse(wire.Code_CODE_NOT_FOUND, "the run neither holds the lock nor waits for it")
	}
	m.dropWaiter(held, run)
	return m.ok()
}

func (m *Machine) dropWaiter(held *wire.LockState, run RunID) {
	m.locks.all[held.GetName()] = &wire.LockState{
		Name: held.GetName(), Run: held.GetRun(), Token: held.GetToken(),
		Waiters: slices.DeleteFunc(slices.Clone(held.GetWaiters()), func(b []byte) bool { return isRun(b, run) }),
	}
	m.locks.unlink(run, held.GetName())
}

// expireLock is the leader's, after the lock's limit.
func (m *Machine) expireLock(c *wire.ExpireLock) *wire.Result {
	held, ok := m.locks.all[c.GetName()]
	if !ok || held.GetToken() != c.GetToken() {
		return m.refuse(wire.Code_CODE_NOT_HOLDER, "the lock is not held under this token")
	}
	m.freeLock(held)
	return m.ok()
}

// freeLock ends the present hold and grants the lock to the next waiter.
func (m *Machine) freeLock(held *wire.LockState) {
	holder, _ := RunIDOf(held.GetRun())
	delete(m.locks.all, held.GetName())
	m.locks.unlink(holder, held.GetName())
	m.emit(LockFreed{Name: held.GetName(), Run: holder, Token: held.GetToken()})
	if len(held.GetWaiters()) > 0 {
		next, _ := RunIDOf(held.GetWaiters()[0])
		m.grantLock(held.GetName(), next, held.GetWaiters()[1:])
	}
}

// freeLocksOf ends the holds and waits of a closed run.
func (m *Machine) freeLocksOf(run RunID) {
	for _, name := range slices.Sorted(maps.Keys(m.locks.byRun[run])) {
		held := m.locks.all[name]
		if bytes.Equal(held.GetRun(), run[:]) {
			m.freeLock(held)
		} else {
			m.dropWaiter(held, run)
		}
	}
}

// Lock returns a held poll lock; false when it is free.
func (m *Machine) Lock(name string) (*wire.LockState, bool) {
	l, ok := m.locks.all[name]
	return l, ok
}

// Locks are the held poll locks, by name.
func (m *Machine) Locks() []*wire.LockState { return sortedValues(m.locks.all) }
