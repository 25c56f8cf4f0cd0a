package state

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Snapshot returns the whole state in canonical form: equal states give equal bytes. It shares nothing that Apply
// changes and may be marshalled while Apply goes on; nobody may change it.
func (m *Machine) Snapshot() *wire.Snapshot {
	s := &wire.Snapshot{
		Version: m.protocol, Index: m.index, Base: m.base, Counter: m.counter,
		ClusterId: m.clusterID, Settings: m.settings,
		Nodes: m.Nodes(), Views: slices.Clone(m.views), Locks: m.Locks(), Claims: m.Claims(ClaimFilter{}),
		Recoveries: m.Recoveries(), Maintenance: m.Maintenance(), Clients: m.answers.snapshot(), Ended: m.Ended(),
	}
	for _, r := range m.Runs() {
		s.Runs = append(s.Runs, &wire.Run{
			Open: r.Open, Epoch: r.Epoch, Ready: r.Ready, Suspected: r.Suspected,
			Closed: r.Closed, Evidence: r.Evidence, Detail: r.Detail, Started: r.Started, Quiesced: r.Quiesced,
		})
	}
	s.ReadyViews, s.Burnt = slices.Clone(m.ready.views), slices.Clone(m.burnt)
	s.Leader, s.Term, s.UnderWay, s.UnderWaySince = m.leader, m.term, m.underWay, m.since
	s.Cache = m.cache.snapshot()
	s.Orphaned = slices.SortedFunc(maps.Values(m.claims.before), compareItems)
	return s
}

// MarshalSnapshot encodes a snapshot so that equal states have equal bytes.
func MarshalSnapshot(s *wire.Snapshot) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return b, nil
}

// Hash is the SHA-256 of the encoded canonical snapshot, index included. It costs a walk over the whole state: some
// milliseconds for ten thousand entries.
func (m *Machine) Hash() [32]byte {
	b, err := MarshalSnapshot(m.Snapshot())
	if err != nil {
		// Encoding fails only for strings that are no UTF-8, which no command can bring in.
		panic(err)
	}
	return sha256.Sum256(b)
}

// Restore makes a machine of a snapshot. It refuses one that is of a newer version, not canonical, or that breaks the
// invariants which Apply relies on. The snapshot must not be changed afterwards.
func Restore(s *wire.Snapshot) (*Machine, error) {
	if s == nil {
		return nil, errors.New("restore state: no snapshot")
	}
	if v := s.GetVersion(); v == 0 || v > wire.Protocol {
		return nil, fmt.Errorf("restore state: %w", ProtocolError{v})
	}
	if err := check(s); err != nil {
		return nil, fmt.Errorf("restore state: %w", err)
	}
	m := load(s)
	if err := sameBytes(s, m.Snapshot()); err != nil {
		return nil, fmt.Errorf("restore state: %w", err)
	}
	return m, nil
}

// load fills a machine from a checked snapshot.
func load(s *wire.Snapshot) *Machine {
	m := New()
	m.index, m.base, m.counter, m.protocol = s.GetIndex(), s.GetBase(), s.GetCounter(), s.GetVersion()
	if len(s.GetClusterId()) > 0 {
		m.clusterID = bytes.Clone(s.GetClusterId())
	}
	m.settings = cloneSettings(s.GetSettings())
	for _, n := range s.GetNodes() {
		m.nodes[n.GetName()] = n
	}
	for _, r := range s.GetRuns() {
		id, _ := RunIDOf(r.GetOpen().GetRun())
		m.runs.put(Run{
			ID: id, Open: r.GetOpen(), Epoch: r.GetEpoch(), Ready: r.GetReady(), Suspected: r.GetSuspected(),
			Closed: r.GetClosed(), Evidence: r.GetEvidence(), Detail: r.GetDetail(), Started: r.GetStarted(), Quiesced: r.GetQuiesced(),
		})
	}
	m.runs.changed = false
	m.views = slices.Clone(s.GetViews())
	m.ready.views, m.burnt = slices.Clone(s.GetReadyViews()), slices.Clone(s.GetBurnt())
	m.leader, m.term, m.underWay, m.since = s.GetLeader(), s.GetTerm(), s.GetUnderWay(), s.GetUnderWaySince()
	for _, e := range s.GetCache() {
		m.cache.put(e)
	}
	m.loadWork(s)
	return m
}

func (m *Machine) loadWork(s *wire.Snapshot) {
	for _, l := range s.GetLocks() {
		m.locks.all[l.GetName()] = l
		for _, b := range append([][]byte{l.GetRun()}, l.GetWaiters()...) {
			id, _ := RunIDOf(b)
			m.locks.link(id, l.GetName())
		}
	}
	for _, c := range s.GetClaims() {
		m.claims.put(c)
	}
	for _, o := range s.GetOrphaned() {
		m.claims.before[itemKey{o.GetComponent(), o.GetItem()}] = o
	}
	for _, r := range s.GetRecoveries() { // by position of the closing: the order of the queues
		m.put(r)
		id := keyOfRecovery(r).run
		m.recoveries.queues[guards(r)] = append(m.recoveries.queues[guards(r)], id)
		m.recoveries.of[id]++
	}
	m.recoveries.ended = slices.Clone(s.GetEnded())
	for _, f := range s.GetMaintenance() {
		m.maintenance[fenceKey{f.GetComponent(), f.GetNode()}] = f
	}
	for _, c := range s.GetClients() {
		m.answers.restore(c)
	}
}

var errNotCanonical = errors.New("the snapshot is not in canonical form")

func sameBytes(a, b *wire.Snapshot) error {
	x, err := MarshalSnapshot(a)
	if err != nil {
		return err
	}
	y, err := MarshalSnapshot(b)
	if err != nil {
		return err
	}
	if !bytes.Equal(x, y) {
		return errNotCanonical
	}
	return nil
}

// sortedValues lists a table by its names.
func sortedValues[V any](table map[string]V) []V {
	list := make([]V, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list = append(list, table[name])
	}
	return list
}
