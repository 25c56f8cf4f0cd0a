package pipeline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// A storage is away while a recovery goes round the nodes, more often than a task has attempts: none of them is used up,
// neither before the task was reverted nor after, and the task is done in the end.
func TestOutageUsesUpNoAttempts(t *testing.T) {
	inRig(t, func(r *rig) {
		g1, g2 := storagetest.NewGate(), storagetest.NewGate()
		last := r.start("n1", nil, faults{
			"one": {storagetest.Stall(storagetest.Put, g1).On(manifestName)},
			"two": {storagetest.Stall(storagetest.Put, g2).On(manifestName)},
		})
		id := r.backup("all").ID
		<-g1.Reached()
		<-g2.Reached()
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		last.kill(row.Token)
		for i := range 10 {
			f := faults{}
			if i < 5 {
				f["two"] = []*storagetest.Fault{storagetest.Fail(storagetest.Any, errBoom)}
			}
			heir := r.start(fmt.Sprintf("n%d", i+2), nil, f)
			verdict, claim, err := r.recoverBy(heir, last, row)
			if i < 5 && !errors.Is(err, ErrUnavailable) {
				r.Fatalf("round %d: %v, want unavailable", i, err)
			}
			if i >= 5 && (err != nil || verdict != Rerun) {
				r.Fatalf("round %d: verdict %d, %v", i, verdict, err)
			}
			if row, err = r.led.Task(r.Context(), id); err != nil || row.Attempt != 2 {
				r.Fatalf("round %d: %+v, %v", i, row, err)
			}
			if i == 9 {
				r.must(heir.w.Resume(r.Context(), claim))
			} else {
				heir.kill(claim.Token)
			}
			last = heir
		}
		if done := r.awaitState(id, ledger.Completed); done.Attempt != 2 {
			r.Errorf("done: %+v", done)
		}
	})
}

// An attempt that fails before it has begun counts all the same: it is not made for ever.
func TestFailuresBeforeTheBeginAreCounted(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", func(c *Config) { // takes itself for able
			able := AbilitiesOf(r.Context(), c.Catalog, nil)
			c.Abilities = func() Abilities { return able }
			delete(c.Catalog.Storages, "two")
		}, nil)
		id := r.backup("all").ID
		if done := r.awaitState(id, ledger.Failed); done.Attempt != 3 {
			r.Errorf("failed: %+v", done)
		}
	})
}
