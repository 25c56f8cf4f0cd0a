package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hashicorp/raft-wal/types"
)

// reserveName is a file beside the log that holds nothing: it keeps room for the day on which the disk is full.
const reserveName = "reserve"

// reserveSize is two segments of the log and its meta file: what a way down in order takes is a small part of that.
const reserveSize = 2*segmentSize + 1<<20

// room is what a log does about a full disk: the first write that does not fit has the reserve given up and is tried again,
// so that Raft sees no error, which it would answer with a panic or, where a segment ends, not at all. full is told, once: the
// node is to end while there still is room to end in order.
type room struct {
	path string
	full func(error)
	once sync.Once
}

// KeepRoom makes the reserve of a log in dir, which opening it does, too. Without room the error is ErrDiskFull; where there is
// no log yet nothing is done.
func KeepRoom(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "log")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	r := &room{path: filepath.Join(dir, reserveName), full: func(error) {}}
	return r.keep()
}

// keep makes the reserve, or finds it. Without room the error is ErrDiskFull, and nothing of it is left.
func (r *room) keep() error {
	if r.full == nil {
		return nil
	}
	if info, err := os.Stat(r.path); err == nil && info.Size() >= reserveSize {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(allocate(f, reserveSize), f.Close())
	}
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return errors.Join(fmt.Errorf("%w: %s takes %d MiB: %w", ErrDiskFull, r.path, reserveSize>>20, err), os.Remove(r.path))
	}
	return fmt.Errorf("keep room for the log: %w", err)
}

// leave gives the reserve up, when the log is closed: what is written behind it has that room, if it needs any.
func (r *room) leave() error {
	if r.full == nil {
		return nil
	}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("give up the room for the log: %w", err)
	}
	return nil
}

// fits tries a write, and once more with the room of the reserve when there was none for it. The write must begin anew each
// time.
func (r *room) fits(write func() error) error {
	err := write()
	if !isFull(err) || r.full == nil {
		return err
	}
	r.once.Do(func() {
		gone := os.Remove(r.path)
		r.full(errors.Join(fmt.Errorf("%w: %w", ErrDiskFull, err), gone))
	})
	return write()
}

// isFull tells whether err says that there is no room on the disk, or none for this user.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// zeros writes what keeps room, where the system has no other way.
func zeros(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
}

// roomyFiles are the files of a log with a reserve. A segment is preallocated when it is begun: that is where a disk is full.
type roomyFiles struct {
	types.VFS
	room *room
}

func (f roomyFiles) Create(dir, name string, size uint64) (file types.WritableFile, err error) {
	err = f.room.fits(func() error {
		if file, err = f.VFS.Create(dir, name, size); isFull(err) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name))) // it is there, in part
		}
		return err
	})
	return roomyFile{file, f.room}.orNone(err)
}

func (f roomyFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	file, err := f.VFS.OpenWriter(dir, name)
	return roomyFile{file, f.room}.orNone(err)
}

// roomyFile is one of them. Where a system preallocates nothing, its writes are what does not fit.
type roomyFile struct {
	types.WritableFile
	room *room
}

func (f roomyFile) orNone(err error) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f roomyFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.room.fits(func() error { n, err = f.WritableFile.WriteAt(p, off); return err })
	return n, err
}

func (f roomyFile) Sync() error { return f.room.fits(f.WritableFile.Sync) }

// roomyMeta is the meta file of a log, which holds terms and votes, too.
type roomyMeta struct {
	types.MetaStore
	room *room
}

func (m roomyMeta) CommitState(s types.PersistentState) error {
	return m.room.fits(func() error { return m.MetaStore.CommitState(s) })
}

func (m roomyMeta) SetStable(key, value []byte) error {
	return m.room.fits(func() error { return m.MetaStore.SetStable(key, value) })
}
