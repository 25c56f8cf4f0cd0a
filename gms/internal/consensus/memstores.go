package consensus

import (
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

func (m *MemStores) wait() {
	m.mu.Lock()
	stalled := m.stalled
	m.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (m *MemStores) open(string, hclog.Logger) (*storage, error) {
	logs := &memLogs{InmemStore: m.logs, stores: m}
	return &storage{logs: logs, stable: m.logs, snaps: m.snaps, close: func() error { return nil }}, nil
}

type memLogs struct {
	*raft.InmemStore
	stores *MemStores
}

func (l *memLogs) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *memLogs) StoreLogs(logs []*raft.Log) error {
	l.stores.wait()
	return l.InmemStore.StoreLogs(logs)
}
