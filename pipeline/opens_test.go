package pipeline

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/source"
)

// locked is a processor whose streams this node cannot open.
type locked struct{ processor.Processor }

func (locked) Unwrap(io.Reader) (io.ReadCloser, error) {
	return nil, fmt.Errorf("the object is encrypted to other keys: %w", processor.ErrKey)
}

// A wrong key is known before the server hears of the restore: not even a new database was made and dropped.
func TestAWrongKeyIsFoundBeforeAnythingIsPrepared(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		task := r.restoreTask(b.Backup, nil)
		before := r.server.nextID
		r.start("n1", func(c *Config) {
			procs, err := processor.NewRegistry(locked{zstd.Default()})
			r.must(err)
			c.Catalog.Processors = procs
		}, nil)
		done := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(done.Error, "open part data from storage one") || !strings.Contains(done.Error, processor.ErrKey.Error()) {
			r.Errorf("error: %s", done.Error)
		}
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		if r.server.nextID != before || r.server.commits != 0 {
			r.Errorf("%d databases were made", r.server.nextID-before)
		}
	})
}

// sealed is a processor with keys: id says which it writes with, opens whether this node has them.
type sealed struct {
	processor.Processor
	id    string
	opens bool
}

func (s sealed) KitID() string { return s.id }
func (s sealed) Opens() bool   { return true }

func (s sealed) Unwrap(r io.Reader) (io.ReadCloser, error) {
	if !s.opens {
		return nil, fmt.Errorf("the object is encrypted to other keys: %w", processor.ErrKey)
	}
	return s.Processor.Unwrap(r)
}

// A manifest names the kit that its backup needs; what the keys at hand do not open is sorted out by it, and a restore says
// which kit is wanted.
func TestManifestsNameTheirKit(t *testing.T) {
	inRig(t, func(r *rig) {
		with := func(s sealed) func(*Config) {
			return func(c *Config) {
				procs, err := processor.NewRegistry(s)
				r.must(err)
				c.Catalog.Processors = procs
			}
		}
		n := r.start("n1", with(sealed{zstd.Default(), "kit1", true}), nil)
		var ids []string
		for range 2 {
			ids = append(ids, r.awaitState(r.backup("all").ID, ledger.Completed).Backup)
			<-time.After(time.Minute) // else neither of them is the newest
		}
		r.wantNoClaims()
		cat := Catalog{Storages: n.w.cfg.Catalog.Storages}
		for _, c := range []struct {
			keys sealed
			want string
		}{
			{sealed{zstd.Default(), "kit1", true}, "[]"},
			{sealed{zstd.Default(), "kit2", false}, "[{shop kit1 2 " + ids[1] + "}]"},
		} {
			var err error
			cat.Processors, err = processor.NewRegistry(c.keys)
			r.must(err)
			list, _, err := Shelved(r.Context(), cat, nil)
			r.must(err)
			closed, err := ClosedOf(r.Context(), cat, list)
			if err != nil || fmt.Sprint(closed) != c.want {
				r.Errorf("%v, %v; want %s", closed, err, c.want)
			}
		}
		_, err := RestoreDirect(r.Context(), cat, DirectRestore{Backup: ids[0], Into: r.server, Attempt: source.Attempt{Task: "direct", Token: 99},
			Options: source.RestoreOptions{Target: "never"}})
		if !errors.Is(err, processor.ErrKey) || !strings.Contains(err.Error(), "the kit kit1 is wanted") {
			r.Errorf("error: %v", err)
		}
	})
}
