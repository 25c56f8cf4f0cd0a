package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

// tight is a disk with room for so many more bytes of files that are made, and what the reserve gives back.
type tight struct {
	types.VFS
	room    atomic.Int64
	reserve string
}

func (d *tight) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := d.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.reserve); errors.Is(err, fs.ErrNotExist) || d.room.Add(-int64(size)) >= 0 {
		return f, nil
	}
	return nil, errors.Join(f.Close(), &fs.PathError{Op: "fallocate", Path: name, Err: syscall.ENOSPC})
}

// TestFullDiskAtTheEndOfASegment: the disk has no room for the next segment, of which the library says nothing but a line of its
// own: the log gives its reserve up, tells of it once, and goes on; nothing is lost, and after a restart it takes its room again.
func TestFullDiskAtTheEndOfASegment(t *testing.T) {
	dir := t.TempDir()
	disk := &tight{VFS: walfs.New(), reserve: filepath.Join(dir, reserveName)}
	const segment = 64 << 10
	disk.room.Store(2 * segment)
	told := make(chan error, 10)
	stores := diskStores{files: disk, segment: segment}
	s, err := stores.open(dir, hclog.NewNullLogger(), func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(disk.reserve); err != nil || info.Size() != reserveSize {
		t.Fatalf("the reserve: %v, %v", info, err)
	}
	const entries = 60
	for i := uint64(1); i <= entries; i++ { // some eight segments
		l := &raft.Log{Index: i, Term: 1, Data: make([]byte, 8<<10), AppendedAt: time.Unix(1, 0)}
		if err := s.logs.StoreLog(l); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
	if err := <-told; !errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("told %v", err)
	}
	if err := s.stable.SetUint64([]byte("term"), 2); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(disk.reserve); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the reserve is there: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if len(told) > 0 {
		t.Errorf("told once more: %v", <-told)
	}

	disk.room.Store(100 * segment)
	s, err = stores.open(dir, hclog.NewNullLogger(), func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.logs.LastIndex()
	if err != nil || last != entries {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	if info, err := os.Stat(disk.reserve); err != nil || info.Size() != reserveSize {
		t.Errorf("the reserve after a restart: %v, %v", info, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(disk.reserve); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is written behind the log has no room: %v", err)
	}
}

// TestWritesThatDoNotFit: each kind of write is tried once more with the room of the reserve, and told of once.
func TestWritesThatDoNotFit(t *testing.T) {
	for what, use := range map[string]func(r *room, fail *failing) error{
		"a segment": func(r *room, fail *failing) error {
			_, err := (roomyFiles{fail, r}).Create(t.TempDir(), "x", 8)
			return err
		},
		"an entry": func(r *room, fail *failing) error { _, err := (roomyFile{fail, r}).WriteAt([]byte("x"), 0); return err },
		"a sync":   func(r *room, fail *failing) error { return (roomyFile{fail, r}).Sync() },
		"the meta": func(r *room, fail *failing) error { return (roomyMeta{fail, r}).CommitState(types.PersistentState{}) },
		"a vote":   func(r *room, fail *failing) error { return (roomyMeta{fail, r}).SetStable(nil, nil) },
	} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
			told := 0
			r := &room{path: filepath.Join(t.TempDir(), reserveName), full: func(error) { told++ }}
			if err := r.keep(); err != nil {
				t.Fatal(err)
			}
			fail := &failing{left: 1, err: fmt.Errorf("write: %w", errno)}
			if err := use(r, fail); err != nil || told != 1 || fail.calls != 2 {
				t.Errorf("%s, %v: %v, told %d times, %d calls", what, errno, err, told, fail.calls)
			}
			if _, err := os.Stat(r.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the reserve is there: %v", what, err)
			}
			fail.left = 2 // full again, and nothing is left to give
			if err := use(r, fail); !errors.Is(err, errno) || told != 1 {
				t.Errorf("%s: with nothing left: %v, told %d times", what, err, told)
			}
		}
		other := &failing{left: 1, err: syscall.EIO}
		r := &room{path: filepath.Join(t.TempDir(), reserveName), full: func(error) { t.Error("told of another error") }}
		if err := use(r, other); !errors.Is(err, syscall.EIO) || other.calls != 1 {
			t.Errorf("%s: another error: %v, %d calls", what, err, other.calls)
		}
	}
}

// failing fails so many calls.
type failing struct {
	types.VFS
	types.WritableFile
	types.MetaStore
	left, calls int
	err         error
}

func (f *failing) call() error {
	if f.calls++; f.left > 0 {
		f.left--
		return f.err
	}
	return nil
}

func (f *failing) Create(dir, name string, _ uint64) (types.WritableFile, error) {
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		return nil, err
	}
	return f, f.call()
}

func (f *failing) WriteAt(p []byte, _ int64) (int, error)  { return len(p), f.call() }
func (f *failing) Sync() error                             { return f.call() }
func (f *failing) CommitState(types.PersistentState) error { return f.call() }
func (f *failing) SetStable([]byte, []byte) error          { return f.call() }
func (f *failing) Close() error                            { return nil }
