package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

const (
	segmentSize   = 4 << 20          // preallocated by each segment of the log
	keptSnapshots = 2                // the newest, and the one before in case it is damaged
	openLimit     = 10 * time.Second // for another process to let go of the log
	cachedEntries = 512
)

// Stores opens the log, the votes and the snapshots of a node. The only implementations are the disk (the default) and
// [MemStores].
type Stores interface {
	// open opens or makes them. full is called at most once, from any goroutine, when something did not fit on the disk; it
	// must not block. nil: no room is kept for that.
	open(dir string, log hclog.Logger, full func(error)) (*storage, error)
}

// storage is what a running Raft keeps its state in.
type storage struct {
	logs   raft.LogStore
	stable raft.StableStore
	snaps  raft.SnapshotStore
	close  func() error
}

type diskStores struct {
	limit   time.Duration // instead of openLimit, unless zero
	files   types.VFS     // instead of the system's, unless nil: tests cut the power
	segment int           // instead of segmentSize, unless zero
}

// open opens or makes the files.
func (d diskStores) open(dir string, log hclog.Logger, full func(error)) (*storage, error) {
	walDir := filepath.Join(dir, "log")
	if err := os.MkdirAll(walDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the log: %w", err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, log)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots: %w", err)
	}
	if err := awaitRelease(walDir, or(d.limit, openLimit)); err != nil {
		return nil, err
	}
	room := &room{path: filepath.Join(dir, reserveName), full: full}
	if err := room.keep(); err != nil {
		return nil, err
	}
	w, meta, err := d.openWAL(walDir, log, room)
	if err != nil {
		return nil, err
	}
	closeAll := func() error { return errors.Join(w.Close(), meta.Close(), room.leave()) }
	return &storage{logs: w, stable: w, snaps: snaps, close: closeAll}, nil
}

// awaitRelease waits until no other process has the log open. The meta file is locked by the process that has, and the
// library would wait for it for ever and could not be told to give up; what it opens after all would have no owner. Between
// this look and the opening nobody comes: the home, in which the log is, has one process at a time.
func awaitRelease(dir string, limit time.Duration) error {
	file := filepath.Join(dir, metadb.FileName)
	if _, err := os.Stat(file); err != nil {
		return nil // not yet made; the opening says what else is wrong
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: limit})
	if errors.Is(err, bbolt.ErrTimeout) {
		return fmt.Errorf("open the log in %s: another process has had it open for %v", dir, limit)
	}
	if err != nil {
		return nil // a damaged file is for the library to mend or to name
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("look at the log in %s: %w", dir, err)
	}
	return nil
}

func (d diskStores) openWAL(dir string, log hclog.Logger, room *room) (*wal.WAL, types.MetaStore, error) {
	meta := roomyMeta{&metadb.BoltMetaDB{}, room}
	files := d.files
	if files == nil {
		files = fs.New()
	}
	filer := shortened{segment.NewFiler(dir, roomyFiles{files, room})}
	if err := endSealed(dir, meta, filer, or(d.segment, segmentSize)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the log in %s: %w", dir, err), meta.Close())
	}
	w, err := wal.Open(dir, wal.WithSegmentSize(or(d.segment, segmentSize)), wal.WithMetaStore(meta), wal.WithSegmentFiler(filer), wal.WithLogger(log))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the log in %s: %w", dir, err), meta.Close())
	}
	return w, meta, nil
}
