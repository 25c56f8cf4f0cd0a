package consensus

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// machine stands between Raft and the FSM and knows how far the FSM has come.
type machine struct {
	fsm FSM

	restored atomic.Int64 // nanoseconds that the last Restore took

	mu      sync.Mutex
	applied uint64
	changed chan struct{} // closed and replaced when applied grows
}

func newMachine(f FSM) *machine {
	return &machine{fsm: f, changed: make(chan struct{})}
}

func (m *machine) advance(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = index
	close(m.changed)
	m.changed = make(chan struct{})
}

// position is the index of the last entry that the FSM has consumed, and a channel that is closed at the next one.
func (m *machine) position() (uint64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applied, m.changed
}

// Apply is Raft's; it sees entries of proposers only.
func (m *machine) Apply(l *raft.Log) any {
	answer := m.fsm.Apply(l.Index, l.Data)
	m.advance(l.Index)
	return answer
}

// Snapshot is Raft's.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	w, err := m.fsm.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("capture the state: %w", err)
	}
	index, _ := m.position()
	return &snapshot{index: index, state: w}, nil
}

// Restore is Raft's.
func (m *machine) Restore(rc io.ReadCloser) error {
	defer rc.Close()
	begun := time.Now()
	defer func() { m.restored.Store(int64(time.Since(begun))) }()
	r := bufio.NewReader(rc)
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("read the head of the snapshot: %w", err)
	}
	if err := m.fsm.Restore(r); err != nil {
		return fmt.Errorf("restore the state: %w", err)
	}
	m.advance(binary.BigEndian.Uint64(head[:]))
	return nil
}

// snapshot is the state at one index, written as the index and then the FSM's own bytes. Raft knows only the index of
// the last entry of any kind, which the FSM may never have seen.
type snapshot struct {
	index uint64
	state io.WriterTo
}

func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.write(sink); err != nil {
		_ = sink.Cancel() // the error that counts is err
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return sink.Close()
}

func (s *snapshot) write(sink io.Writer) error {
	w := bufio.NewWriterSize(sink, 64<<10)
	if _, err := w.Write(binary.BigEndian.AppendUint64(nil, s.index)); err != nil {
		return err
	}
	if _, err := s.state.WriteTo(w); err != nil {
		return err
	}
	return w.Flush()
}

func (s *snapshot) Release() {}
