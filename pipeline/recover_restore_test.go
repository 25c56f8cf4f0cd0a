package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// filled makes a completed backup.
func (r *rig) filled() ledger.Task {
	r.Helper()
	n := r.start("maker", nil, nil)
	task := r.awaitState(r.backup("all").ID, ledger.Completed)
	r.wantNoClaims()
	n.w.Stop()
	return task
}

func (r *rig) restoreTask(backup string, edit func(*PlannerConfig)) ledger.Task {
	r.Helper()
	t, err := r.planner(edit).PlanRestore(r.Context(), RestoreRequest{Backup: backup, Replace: true})
	r.must(err)
	return t
}

// The owner is paused just before the swap, and goes on after its successor has finished: its swap is superseded.
func TestZombieBeforeSwap(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		r.server.set("shop", []byte("changed since"))
		paused, goOn := make(chan struct{}), make(chan struct{})
		first := true
		r.server.onCommit = func(context.Context) error {
			if first {
				first = false
				close(paused)
				<-goOn
			}
			return nil
		}
		zombie := r.start("n1", nil, nil)
		task := r.restoreTask(b.Backup, nil)
		<-paused
		old, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		if old.State != ledger.Restoring || old.Prepared.ID == 0 {
			r.Fatalf("row before the swap: %+v", old)
		}
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		if now, _ := r.server.get("shop"); string(now.data) != "changed since" || len(r.server.names()) != 1 {
			r.Errorf("target after the revert: %d bytes, databases %q", len(now.data), r.server.names())
		}
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(task.ID, ledger.Completed)
		close(goOn)
		r.wantNoClaims()
		if r.server.commits != 1 {
			r.Errorf("%d swaps", r.server.commits)
		}
		if now, _ := r.server.get("shop"); string(now.data) != string(patternOf(700_000)) {
			r.Errorf("target has %d bytes", len(now.data))
		}
	})
}

// The owner died after the swap and before the ledger knew: the swap is read from the target, and nothing is redone.
func TestRecoverCommittedRestore(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		dead := r.node("n1", nil, nil)
		var token uint64
		r.server.onCommit = func(context.Context) error {
			row, err := r.led.Tasks(context.Background(), ledger.TaskFilter{Type: ledger.Restore})
			if err != nil {
				return err
			}
			token = row[0].Token
			r.store.CloseRun(dead.run) // the swap below still happens, the ledger write after it does not
			return nil
		}
		r.must(dead.w.Start(context.Background()))
		task := r.restoreTask(b.Backup, nil)
		r.await(task.ID, "swapped", func(ledger.Task) bool { return r.server.commitCount() == 1 })
		old, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		dead.kill(token)
		r.server.onCommit = nil
		heir := r.start("n2", nil, nil)
		verdict, _, err := r.recoverBy(heir, dead, old)
		r.must(err)
		r.awaitState(task.ID, ledger.Completed)
		if verdict != Settled || r.server.commits != 1 {
			r.Errorf("verdict %d, %d swaps", verdict, r.server.commits)
		}
	})
}

func (s *fakeServer) commitCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// A restore whose node died is not begun again after its time.
func TestRecoverLateRestoreIsReverted(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		gate := storagetest.NewGate()
		dead := r.start("n1", nil, faults{"one": {storagetest.StallAt(storagetest.Get, 1000, gate).On("/data")}})
		task := r.restoreTask(b.Backup, func(c *PlannerConfig) { c.StartWithin = time.Minute })
		<-gate.Reached()
		old, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		dead.kill(old.Token)
		timer := time.NewTimer(2 * time.Minute)
		<-timer.C
		heir := r.node("n2", nil, nil)
		verdict, _, err := r.recoverBy(heir, dead, old)
		r.must(err)
		done := r.awaitState(task.ID, ledger.Reverted)
		if verdict != Settled || !strings.Contains(done.Error, "time in which the restore may begin") {
			r.Errorf("verdict %d, task %+v", verdict, done)
		}
		if len(r.server.names()) != 1 {
			r.Errorf("databases: %q", r.server.names())
		}
	})
}

func TestRecoverTargetAway(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		gate := storagetest.NewGate()
		dead := r.start("n1", nil, faults{"one": {storagetest.StallAt(storagetest.Get, 1000, gate).On("/data")}})
		task := r.restoreTask(b.Backup, nil)
		<-gate.Reached()
		old, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		dead.kill(old.Token)
		r.server.onSettle = func() error { return source.ErrUnavailable }
		heir := r.node("n2", nil, nil)
		if _, _, err := r.recoverBy(heir, dead, old); !errors.Is(err, ErrUnavailable) {
			r.Fatalf("target away: %v", err)
		}
	})
}
