package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// standstill is a task that stands still in one state, on the node n1.
type standstill struct {
	kind  ledger.TaskType
	state ledger.State
	// prepare makes what the task is about, and returns how n1 is held up and how the task is planned.
	prepare func(r *rig) (slow faults, plan func() ledger.Task)
}

// standstills are all types in all states that they can be in when they are cancelled.
var standstills = []standstill{
	{ledger.Create, ledger.Planned, waitsFor(func(r *rig, p *Planner) (ledger.Task, error) {
		return p.PlanBackup(r.Context(), BackupRequest{Database: "shop"})
	})},
	{ledger.Restore, ledger.Planned, waitsFor(func(r *rig, p *Planner) (ledger.Task, error) {
		return p.PlanRestore(r.Context(), RestoreRequest{Backup: r.filled().Backup, Target: "copy", Storage: "one"})
	})},
	{ledger.Verify, ledger.Planned, waitsFor(func(r *rig, p *Planner) (ledger.Task, error) {
		return p.PlanVerify(r.Context(), CheckRequest{Backup: r.filled().Backup})
	})},
	{ledger.Replicate, ledger.Planned, waitsFor(func(r *rig, p *Planner) (ledger.Task, error) {
		return p.PlanReplicate(r.Context(), CopyRequest{Backup: r.onOne(), Storages: []string{"two"}})
	})},
	{ledger.Delete, ledger.Planned, waitsFor(func(r *rig, p *Planner) (ledger.Task, error) {
		old := r.filled().Backup
		r.filled()
		return p.PlanDelete(r.Context(), DeleteRequest{Backup: old})
	})},
	{ledger.Create, ledger.Creating, dumpStopsAt(0)},
	{ledger.Create, ledger.Processing, dumpStopsAt(1)},
	{ledger.Create, ledger.Uploading, dumpStopsAt(2 << 20)},
	{ledger.Restore, ledger.Downloading, readStops(func(r *rig, backup string) (ledger.Task, error) {
		return r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: backup, Target: "copy"})
	}, 0)},
	{ledger.Restore, ledger.Deprocessing, readStops(func(r *rig, backup string) (ledger.Task, error) {
		return r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: backup, Target: "copy"})
	}, 1)},
	{ledger.Restore, ledger.Restoring, readStops(func(r *rig, backup string) (ledger.Task, error) {
		return r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: backup, Target: "copy"})
	}, 600_000)},
	{ledger.Verify, ledger.Downloading, readStops(func(r *rig, backup string) (ledger.Task, error) {
		return r.planner(nil).PlanVerify(r.Context(), CheckRequest{Backup: backup})
	}, 1000)},
	{ledger.Replicate, ledger.Downloading, func(r *rig) (faults, func() ledger.Task) {
		id, gate := r.onOne(), storagetest.NewGate()
		return faults{"one": {storagetest.StallAt(storagetest.Get, 1000, gate).On("/data")}}, func() ledger.Task {
			t, err := r.planner(nil).PlanReplicate(r.Context(), CopyRequest{Backup: id, Storages: []string{"two"}})
			r.must(err)
			return t
		}
	}},
}

// waitsFor is a task that nobody begins: no node reaches the disks.
func waitsFor(plan func(*rig, *Planner) (ledger.Task, error)) func(*rig) (faults, func() ledger.Task) {
	return func(r *rig) (faults, func() ledger.Task) {
		t, err := plan(r, r.planner(func(c *PlannerConfig) { c.DeleteDelay = 24 * time.Hour }))
		r.must(err)
		return nil, func() ledger.Task { return t }
	}
}

func dumpStopsAt(offset int64) func(*rig) (faults, func() ledger.Task) {
	return func(r *rig) (faults, func() ledger.Task) {
		r.server.set("shop", patternOf(3<<20))
		r.server.onWrite, _, _ = blockAt(offset)
		return nil, func() ledger.Task { return r.backup("all") }
	}
}

