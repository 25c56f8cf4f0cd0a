package kept

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Memory is a Store of one process. The zero value is empty and ready; it is safe for concurrent use.
type Memory struct {
	Protocol uint32 // that is written; 0: any. Not to be changed while it is in use

	mu      sync.Mutex
	records map[string]Record
	version uint64
	err     error
}

// Fail has everything but Local answer err from now on; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, key string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(key), m.err
}

// Local implements Store.
func (m *Memory) Local(key string) Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(key)
}

func (m *Memory) of(key string) Record {
	r := m.records[key]
	return Record{Key: key, Value: slices.Clone(r.Value), Version: r.Version}
}

// List implements Store.
func (m *Memory) List(_ context.Context, prefix string) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Record
	for key := range m.records {
		if strings.HasPrefix(key, prefix) {
			list = append(list, m.of(key))
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return list, m.err
}

// Commit implements Store.
func (m *Memory) Commit(_ context.Context, changes ...Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, c := range changes {
		if m.Protocol != 0 && c.Protocol > m.Protocol {
			return ErrProtocol
		}
		if m.records[c.Key].Version != c.Version {
			return ErrConflict
		}
	}
	if m.records == nil {
		m.records = map[string]Record{}
	}
	m.version++
	for _, c := range changes {
		if c.Gone {
			delete(m.records, c.Key)
			continue
		}
		m.records[c.Key] = Record{Key: c.Key, Value: slices.Clone(c.Value), Version: m.version}
	}
	return nil
}
