package consensus

import (
	"errors"
	"fmt"
	"os"
	"time"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

// endSealed begins a new segment of a log whose last one says that it is full. The library (raft-wal v0.4.0) writes first that
// and then, on its own, in the meta file that another one begins. Whoever ends in between, in order or not, has a last segment
// that the library takes for open and that takes no entry any more: such a node would follow, vote, and never store anything
// again. It is the same when the write that fills the segment was torn: the entries are taken back, the mark is not.
func endSealed(dir string, meta types.MetaStore, filer types.SegmentFiler, size int) error {
	state, err := meta.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return err
	}
	tail := &state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	w, err := filer.RecoverTail(*tail)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was not begun yet
	}
	if err != nil {
		return fmt.Errorf("read the last segment: %w", err)
	}
	sealed, _, err := w.Sealed()
	last := w.LastIndex()
	if err = errors.Join(err, w.Close()); err != nil || !sealed {
		return err
	}
	if last == 0 { // its first write was torn: the library makes it anew
		return filer.Delete(tail.BaseIndex, tail.ID)
	}
	// The index that it may end with is not relied on: see shortened.
	tail.SealTime, tail.MaxIndex, tail.IndexStart = time.Now(), last, 0
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: last + 1, MinIndex: last + 1, SizeLimit: uint32(size),
		Codec: wal.CodecBinaryV1, CreateTime: time.Now(),
	})
	state.NextSegmentID++
	return meta.CommitState(state) // the file is made when the log is opened
}