// readStops is a task that reads one backup and gets no more than so many of its bytes.
func readStops(plan func(*rig, string) (ledger.Task, error), after int64) func(*rig) (faults, func() ledger.Task) {
	return func(r *rig) (faults, func() ledger.Task) {
		r.server.set("shop", patternOf(3<<20))
		id, gate := r.filled().Backup, storagetest.NewGate()
		stall := storagetest.StallAt(storagetest.Get, after, gate).On("/data")
		if after == 0 {
			stall = storagetest.Stall(storagetest.Get, gate).On("/data")
		}
		return faults{"one": {stall}}, func() ledger.Task {
			t, err := plan(r, id)
			r.must(err)
			return t
		}
	}
}

// onOne makes a backup that the first disk alone has.
func (r *rig) onOne() string {
	r.Helper()
	n := r.start("maker", nil, nil)
	t, err := r.planner(nil).PlanBackup(r.Context(), BackupRequest{Database: "shop", Storages: []string{"one"}})
	r.must(err)
	r.awaitState(t.ID, ledger.Completed)
	r.wantNoClaims()
	n.w.Stop()
	return t.Backup
}

// silent is a ledger whose hints are all lost.
type silent struct{ ledger.Ledger }

func (silent) Watch(context.Context) <-chan struct{} { return nil }

// Whatever a task is, and whatever state it is in, a cancel ends it within a second of being asked for, and within the poll
// period when every notification is lost; nothing of it is left.
func TestCancelOfEachTypeInEachState(t *testing.T) {
	for _, hints := range []bool{true, false} {
		for _, s := range standstills {
			name, within := string(s.kind)+" "+string(s.state), time.Second
			if !hints {
				name, within = name+", no notification", 11*time.Second // the period varies by a tenth
			}
			t.Run(name, func(t *testing.T) {
				inRig(t, func(r *rig) {
					slow, plan := s.prepare(r)
					before := r.everything()
					r.start("n1", func(c *Config) {
						if !hints {
							c.Ledger = silent{c.Ledger}
						}
						if s.state == ledger.Planned {
							able := AbilitiesOf(context.Background(), c.Catalog, nil)
							able.Away = able.Storages
							c.Abilities = func() Abilities { return able }
						}
					}, slow)
					task := plan()
					if s.state != ledger.Planned {
						r.await(task.ID, string(s.state), func(t ledger.Task) bool { return t.State == s.state })
					}
					r.must(pause(r.Context(), time.Minute)) // it stands still
					row, err := r.led.Task(r.Context(), task.ID)
					r.must(err)
					if row.State != s.state {
						r.Fatalf("it is %s", row.State)
					}
					asked := time.Now()
					r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
					done := r.awaitState(task.ID, ledger.Cancelled)
					if took := time.Since(asked); took > within {
						r.Errorf("it was cancelled after %s", took)
					}
					if done.CancelBy != "ann" || done.Error != "cancelled by ann" {
						r.Errorf("cancelled: %+v", done)
					}
					r.wantNoClaims()
					if after := r.everything(); !slices.Equal(before, after) {
						r.Errorf("left are %q, before were %q", after, before)
					}
				})
			})
		}
	}
}

// everything is what the disks and the server hold, tombstones aside.
func (r *rig) everything() []string {
	r.Helper()
	all := r.server.names()
	for _, disk := range []string{"one", "two"} {
		for _, o := range r.objects(disk) {
			all = append(all, disk+"/"+o)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(o string) bool { return len(o) > 5 && o[len(o)-5:] == "/void" })
}

// The one state that is not left by a cancel: what is being deleted is on its way.
func TestCancelOfADeleteThatHasBegun(t *testing.T) {
	inRig(t, func(r *rig) {
		old := r.filled().Backup
		r.filled()
		gate := storagetest.NewGate()
		r.start("n1", nil, faults{"one": {storagetest.Stall(storagetest.Delete, gate)}})
		task, err := r.planner(nil).PlanDelete(r.Context(), DeleteRequest{Backup: old})
		r.must(err)
		<-gate.Reached()
		if err := r.planner(nil).Cancel(r.Context(), task.ID, "ann"); !errors.Is(err, ledger.ErrFinal) {
			r.Errorf("cancel: %v", err)
		}
		gate.Release()
		r.awaitState(task.ID, ledger.Completed)
	})
}
