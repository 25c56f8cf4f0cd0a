package pipeline

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// An attempt past its time limit is reverted, and the task has failed: it would take as long again.
func TestTimeLimit(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, _ := blockAt(2 << 20)
		r.server.onWrite = hook
		r.start("n1", func(c *Config) { c.Limit = 2 * time.Hour; c.Catalog.Chain = nil }, nil)
		began := time.Now()
		id := r.backup("all").ID
		<-reached
		r.must(pause(r.Context(), 2*time.Hour-time.Minute))
		if row, err := r.led.Task(r.Context(), id); err != nil || row.State != ledger.Uploading {
			r.Errorf("before the limit: %+v, %v", row, err)
		}
		done := r.awaitState(id, ledger.Failed)
		if took := time.Since(began); took < 2*time.Hour || took > 2*time.Hour+time.Minute {
			r.Errorf("it ended after %s", took)
		}
		if !strings.Contains(done.Error, "time limit") || done.Hint == "" {
			r.Errorf("task: %+v", done)
		}
		r.wantObjects("one")
		r.wantNoClaims()
	})
}

// An adopted task that waits for a place is cancelled at once, and not when there is a place.
func TestCancelOfAdoptedTaskThatWaits(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, goOn := blockAt(128 << 10)
		defer func() { close(goOn) }()
		r.server.onWrite = hook
		dead := r.start("n1", func(c *Config) { c.MaxConcurrent = 1 }, nil)
		lost := r.backup("all")
		<-reached
		row, err := r.led.Task(r.Context(), lost.ID)
		r.must(err)
		dead.kill(row.Token)
		heir := r.start("n2", func(c *Config) { c.MaxConcurrent = 1 }, nil)
		hook, reached, goOn = blockAt(128 << 10)
		r.server.onWrite = hook
		busy := lost // of another flight
		busy.ID, busy.Backup, busy.Flight = NewID(time.Now()), NewID(time.Now()), ""
		r.must(r.led.Plan(r.Context(), busy))
		<-reached
		verdict, claim, err := r.recoverBy(heir, dead, row)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		r.must(heir.w.Resume(r.Context(), claim))
		synctest.Wait()
		if now, err := r.led.Task(r.Context(), lost.ID); err != nil || now.State != ledger.Planned {
			r.Errorf("while the only place is taken: %+v, %v", now, err)
		}
		r.must(r.planner(nil).Cancel(r.Context(), lost.ID, "ann"))
		r.awaitState(lost.ID, ledger.Cancelled)
		close(goOn)
		goOn = make(chan struct{})
		r.awaitState(busy.ID, ledger.Completed)
		r.wantNoClaims()
	})
}

// A paused component begins nothing, ends what was cancelled, and goes on with the pause's end.
func TestPausedComponent(t *testing.T) {
	inRig(t, func(r *rig) {
		var paused atomic.Bool
		paused.Store(true)
		n := r.start("n1", func(c *Config) { c.Paused = func(name string) bool { return paused.Load() && name == "backup" } }, nil)
		id := r.backup("all").ID
		r.must(pause(r.Context(), time.Hour))
		if row, err := r.led.Task(r.Context(), id); err != nil || row.State != ledger.Planned || row.Attempt != 0 {
			r.Errorf("begun while paused: %+v, %v", row, err)
		}
		other, err := r.planner(nil).PlanBackup(r.Context(), BackupRequest{Database: "shop"})
		r.must(err)
		r.must(r.planner(nil).Cancel(r.Context(), other.ID, "ann"))
		r.awaitState(other.ID, ledger.Cancelled)
		paused.Store(false)
		n.w.wakeAll()
		r.awaitState(id, ledger.Completed)
	})
}
