package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// Several streams of one snapshot: an object each, written at the same time, in the manifest in the order in which they
// are restored, which is what happens.
func TestStreams(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.streams = 3
		var met sync.WaitGroup // all three streams are under way before any goes on
		met.Add(3)
		r.server.onWrite = func(_ context.Context, part string, sent int64) error {
			if source.IsStream(part) && sent == 0 {
				met.Done()
				met.Wait()
			}
			return nil
		}
		r.start("n1", nil, nil)
		task := r.filled()
		from, err := pick(r.Context(), r.nodes[0].w.cfg.Catalog, task.Backup, nil)
		r.must(err)
		var names []string
		for _, o := range from.manifest.Objects {
			names = append(names, o.Name)
		}
		want := "[pre-data data data-2 data-3 post-data database.sql]"
		if fmt.Sprint(names) != want {
			r.Errorf("objects %v", names)
		}
		restored := r.awaitState(r.restoreTask(task.Backup, nil).ID, ledger.Completed)
		got, _ := r.server.get("shop")
		if !bytes.Equal(got.data, patternOf(700_000)) || got.id != restored.Prepared.ID {
			r.Errorf("restored %d bytes", len(got.data))
		}
		order := fmt.Sprint(r.server.restored)
		if !strings.HasPrefix(order, "[pre-data data") || !strings.HasSuffix(order, " post-data database.sql]") {
			r.Errorf("restored in the order %s", order)
		}
	})
}

// One stream fails: nothing of the others is kept.
func TestStreamFails(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.streams = 3
		r.server.onWrite = func(_ context.Context, part string, sent int64) error {
			if part == "data-3" && sent > 100_000 {
				return fmt.Errorf("boom: %w", source.ErrIncomplete)
			}
			return nil
		}
		r.start("n1", nil, nil)
		task := r.awaitState(r.backup("all").ID, ledger.Failed)
		if !strings.Contains(task.Error, "boom") || !strings.Contains(task.Error, "data-3") {
			r.Errorf("error: %s", task.Error)
		}
		r.wantObjects("one")
		r.wantObjects("two")
	})
}

// Each of two storages loses another stream: although `any` is satisfied for each stream, no storage has the backup.
func TestStreamsLoseDifferentStorages(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.streams = 3
		r.start("n1", nil, faults{
			"one": {storagetest.Break(storagetest.Put, 5_000, permanent()).On("/data-2")},
			"two": {storagetest.Break(storagetest.Put, 5_000, permanent()).On("/data-3")},
		})
		task := r.awaitState(r.backup("any").ID, ledger.Failed)
		if !strings.Contains(task.Error, "boom") {
			r.Errorf("error: %s", task.Error)
		}
		r.wantEntry(task.Backup, ledger.BackupGone)
	})
}

func TestWriteStages(t *testing.T) {
	got := writeStages([]string{"pre-data", "post-data", "data", "data-2", "database.sql", "globals.sql"})
	if fmt.Sprint(got) != "[[pre-data] [post-data] [data data-2] [database.sql] [globals.sql]]" {
		t.Errorf("got %v", got)
	}
}
