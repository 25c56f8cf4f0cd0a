package pipeline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// From an append-only storage nothing is removed, and nobody tries: a delete makes the manifest void and is done, a sweep
// passes over what is left, a check calls it no fault, and it is said once.
func TestAppendOnly(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		r.put("one", ObjectPath(b.Backup, b.Token-3, "data"))
		var said bytes.Buffer
		tried := storagetest.Inject(r.disks["one"], storagetest.Fail(storagetest.Delete, storage.ErrPermanent))
		n := r.start("n1", func(c *Config) {
			c.Catalog.Storages["one"] = storage.AppendOnly(tried, slog.New(slog.NewTextHandler(&said, nil)))
		}, nil)
		r.awaitState(r.backup("all").ID, ledger.Completed) // the last good one is not deleted
		task, err := r.planner(nil).PlanDelete(r.Context(), DeleteRequest{Backup: b.Backup})
		r.must(err)
		r.awaitState(task.ID, ledger.Completed)
		m, err := readManifest(r.Context(), r.disks["one"], b.Backup, b.Token)
		if err != nil || !m.Manifest.Void {
			r.Fatalf("the manifest of the deleted backup: %+v, %v", m, err)
		}
		r.wantNoClaims()
		n.w.Stop()
		timer := time.NewTimer(9 * 24 * time.Hour) // tombstones have had their time
		<-timer.C
		r.must(n.w.Sweep(r.Context()))
		if _, err := r.disks["one"].Stat(r.Context(), ObjectPath(b.Backup, b.Token, "data")); err != nil {
			r.Errorf("the data: %v", err)
		}
		list, _, err := Shelved(r.Context(), n.w.cfg.Catalog, []string{"one"})
		if err != nil || len(list) != 1 || list[0].ID == b.Backup {
			r.Errorf("backups %+v, %v", list, err)
		}
		r.put("one", storage.ProbePrefix+"x/object")
		found, err := n.w.CheckStorage(r.Context(), "one", true)
		kept := 0
		for _, f := range found {
			if f.Kind != FoundKept && f.Kind != FoundTombstone || f.Fixable || f.Fixed {
				r.Errorf("finding %+v", f)
			}
			if f.Kind == FoundKept {
				kept++
			}
		}
		if err != nil || kept != 3 {
			r.Errorf("%d kept, %v", kept, err)
		}
		if n := strings.Count(said.String(), "append-only"); n != 1 {
			r.Errorf("said %d times: %s", n, &said)
		}
		if err := n.w.cfg.Catalog.Storages["one"].Delete(r.Context(), "x"); err == nil {
			r.Error("something was deleted")
		}
	})
}
