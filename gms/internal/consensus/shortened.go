package consensus

import (
	"fmt"

	"github.com/hashicorp/raft-wal/types"
)

// shortened opens segments of the log whose end was taken back. The library (raft-wal v0.4.0) seals such a segment without
// the index that every other sealed one ends with, and cannot read a single entry of it once it has been closed: a node
// that has deleted a conflicting end would never start again. Its frames are whole, so the index is made by reading them,
// as for a tail after a crash.
type shortened struct{ types.SegmentFiler }

// Open implements types.SegmentFiler. Nothing is ever appended to what it opens.
func (s shortened) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	if info.IndexStart != 0 {
		return s.SegmentFiler.Open(info)
	}
	w, err := s.RecoverTail(info)
	if err != nil {
		return nil, fmt.Errorf("read the index of a shortened segment of the log: %w", err)
	}
	if last := w.LastIndex(); last < info.MaxIndex {
		return nil, fmt.Errorf("a shortened segment of the log ends at %d, not at %d: %w", last, info.MaxIndex, types.ErrCorrupt)
	}
	return w, nil
}
