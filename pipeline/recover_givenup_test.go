package pipeline

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// The owner was cancelled with a manifest under way to a storage, and died after it had fallen back to creating, before it
// could make a tombstone: its successor makes it, so that the manifest that arrives later is refused.
func TestRecoverWhatWasGivenUp(t *testing.T) {
	inRig(t, func(r *rig) {
		gate := storagetest.NewGate()
		underWay := make(chan string, 1)
		owner := r.start("n1", nil, faults{
			"one": {storagetest.Stall(storagetest.Put, gate).On(manifestName)},
			"two": {storagetest.Do(storagetest.Put, func(ctx context.Context, name string) error {
				select {
				case underWay <- name:
				default:
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}).On(manifestName)},
		})
		task := r.backup("all")
		<-gate.Reached()
		late := <-underWay
		r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
		row := r.await(task.ID, "given up", func(t ledger.Task) bool { return t.State == ledger.Creating })
		owner.kill(row.Token)
		heir := r.start("n2", nil, nil)
		verdict, _, err := r.recoverBy(heir, owner, row)
		r.must(err)
		if verdict != Settled {
			r.Errorf("verdict %d", verdict)
		}
		_, err = r.disks["two"].Put(r.Context(), late, bytes.NewReader([]byte("{}")), storage.Condition{})
		if !errors.Is(err, storage.ErrExists) {
			r.Errorf("the late manifest was taken: %v", err)
		}
		for _, disk := range []string{"one", "two"} {
			if got := r.objects(disk); len(got) != 1 || !slices.ContainsFunc(got, isVoid) {
				r.Errorf("disk %s holds %q", disk, got)
			}
		}
		r.awaitState(task.ID, ledger.Cancelled)
		r.wantEntry(task.Backup, ledger.BackupGone)
	})
}

func isVoid(object string) bool { return strings.HasSuffix(object, "/void") }
