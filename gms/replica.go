package gms

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// replica is this node's copy of the replicated state: consensus applies entries to it, or a feeder does while this node is
// not in the Raft configuration (feed.go); everybody else reads.
type replica struct {
	mu      sync.RWMutex
	m       *state.Machine
	changed chan struct{}     // closed and replaced after each entry
	feed    []fed             // changes that the signal maker has not taken yet
	beyond  bool              // nothing is applied and nothing kept any more: the group writes what is not read here
	mark    state.AuditMarked // the last one
	endings *endings
	recent  recent                   // changes of the state cache
	written map[string]chan struct{} // by component, while somebody waits: closed at the next entry that changes its entries
	kept    kept                     // entries for members that are fed
	ownLog  bool                     // the last entry came from the own log; nobody feeds this replica any more
	clock   Clock
	failed  func(error)                                                  // a reason why the process must end
	applied func(index uint64, m *state.Machine, changes []state.Change) // may be nil; see seam.Hooks
}

// fed is what one entry changed.
type fed struct {
	position uint64
	changes  []state.Change
	gap      bool // a snapshot was installed: what lies between is not known as changes
}

func newReplica(clock Clock, failed func(error)) *replica {
	return &replica{m: state.New(), changed: make(chan struct{}), written: make(map[string]chan struct{}), endings: newEndings(), clock: clock, failed: failed}
}

// Apply takes one committed entry; called by consensus only. The answer is []*wire.Result, nil for an entry that a feeder
// has brought already. From here on the own log is where entries come from.
func (r *replica) Apply(index uint64, data []byte) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownLog = r.ownLog || index >= r.m.Index() // it has caught up with what a feeder brought
	if index <= r.m.Index() {
		return nil
	}
	return r.apply(index, data)
}

// apply takes the next entry; with r.mu held.
func (r *replica) apply(index uint64, data []byte) []*wire.Result {
	if r.beyond {
		return nil
	}
	e := &wire.Entry{}
	if err := proto.Unmarshal(data, e); err != nil {
		// The same bytes fail everywhere in the same way: an entry without commands.
		e = &wire.Entry{Version: r.m.Protocol()}
	}
	r.kept.add(keptEntry{before: r.m.Index(), index: index, data: data})
	results, changes := r.m.Apply(index, e)
	if err := r.m.Beyond(); err != nil {
		r.beyond = true
		r.failed(outdated(err))
		return nil
	}
	for _, c := range changes {
		switch c := c.(type) {
		case state.AuditMismatch:
			r.failed(fmt.Errorf("%w at position %d", ErrDiverged, c.Position))
		case state.AuditMarked:
			r.mark = c
		}
	}
	r.endings.note(r.m, changes, r.clock.Now())
	r.recent.add(changes)
	r.tellWritten(changes)
	if r.applied != nil {
		r.applied(index, r.m, changes)
	}
	r.tell(fed{position: r.m.Position(), changes: changes})
	return results
}

// tell wakes the readers; with r.mu held.
func (r *replica) tell(f fed) {
	if len(f.changes) > 0 || f.gap {
		r.feed = append(r.feed, f)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Snapshot captures the state; called by consensus only.
func (r *replica) Snapshot() (io.WriterTo, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.m.Beyond(); err != nil {
		return nil, err
	}
	return snapshotWriter{r.m.Snapshot()}, nil
}

type snapshotWriter struct{ s *wire.Snapshot }

func (w snapshotWriter) WriteTo(to io.Writer) (int64, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(w.s)
	if err != nil {
		return 0, fmt.Errorf("encode snapshot: %w", err)
	}
	n, err := to.Write(data)
	return int64(n), err
}

// maxSnapshot bounds what Restore reads; the state itself is bounded far below.
const maxSnapshot = 1 << 30

// Restore replaces the state; called by consensus only. A snapshot that is behind what a feeder has brought changes
// nothing.
func (r *replica) Restore(from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, maxSnapshot+1))
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	m, err := decodeSnapshot(data)
	var newer state.ProtocolError
	if errors.As(err, &newer) { // what tells of it must not try older snapshots in its place
		r.failed(outdated(newer))
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownLog = true
	r.install(m)
	return nil
}

func decodeSnapshot(data []byte) (*state.Machine, error) {
	if len(data) > maxSnapshot {
		return nil, errors.New("snapshot is larger than 1 GiB")
	}
	s := &wire.Snapshot{}
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	m, err := state.Restore(s)
	if err != nil {
		return nil, fmt.Errorf("restore state: %w", err)
	}
	return m, nil
}

// install replaces the state, but not by an earlier one; with r.mu held.
func (r *replica) install(m *state.Machine) {
	if m.Index() < r.m.Index() {
		return
	}
	r.m = m
	r.endings.restored(r.clock.Now(), m.Position())
	r.recent.restored(m.Position())
	r.tellAllWritten()
	r.kept.restored(m.Index())
	if r.applied != nil {
		r.applied(m.Index(), m, nil)
	}
	r.tell(fed{position: m.Position(), gap: true})
}

// read calls f with the state; f must not keep it.
func (r *replica) read(f func(m *state.Machine)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.m)
}

// watch is read, with a channel that is closed at the next entry after what f saw.
func (r *replica) watch(f func(m *state.Machine)) <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.m)
	return r.changed
}

// await blocks until ok is true of the state, or ctx ends.
func (r *replica) await(ctx context.Context, ok func(m *state.Machine) bool) error {
	for {
		done := false
		changed := r.watch(func(m *state.Machine) { done = ok(m) })
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// audited is the last Raft index applied and the last position marked for a comparison of the replicas.
func (r *replica) audited() (index uint64, mark state.AuditMarked) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m.Index(), r.mark
}

// changesSince lists the changes of a component's entries after a position; false when some are not known any more.
func (r *replica) changesSince(component string, from uint64) ([]CacheChange, bool, <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list, ok := r.recent.since(component, from)
	return list, ok, r.changed
}

// leaseWait is how long it takes until the lease of every earlier holder of a fence has run out, and a channel that is
// closed at the next entry, which may prove one ended.
func (r *replica) leaseWait(component string, dead state.RunID, l leases) (time.Duration, <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.endings.wait(r.m, component, dead, r.clock.Now(), l), r.changed
}

// take hands over the changes since the last call, and a channel that is closed at the next entry.
func (r *replica) take() ([]fed, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.feed
	r.feed = nil
	return f, r.changed
}

// open finds an open run of a node.
func (r *replica) open(node string) (run state.Run, ok bool) {
	r.read(func(m *state.Machine) { run, ok = openRunOf(m, node) })
	return run, ok
}

func openRunOf(m *state.Machine, node string) (state.Run, bool) {
	n, ok := m.Node(node)
	if !ok {
		return state.Run{}, false
	}
	id, _ := state.RunIDOf(n.GetLastRun())
	run, ok := m.Run(id)
	return run, ok && run.IsOpen()
}

func hexID(b []byte) string { return hex.EncodeToString(b) }

// parseRun reads a run's id as signals show it.
func parseRun(s string) (state.RunID, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return state.RunID{}, fmt.Errorf("%q is not a run id: 32 hex digits", s)
	}
	return state.RunID(b), nil
}
