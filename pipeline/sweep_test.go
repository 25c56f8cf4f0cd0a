package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// put stores an object behind the program's back, as a late owner does.
func (r *rig) put(disk, name string) {
	r.Helper()
	_, err := r.disks[disk].Put(r.Context(), name, strings.NewReader("late"), storage.Condition{})
	r.must(err)
}

func TestRule28_Sweep(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		old := b.Token - 3
		r.put("one", ObjectPath(b.Backup, old, "data"))
		r.put("one", ObjectPath(b.Backup, b.Token+1, "data"))
		r.put("one", ObjectPath("unknown", 1, "data"))
		_, err := entomb(r.Context(), r.disks["one"], Tombstone(b.Backup, old, "test", time.Now()))
		r.must(err)
		n := r.node("n1", nil, nil)
		r.must(n.w.Sweep(r.Context()))
		whole := []string{
			fmt.Sprintf("%d/data", b.Token), fmt.Sprintf("%d/database.sql", b.Token), fmt.Sprintf("%d/manifest.json", b.Token),
			fmt.Sprintf("%d/data", b.Token+1), "1/data",
		}
		r.wantObjects("one", append([]string{fmt.Sprintf("%d/void", old)}, whole...)...)
		timer := time.NewTimer(9 * 24 * time.Hour)
		<-timer.C
		r.must(n.w.Sweep(r.Context()))
		r.wantObjects("one", whole...)
	})
}

// untidy is a storage in which uploads of dead processes stay.
type untidy struct {
	storage.Storage
	before time.Time
	err    error
}

func (u *untidy) AbortUploads(_ context.Context, before time.Time) (int, error) {
	u.before = before
	return 1, u.err
}

func TestSweepOfUploads(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.node("n1", nil, nil)
		u := &untidy{Storage: r.disks["one"]}
		n.w.cfg.Catalog.Storages = map[string]storage.Storage{"one": u, "two": r.disks["two"]}
		r.must(n.w.Sweep(r.Context()))
		if age := time.Since(u.before); age != 8*24*time.Hour {
			t.Errorf("uploads that are %s old were removed, want eight days", age)
		}
		u.err = errBoom
		if err := n.w.Sweep(r.Context()); !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "one") {
			t.Errorf("got %v", err)
		}
	})
}

// A storage whose unfinished uploads may not be removed: the sweep says so, does what else there is to do, and no backup
// fails for it.
func TestRefusedAbortIsNoFailureOfABackup(t *testing.T) {
	inRig(t, func(r *rig) {
		u := &untidy{Storage: r.disks["one"], err: fmt.Errorf("abort: access denied: %w", storage.ErrPermanent)}
		n := r.start("n1", func(c *Config) { c.Catalog.Storages["one"] = u }, nil)
		sweep := func() {
			err := n.w.Sweep(r.Context())
			if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "access denied") {
				r.Errorf("sweep: %v", err)
			}
		}
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		sweep()
		for _, disk := range []string{"one", "two"} {
			r.put(disk, ObjectPath(task.Backup, task.Token-1, "data"))
		}
		again := r.awaitState(r.backup("all").ID, ledger.Completed)
		sweep()
		n.w.Stop()
		for _, done := range []ledger.Task{task, again} {
			if done.Attempt != 1 || done.Error != "" {
				r.Errorf("%+v", done)
			}
		}
		for _, disk := range []string{"one", "two"} {
			if got := len(r.objects(disk)); got != 6 {
				r.Errorf("%s holds %q", disk, r.objects(disk))
			}
		}
	})
}

// What is left of a backup that came to nothing goes with the next sweep of any worker.
func TestSweepOfGoneBackups(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.onWrite = func(_ context.Context, _ string, _ int64) error { return errBoom }
		n := r.start("n1", nil, nil)
		task := r.awaitState(r.backup("all").ID, ledger.Failed)
		r.put("two", ObjectPath(task.Backup, task.Token, "data"))
		r.must(n.w.Sweep(r.Context()))
		r.wantObjects("two")
	})
}
