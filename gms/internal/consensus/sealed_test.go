package consensus

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// A node that ended when its last segment was full, and before the next one was begun, goes on; also when the write that filled
// it was torn, which takes that write back.
func TestDiskLogGoesOnBehindASegmentThatWasFull(t *testing.T) {
	const entry = 100
	for name, c := range map[string]struct {
		before int // entries that are there already
		torn   bool
	}{
		"whole":            {before: 3},
		"torn":             {before: 3, torn: true},
		"first":            {},
		"first write torn": {torn: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, stores := t.TempDir(), diskStores{segment: 8 << 10}
			var want []uint64
			again := func(entries int) {
				t.Helper()
				s, err := stores.open(dir, hclog.NewNullLogger(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(want) > 0 {
					readWhole(t, s.logs, want, entry)
				}
				for range entries {
					want = append(want, 1)
					if err := s.logs.StoreLog(&raft.Log{Index: uint64(len(want)), Term: 1, Data: bytes.Repeat([]byte{1}, entry)}); err != nil {
						t.Fatalf("entry %d: %v", len(want), err)
					}
				}
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
			}
			again(c.before)
			added := fill(t, filepath.Join(dir, "log"), uint64(c.before+1), entry, c.torn)
			if !c.torn {
				for range added {
					want = append(want, 1)
				}
			}
			for range 3 {
				again(50) // more than half a segment
			}
			again(0)
		})
	}
}

// fill writes so many entries at once that the last segment of the log is full, and tells nobody else, as if the process had
// ended with that. Torn: one byte of them has not reached the disk.
func fill(t *testing.T, dir string, from uint64, size int, torn bool) (added int) {
	t.Helper()
	meta, filer := &metadb.BoltMetaDB{}, segment.NewFiler(dir, fs.New())
	state, err := meta.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	tail := state.Segments[len(state.Segments)-1]
	w, err := filer.RecoverTail(tail)
	if err != nil {
		t.Fatal(err)
	}
	var entries []types.LogEntry
	for total := 0; total < int(tail.SizeLimit); added++ {
		var b bytes.Buffer
		l := raft.Log{Index: from + uint64(added), Term: 1, Data: bytes.Repeat([]byte{1}, size)}
		if err := (&wal.BinaryCodec{}).Encode(&l, &b); err != nil {
			t.Fatal(err)
		}
		entries, total = append(entries, types.LogEntry{Index: l.Index, Data: b.Bytes()}), total+b.Len()
	}
	if err := w.Append(entries); err != nil {
		t.Fatal(err)
	}
	if sealed, _, err := w.Sealed(); !sealed || err != nil {
		t.Fatalf("it is not full: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := meta.Close(); err != nil {
		t.Fatal(err)
	}
	if torn {
		path := filepath.Join(dir, segment.FileName(tail))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndex(b, bytes.Repeat([]byte{1}, size))
		b[at] = 2
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return added
}
