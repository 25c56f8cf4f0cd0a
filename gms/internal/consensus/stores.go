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
	open(dir string, log hclog.Logger) (*storage, error)
}

// storage is what a running Raft keeps its state in.
type storage struct {
	logs   raft.LogStore
	stable raft.StableStore
	snaps  raft.SnapshotStore
	close  func() error
}

type diskStores struct {
	limit time.Duration // instead of openLimit, unless zero
}

// open opens or makes the files. The meta file is locked by the process that has it open and the library would wait for
// it for ever, so the wait is bounded here.
func (d diskStores) open(dir string, log hclog.Logger) (*storage, error) {
	walDir := filepath.Join(dir, "log")
	if err := os.MkdirAll(walDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the log: %w", err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, log)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots: %w", err)
	}
	w, meta, err := openWAL(walDir, or(d.limit, openLimit), log)
	if err != nil {
		return nil, err
	}
	closeAll := func() error { return errors.Join(w.Close(), meta.Close()) }
	return &storage{logs: w, stable: w, snaps: snaps, close: closeAll}, nil
}

type openedWAL struct {
	wal *wal.WAL
	err error
}

func openWAL(dir string, limit time.Duration, log hclog.Logger) (*wal.WAL, *metadb.BoltMetaDB, error) {
	meta := &metadb.BoltMetaDB{}
	opened := make(chan openedWAL, 1)
	go func() {
		files := shortened{segment.NewFiler(dir, fs.New())}
		w, err := wal.Open(dir, wal.WithSegmentSize(segmentSize), wal.WithMetaStore(meta), wal.WithSegmentFiler(files), wal.WithLogger(log))
		opened <- openedWAL{w, err}
	}()
	select {
	case o := <-opened:
		if o.err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open the log in %s: %w", dir, o.err), meta.Close())
		}
		return o.wal, meta, nil
	case <-time.After(limit):
		go func() { // gives back what it gets too late
			if o := <-opened; o.err == nil {
				_ = errors.Join(o.wal.Close(), meta.Close())
			}
		}()
		return nil, nil, fmt.Errorf("open the log in %s: another process has had it open for %v", dir, limit)
	}
}
