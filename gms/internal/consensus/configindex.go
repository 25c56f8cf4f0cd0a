package consensus

import (
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

const keptConfigs = 64 // of which at most the last few can still be cut off the log

// configIndex knows at which index the latest configuration was logged. Raft wants it named with every change, but tells
// it to nobody; it shows in what Raft reads and writes.
type configIndex struct {
	mu       sync.Mutex
	logged   []uint64 // ascending
	snapshot uint64   // of the newest snapshot
}

func (c *configIndex) latest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.logged); n > 0 {
		return max(c.logged[n-1], c.snapshot)
	}
	return c.snapshot
}

// saw looks at an entry that Raft reads or has written.
func (c *configIndex) saw(l *raft.Log) {
	if l.Type != raft.LogConfiguration {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := slices.BinarySearch(c.logged, l.Index)
	if known {
		return
	}
	c.logged = slices.Insert(c.logged, at, l.Index)
	if len(c.logged) > keptConfigs {
		c.logged = slices.Delete(c.logged, 0, 1)
	}
}

// cut forgets what a cut of the log's end has undone.
func (c *configIndex) cut(from uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := slices.BinarySearch(c.logged, from)
	c.logged = c.logged[:at]
}

func (c *configIndex) restored(index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshot = max(c.snapshot, index)
}

// notedLogs shows a log's entries to a configIndex.
type notedLogs struct {
	raft.LogStore
	configs *configIndex
}

func (l *notedLogs) GetLog(index uint64, log *raft.Log) error {
	if err := l.LogStore.GetLog(index, log); err != nil {
		return err
	}
	l.configs.saw(log)
	return nil
}

func (l *notedLogs) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *notedLogs) StoreLogs(logs []*raft.Log) error {
	if err := l.LogStore.StoreLogs(logs); err != nil {
		return err
	}
	for _, log := range logs {
		l.configs.saw(log)
	}
	return nil
}

// DeleteRange tells a cut of the end from the removal of what a snapshot holds.
func (l *notedLogs) DeleteRange(lo, hi uint64) error {
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if err := l.LogStore.DeleteRange(lo, hi); err != nil {
		return err
	}
	if hi >= last {
		l.configs.cut(lo)
	}
	return nil
}

// IsMonotonic passes on what the log says of itself.
func (l *notedLogs) IsMonotonic() bool { return monotonic(l.LogStore) }

// monotonic asks as Raft does, by assertion: a log that allows no gaps is cut differently.
func monotonic(l raft.LogStore) bool {
	m, ok := l.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// notedSnapshots shows the snapshots that are opened, and those that are completed, to a configIndex.
type notedSnapshots struct {
	raft.SnapshotStore
	configs *configIndex
}

func (s *notedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.SnapshotStore.Open(id)
	if err == nil {
		s.configs.restored(meta.ConfigurationIndex)
	}
	return meta, r, err
}

func (s *notedSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, c, at, t)
	if err != nil {
		return nil, err
	}
	return &notedSink{SnapshotSink: sink, done: func() { s.configs.restored(at) }}, nil
}

type notedSink struct {
	raft.SnapshotSink
	done func()
}

func (s *notedSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	s.done()
	return nil
}
