package gms

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of the entries that are kept for members that are fed. Who is further behind gets a snapshot.
const (
	keptEntries    = 4096
	keptEntryBytes = 4 << 20
)

// keptEntry is one entry of the log, and the index of the one before.
type keptEntry struct {
	before, index uint64
	data          []byte
}

// kept are the last entries that this replica has applied, in order and without gaps.
type kept struct {
	floor uint64 // index of the last entry that is not kept any more
	list  []keptEntry
	size  int
}

func (k *kept) add(e keptEntry) {
	k.list = append(k.list, e)
	k.size += len(e.data)
	for len(k.list) > keptEntries || k.size > keptEntryBytes && len(k.list) > 1 {
		k.floor = k.list[0].index
		k.size -= len(k.list[0].data)
		k.list[0] = keptEntry{}
		k.list = k.list[1:]
	}
}

// restored forgets all: a snapshot brings no entries.
func (k *kept) restored(index uint64) { *k = kept{floor: index} }

// since lists the entries after an index, of at most limit bytes unless the first is larger; false when some are not kept
// any more.
func (k *kept) since(index uint64, limit int) (list []keptEntry, ok bool) {
	if index < k.floor {
		return nil, false
	}
	first := sort.Search(len(k.list), func(i int) bool { return k.list[i].index > index })
	for _, e := range k.list[first:] {
		if limit -= len(e.data); limit < 0 && len(list) > 0 {
			break
		}
		list = append(list, e)
	}
	return list, true
}

// entriesSince lists kept entries after an index, for a member that is fed; false when it needs a snapshot. The channel is
// closed at the next entry.
func (r *replica) entriesSince(index uint64, limit int) ([]keptEntry, bool, <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list, ok := r.kept.since(index, limit)
	return list, ok, r.changed
}

// snapshot encodes the state, and says of which index it is.
func (r *replica) snapshot() (data []byte, index uint64, err error) {
	r.mu.RLock()
	s := r.m.Snapshot()
	r.mu.RUnlock()
	var b bytes.Buffer
	_, err = snapshotWriter{s}.WriteTo(&b)
	return b.Bytes(), s.GetIndex(), err
}

// What ends a feed.
var (
	errOwnLog  = errors.New("the own log brings the entries now")
	errFeedGap = errors.New("the feeder left entries out")
)

// beginFeed lets a feeder bring the next entries instead of the own log; the own log takes over with its next one.
func (r *replica) beginFeed() (index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownLog = false
	return r.m.Index()
}

// feedEntry takes one entry from a feeder. One that is known already changes nothing. A feeder whose log has no entry where
// this replica's has one follows another history: ErrDiverged.
func (r *replica) feedEntry(e *wire.FedEntry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch at := r.m.Index(); {
	case r.ownLog:
		return errOwnLog
	case e.GetIndex() <= at:
		return nil
	case e.GetBefore() > at:
		return errFeedGap
	case e.GetBefore() < at:
		return fmt.Errorf("%w: no entry %d in the log of the feeder", ErrDiverged, at)
	}
	r.apply(e.GetIndex(), e.GetData())
	return nil
}

// feedSnapshot takes a whole state from a feeder.
func (r *replica) feedSnapshot(data []byte) error {
	m, err := decodeSnapshot(data)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ownLog {
		return errOwnLog
	}
	r.install(m)
	return nil
}

// followsLog tells whether the last entry came from the own log.
func (r *replica) followsLog() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ownLog
}

func (r *replica) index() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m.Index()
}
