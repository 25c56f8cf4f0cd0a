package consensus

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// stallSteps is how many looks at an outstanding write the limit is made of.
const stallSteps = 20

// stallWatch knows whether a write has been outstanding for too long. Once it has tripped it stays so: the process is
// meant to end, and a node that comes and goes with its disk would be worse than one that is gone.
//
// The limit is counted in steps that this process was awake for: one that was stopped, or got no processor, finds when it goes
// on that hours have passed, and that says nothing of its disk.
type stallWatch struct {
	limit   time.Duration
	tripped atomic.Bool
	stalled chan struct{} // closed when it trips
	trip    func()        // called once, from a timer's goroutine

	mu     sync.Mutex
	timers map[*time.Timer]struct{}
	closed bool
}

func newStallWatch(limit time.Duration, trip func()) *stallWatch {
	return &stallWatch{limit: limit, stalled: make(chan struct{}), trip: trip, timers: map[*time.Timer]struct{}{}}
}

// during runs one write under watch.
func (w *stallWatch) during(write func() error) error {
	done := w.begin()
	defer done()
	return write()
}

func (w *stallWatch) begin() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return func() {}
	}
	step, left := w.limit/stallSteps, stallSteps
	var t *time.Timer
	t = time.AfterFunc(step, func() {
		w.mu.Lock()
		_, outstanding := w.timers[t]
		if left--; outstanding && left > 0 {
			t.Reset(step)
		}
		w.mu.Unlock()
		if outstanding && left == 0 && w.tripped.CompareAndSwap(false, true) {
			close(w.stalled)
			w.trip()
		}
	})
	w.timers[t] = struct{}{}
	return func() {
		t.Stop()
		w.mu.Lock()
		delete(w.timers, t)
		w.mu.Unlock()
	}
}

// close ends the watch: a write that hangs from now on is nobody's business any more.
func (w *stallWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for t := range w.timers {
		t.Stop()
	}
	clear(w.timers)
}

// watchedLogs times the writes of a log.
type watchedLogs struct {
	raft.LogStore
	watch *stallWatch
}

func (l *watchedLogs) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *watchedLogs) StoreLogs(logs []*raft.Log) error {
	return l.watch.during(func() error { burden(); return l.LogStore.StoreLogs(logs) })
}

func (l *watchedLogs) DeleteRange(lo, hi uint64) error {
	return l.watch.during(func() error { return l.LogStore.DeleteRange(lo, hi) })
}

// IsMonotonic passes on what the log says of itself.
func (l *watchedLogs) IsMonotonic() bool { return monotonic(l.LogStore) }

// watchedStable times the writes of terms and votes.
type watchedStable struct {
	raft.StableStore
	watch *stallWatch
}

func (s *watchedStable) Set(key, val []byte) error {
	return s.watch.during(func() error { return s.StableStore.Set(key, val) })
}

func (s *watchedStable) SetUint64(key []byte, val uint64) error {
	return s.watch.during(func() error { return s.StableStore.SetUint64(key, val) })
}
