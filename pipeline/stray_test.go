package pipeline

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// The answer to a swap was lost, so its owner gave the claim back with the row as it was, and died before it came to try
// again: no claim is left for a recovery, and still the task is settled and done by another node.
func TestStrayIsTakenUp(t *testing.T) {
	inRig(t, func(r *rig) {
		gone := r.start("n1", nil, nil)
		b := r.backup("all")
		r.awaitState(b.ID, ledger.Completed)
		first := true
		r.server.onCommit = func(context.Context) error {
			if first {
				first = false
				return fmt.Errorf("answer lost: %w", source.ErrUnavailable)
			}
			return nil
		}
		task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: b.Backup, Target: "copy"})
		r.must(err)
		r.await(task.ID, "given back", func(t ledger.Task) bool { return t.State == ledger.Restoring && t.Error != "" })
		r.wantNoClaims()
		gone.kill(0)
		gone.w.Stop()
		begun := time.Now()
		r.start("n2", nil, nil)
		done := r.awaitState(task.ID, ledger.Completed)
		if done.Node != "n2" || done.Attempt != 2 {
			r.Errorf("done: %+v", done)
		}
		if waited := time.Since(begun); waited > 2*strayAfter {
			r.Errorf("it took %s", waited)
		}
		if len(r.server.settled) == 0 {
			r.Error("the lost swap was not looked for")
		}
		r.wantNoClaims()
	})
}

// A task that lies still under a living owner is its owner's, however long that takes, and an orphan is recovery's.
func TestHeldIsNoStray(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, goOn := blockAt(128 << 10)
		r.server.onWrite = hook
		owner := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		r.start("n2", nil, nil)
		r.must(pause(r.Context(), time.Hour))
		r.store.CloseRun(owner.run)
		r.must(pause(r.Context(), time.Hour))
		synctest.Wait()
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if row.Attempt != 1 || row.Node != "n1" {
			r.Errorf("taken from its owner: %+v", row)
		}
		close(goOn)
	})
}
