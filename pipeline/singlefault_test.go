package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// singleFaults are makers of every fault that strikes one call of a backup once, in each of its ways.
func singleFaults() (all []func() *storagetest.Fault) {
	ops := []storagetest.Op{storagetest.Put, storagetest.Get, storagetest.Stat, storagetest.List, storagetest.Delete}
	for nth := 1; nth <= 4; nth++ {
		for _, op := range ops {
			all = append(all,
				func() *storagetest.Fault { return storagetest.Fail(op, errBoom).Nth(nth) },
				func() *storagetest.Fault { return storagetest.Fail(op, permanent()).Nth(nth) },
				func() *storagetest.Fault { return storagetest.Lose(op, errBoom).Nth(nth) },
				func() *storagetest.Fault { return storagetest.Stall(op, opening(30*time.Second)).Nth(nth) },
				func() *storagetest.Fault { return storagetest.Stall(op, opening(time.Hour)).Nth(nth) })
		}
		for _, at := range []int64{0, 1, 4096, 300_000} {
			all = append(all,
				func() *storagetest.Fault { return storagetest.Break(storagetest.Put, at, errBoom).Nth(nth) },
				func() *storagetest.Fault {
					return storagetest.StallAt(storagetest.Put, at, opening(time.Hour)).Nth(nth)
				})
		}
		all = append(all, func() *storagetest.Fault { return storagetest.StallEnd(storagetest.Put, opening(time.Hour)).Nth(nth) })
	}
	return all
}

// TestEverySingleFault: whatever happens to one call in one storage, afterwards the backup is complete and every copy that
// counts can be restored; or it is not listed as complete, and when it was reverted and swept nothing is left of it.
func TestEverySingleFault(t *testing.T) {
	hits := 0
	for _, require := range []string{"all", "any"} {
		for i, create := range singleFaults() {
			t.Run(fmt.Sprintf("%s/%d", require, i), func(t *testing.T) {
				inRig(t, func(r *rig) {
					f := create() // its gates are of this bubble
					t.Logf("require %s, storage two: %v", require, f)
					r.start("n1", nil, faults{"two": {f}})
					task := r.await(r.backup(require).ID, "final", func(t ledger.Task) bool { return t.State.Final() })
					n := r.node("n2", nil, nil)
					r.must(n.w.Sweep(r.Context()))
					if task.State == ledger.Completed {
						r.wantRestorable(n, task)
					} else {
						r.wantNothing(task)
						r.wantClean(n)
					}
					hits += f.Hits()
				})
			})
		}
	}
	if hits < 60 {
		t.Errorf("only %d faults struck", hits)
	}
}

// wantRestorable demands that each copy can be restored which the ledger counts or which looks whole (the answer to its last
// step came too late), and that a check of the storages finds nothing else.
func (r *rig) wantRestorable(n *node, task ledger.Task) {
	r.Helper()
	b := r.wantEntry(task.Backup, ledger.BackupCompleted)
	present := 0
	for _, c := range b.Copies {
		switch whole := slices.Contains(r.objects(c.Storage), fmt.Sprintf("%d/%s", task.Token, manifestName)); {
		case c.State == ledger.CopyPresent:
			present++
		case !whole:
			continue
		}
		target := "from-" + c.Storage
		cat := Catalog{Storages: map[string]storage.Storage{c.Storage: r.disks[c.Storage]}, Processors: n.w.cfg.Catalog.Processors}
		_, err := RestoreDirect(r.Context(), cat, DirectRestore{Backup: b.ID, Into: r.server, Attempt: source.Attempt{Task: target, Token: 99},
			Options: source.RestoreOptions{Target: target}})
		r.must(err)
		if got, _ := r.server.get(target); !bytes.Equal(got.data, patternOf(700_000)) {
			r.Errorf("%s has %d bytes", target, len(got.data))
		}
	}
	if present == 0 || present < 2 && task.Require == "all" {
		r.Errorf("completed with %d copies", present)
	}
	r.wantClean(n)
}

// wantClean demands that a check of the storages finds nothing but tombstones.
func (r *rig) wantClean(n *node) {
	r.Helper()
	for disk := range r.disks {
		found, err := n.w.CheckStorage(r.Context(), disk, false)
		r.must(err)
		for _, f := range found {
			if f.Kind != FoundTombstone {
				r.Errorf("%+v", f)
			}
		}
	}
}

// wantNothing demands that nothing but tombstones is left of a backup that failed, and that nobody lists it.
func (r *rig) wantNothing(task ledger.Task) {
	r.Helper()
	r.wantEntry(task.Backup, ledger.BackupGone)
	for disk := range r.disks {
		for _, o := range r.objects(disk) {
			if !strings.HasSuffix(o, "/void") {
				r.Errorf("left in %s: %s", disk, o)
			}
		}
	}
}
