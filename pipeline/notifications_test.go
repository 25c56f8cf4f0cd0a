package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/schedule"
)

// Every notification is lost, on every node: tasks of each type begin within the poll period of their planning, what a
// schedule has due is planned within a minute, and so is what retention lets go. (A cancel without notifications is one of
// TestCancelOfEachTypeInEachState.)
func TestWithAllNotificationsLost(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.step = time.Hour
		mute := func(c *Config) {
			c.Ledger = silent{c.Ledger}
			c.Retention = map[string]retention.Policy{"shop": {Last: 2, MinKeep: 1, MaxShare: 1, Unverified: true}}
		}
		a := r.start("n1", mute, nil)
		r.start("n2", mute, nil)
		p := r.planner(nil)
		within := func(what string, d time.Duration, plan func() (ledger.Task, error)) ledger.Task {
			r.Helper()
			synctest.Wait()
			r.must(pause(r.Context(), 3*time.Second)) // between two polls
			task, err := plan()
			r.must(err)
			planned := time.Now()
			done := r.awaitState(task.ID, ledger.Completed)
			if took := time.Since(planned); took > d {
				r.Errorf("%s took %s", what, took)
			}
			return done
		}
		const period = 11*time.Second + time.Second // it varies by a tenth; and a second that await looks at
		made := within("a backup", period, func() (ledger.Task, error) { return p.PlanBackup(r.Context(), BackupRequest{Database: "shop"}) })
		within("a verification", period, func() (ledger.Task, error) {
			return p.PlanVerify(r.Context(), CheckRequest{Backup: made.Backup})
		})
		within("a restore", period, func() (ledger.Task, error) {
			return p.PlanRestore(r.Context(), RestoreRequest{Backup: made.Backup, Target: "copy"})
		})
		within("another backup", period, func() (ledger.Task, error) {
			return p.PlanBackup(r.Context(), BackupRequest{Database: "shop", Storages: []string{"one"}})
		})
		list, err := r.led.Backups(r.Context(), ledger.BackupFilter{Limit: 1})
		r.must(err)
		within("a copy", period, func() (ledger.Task, error) {
			return p.PlanReplicate(r.Context(), CopyRequest{Backup: list[0].ID, Storages: []string{"two"}})
		})
		within("a delete", period, func() (ledger.Task, error) {
			return p.PlanDelete(r.Context(), DeleteRequest{Backup: made.Backup, Now: true})
		})

		job := Job{Database: "shop", Schedule: schedule.Config{Name: "hourly", Cron: "0 * * * *"}}
		a.runs(a.schedules(job).Component())
		due := time.Now().Truncate(time.Hour).Add(time.Hour)
		r.must(pause(r.Context(), time.Until(due)+time.Minute+period))
		tasks := r.ofSchedule("hourly")
		if len(tasks) != 1 || tasks[0].State != ledger.Completed {
			r.Fatalf("a minute after it was due: %+v", tasks)
		}

		// Two are kept; three are there.
		within("the third backup", period, func() (ledger.Task, error) { return p.PlanBackup(r.Context(), BackupRequest{Database: "shop"}) })
		pruner, err := NewPruner(p, a.items(), map[string]retention.Policy{"shop": {Last: 2, MinKeep: 1, MaxShare: 1, Unverified: true}}, &r.clock)
		r.must(err)
		r.must(pruner.Begin(r.Context()))
		a.runs(pruner.Component())
		synctest.Wait()
		within("the fourth backup", period, func() (ledger.Task, error) { return p.PlanBackup(r.Context(), BackupRequest{Database: "shop"}) })
		r.must(pause(r.Context(), 66*time.Second+period))
		kept, err := r.led.Backups(r.Context(), ledger.BackupFilter{State: ledger.BackupCompleted})
		r.must(err)
		if len(kept) != 2 {
			r.Errorf("a minute after the fourth: %d are kept", len(kept))
		}
	})
}
