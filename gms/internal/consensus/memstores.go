package consensus

import (
	"errors"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// MemStores keeps the log in memory, for tests in which no real file may be touched. It outlives the Node that uses it,
// so that a second Node with the same MemStores is a restart with the state kept. One Node at a time may use it.
type MemStores struct {
	logs  *raft.InmemStore
	snaps *raft.InmemSnapshotStore

	mu      sync.Mutex
	stalled chan struct{} // closed by Resume; nil while writes are let through
	crashes int
}

// NewMemStores makes empty stores.
func NewMemStores() *MemStores {
	return &MemStores{logs: raft.NewInmemStore(), snaps: raft.NewInmemSnapshotStore()}
}

// Stall makes every later write of the log hang until Resume, as a disk does that has gone away.
func (m *MemStores) Stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled == nil {
		m.stalled = make(chan struct{})
	}
}

// Resume lets the hanging writes and all later ones go on.
func (m *MemStores) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled != nil {
		close(m.stalled)
		m.stalled = nil
	}
}

// Crash is the death of the process that has the stores open: what it still writes never arrives. Whoever opens them
// afterwards finds what was written before.
func (m *MemStores) Crash() {
	m.mu.Lock()
	m.crashes++
	m.mu.Unlock()
	m.Resume() // for those who hang in it
}

// errCrashed is what the log of a process that has died answers.
var errCrashed = errors.New("the process that wrote this has died")

func (m *MemStores) wait() {
	m.mu.Lock()
	stalled := m.stalled
	m.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (m *MemStores) open(string, hclog.Logger, func(error)) (*storage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &memHandle{stores: m, crashes: m.crashes}
	return &storage{
		logs: &memLogs{InmemStore: m.logs, memHandle: h}, stable: &memStable{InmemStore: m.logs, memHandle: h},
		snaps: &memSnaps{InmemSnapshotStore: m.snaps, memHandle: h}, close: func() error { return nil },
	}, nil
}

// memHandle is one opening of the stores.
type memHandle struct {
	stores  *MemStores
	crashes int // at the opening
}

// write does one write, unless the process that has this handle has died.
func (h *memHandle) write(f func() error) error {
	h.stores.mu.Lock()
	defer h.stores.mu.Unlock()
	if h.stores.crashes != h.crashes {
		return errCrashed
	}
	return f()
}

type memLogs struct {
	*raft.InmemStore
	*memHandle
}

func (l *memLogs) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *memLogs) StoreLogs(logs []*raft.Log) error {
	l.stores.wait()
	return l.write(func() error { return l.InmemStore.StoreLogs(logs) })
}

func (l *memLogs) DeleteRange(lo, hi uint64) error {
	return l.write(func() error { return l.InmemStore.DeleteRange(lo, hi) })
}

// memStable loses the writes of the dead without a word: Raft takes an error here for a broken disk, and panics.
type memStable struct {
	*raft.InmemStore
	*memHandle
}

func (s *memStable) Set(key, val []byte) error {
	_ = s.write(func() error { return s.InmemStore.Set(key, val) })
	return nil
}

func (s *memStable) SetUint64(key []byte, val uint64) error {
	_ = s.write(func() error { return s.InmemStore.SetUint64(key, val) })
	return nil
}

type memSnaps struct {
	*raft.InmemSnapshotStore
	*memHandle
}

func (s *memSnaps) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, cIndex uint64, t raft.Transport) (sink raft.SnapshotSink, err error) {
	err = s.write(func() (err error) {
		sink, err = s.InmemSnapshotStore.Create(v, index, term, c, cIndex, t)
		return err
	})
	return sink, err
}
