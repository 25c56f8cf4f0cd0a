package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// kept makes n backups, oldest first, on a node that stays.
func (r *rig) kept(n int) (*node, []ledger.Task) {
	r.Helper()
	worker := r.start("keeper", nil, nil)
	var out []ledger.Task
	for range n {
		out = append(out, r.awaitState(r.backup("all").ID, ledger.Completed))
		r.must(pause(r.Context(), time.Second))
	}
	return worker, out
}

func (r *rig) delete(id string, edit func(*DeleteRequest), delay time.Duration) (ledger.Task, error) {
	req := DeleteRequest{Backup: id}
	if edit != nil {
		edit(&req)
	}
	return r.planner(func(c *PlannerConfig) { c.DeleteDelay = delay }).PlanDelete(r.Context(), req)
}

func TestDelete(t *testing.T) {
	inRig(t, func(r *rig) {
		_, b := r.kept(2)
		began := time.Now()
		task, err := r.delete(b[0].Backup, nil, 30*time.Minute)
		r.must(err)
		if again, err := r.delete(b[0].Backup, nil, time.Hour); err != nil || again.ID != task.ID {
			r.Errorf("asked twice: %+v, %v", again, err)
		}
		synctest.Wait()
		r.wantEntry(b[0].Backup, ledger.BackupCompleted)
		r.awaitState(task.ID, ledger.Completed)
		if took := time.Since(began); took < 30*time.Minute || took > 31*time.Minute {
			r.Errorf("it went after %s, the delay is half an hour", took)
		}
		r.wantEntry(b[0].Backup, ledger.BackupGone)
		for _, disk := range []string{"one", "two"} {
			r.wantWhole(disk, b[1].Token)
		}
		r.wantNoClaims()
	})
}

func TestDeleteIsRefused(t *testing.T) {
	inRig(t, func(r *rig) {
		_, b := r.kept(1)
		last := b[0].Backup
		refused := func(id, why string) {
			r.Helper()
			_, err := r.delete(id, nil, 0)
			var bad *RequestError
			if !errors.As(err, &bad) || !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), why) {
				r.Errorf("delete %s: %v, want it refused: %s", id, err, why)
			}
		}
		refused(last, "last good")
		second := r.awaitState(r.backup("all").ID, ledger.Completed).Backup
		_, err := r.planner(nil).Mark(r.Context(), last, func(m ledger.Mark) ledger.Mark { m.Pinned = true; return m })
		r.must(err)
		refused(last, "pinned")
		_, err = r.planner(nil).Mark(r.Context(), last, func(m ledger.Mark) ledger.Mark { m.Pinned = false; return m })
		r.must(err)
		hold := make(chan struct{})
		r.server.onCommit = func(ctx context.Context) error { <-hold; return nil }
		restore := r.restoreTask(last, nil)
		synctest.Wait()
		refused(last, "reads")
		close(hold)
		r.awaitState(restore.ID, ledger.Completed)
		if _, err := r.delete("nope", nil, 0); !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("delete of nothing: %v", err)
		}
		task, err := r.delete(last, nil, 0)
		r.must(err)
		r.awaitState(task.ID, ledger.Completed)
		refused(second, "last good")
	})
}

// A delete that waits can be undone by anybody; one that has begun cannot be cancelled.
func TestUndelete(t *testing.T) {
	inRig(t, func(r *rig) {
		_, b := r.kept(2)
		task, err := r.delete(b[0].Backup, nil, time.Hour)
		r.must(err)
		kept, err := r.planner(nil).Undelete(r.Context(), b[0].Backup, "ann")
		r.must(err)
		if kept.State != ledger.BackupCompleted {
			r.Errorf("entry: %+v", kept)
		}
		r.awaitState(task.ID, ledger.Cancelled)
		if len(r.objects("one")) != 6 {
			r.Errorf("disk one holds %q, want both", r.objects("one"))
		}
		if _, err := r.planner(nil).Undelete(r.Context(), b[0].Backup, "ann"); !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("undelete of what nobody deletes: %v", err)
		}
	})
}

// PROTOCOL.md 29: once the entry says deleting neither a cancel nor a dead node brings the backup back.
func TestRule29_DeletingIsNotTakenBack(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(2)
		keeper.kill(0)
		keeper.w.Stop()
		gate := storagetest.NewGate()
		dead := r.start("n1", nil, faults{"two": {storagetest.Stall(storagetest.Delete, gate).Times(1)}})
		task, err := r.delete(b[0].Backup, nil, 0)
		r.must(err)
		<-gate.Reached()
		r.wantEntry(b[0].Backup, ledger.BackupDeleting)
		if err := r.planner(nil).Cancel(r.Context(), task.ID, "ann"); !errors.Is(err, ledger.ErrFinal) {
			r.Errorf("cancel: %v", err)
		}
		if _, err := r.planner(nil).Undelete(r.Context(), b[0].Backup, "ann"); !errors.Is(err, ledger.ErrFinal) {
			r.Errorf("undelete: %v", err)
		}
		row, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		dead.kill(row.Token)
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, dead, row)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		heir.w.mu.Lock()
		heir.w.running[task.ID] = func(cause error) { r.Errorf("the planned task, with its refused request, is ended: %v", cause) }
		heir.w.mu.Unlock()
		heir.w.cancelIfAsked(r.Context(), task.ID)
		heir.w.mu.Lock()
		delete(heir.w.running, task.ID)
		heir.w.mu.Unlock()
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(task.ID, ledger.Completed)
		gate.Release() // a late delete does no harm
		synctest.Wait()
		r.wantEntry(b[0].Backup, ledger.BackupGone)
		for _, disk := range []string{"one", "two"} {
			r.wantWhole(disk, b[1].Token)
		}
	})
}

// A storage that is away holds a delete up and does not end it: no data goes while a manifest is left.
func TestDeleteWaitsForAStorage(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(2)
		keeper.kill(0)
		keeper.w.Stop()
		away := storagetest.Fail(storagetest.Delete, errBoom).Times(5)
		r.start("n1", nil, faults{"two": {away}})
		task, err := r.delete(b[0].Backup, nil, 0)
		r.must(err)
		row := r.await(task.ID, "waiting", func(t ledger.Task) bool { return t.Error != "" })
		if row.State != ledger.Deleting || !strings.Contains(row.Error, "two") {
			r.Errorf("row: %+v", row)
		}
		for _, o := range r.objects("one") {
			if o == "1001/manifest.json" {
				r.Error("the manifest is still there")
			}
		}
		if done := r.awaitState(task.ID, ledger.Completed); done.Attempt != 1 {
			r.Errorf("done: %+v", done)
		}
		r.wantWhole("two", b[1].Token)
	})
}

// What retention planned is asked again where it takes effect: a pin, or another backup that went, saves it.
func TestRule30_RetentionIsAskedAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(3)
		keeper.w.Stop()
		policy := map[string]retention.Policy{"shop": {Last: 2, Unverified: true}}
		internal := func(d *DeleteRequest) { d.Internal = true }
		wrong, err := r.delete(b[1].Backup, internal, 0) // one of the last two
		r.must(err)
		right, err := r.delete(b[0].Backup, internal, 0)
		r.must(err)
		r.start("n1", func(c *Config) { c.Retention = policy }, nil)
		done := r.awaitState(wrong.ID, ledger.Failed)
		if !strings.Contains(done.Error, "retention") {
			r.Errorf("task: %+v", done)
		}
		r.awaitState(right.ID, ledger.Completed)
		r.wantEntry(b[1].Backup, ledger.BackupCompleted)
	})
}

// A scratch server that cannot take a backup makes no backup suspect: its copies were read, and the task says what it lacks.
func TestVerifyInAnUnfitScratch(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(1)
		keeper.w.Stop()
		r.server.identity = "main"
		scratch := newServer()
		scratch.identity = "scratch"
		scratch.byName[scratchTarget] = scratch.byName["shop"]
		lab := map[string]source.Source{"lab": scratch}
		r.start("n2", func(c *Config) { c.Catalog.Scratch = lab }, nil)
		task, err := r.planner(func(c *PlannerConfig) { c.Catalog.Scratch = lab }).PlanVerify(r.Context(), CheckRequest{Backup: b[0].Backup, Scratch: "lab"})
		r.must(err)
		done := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(done.Error, ErrScratchUnfit.Error()) || !strings.Contains(done.Error, "target database exists") {
			r.Errorf("task: %+v", done)
		}
		if got := r.wantEntry(b[0].Backup, ledger.BackupCompleted); got.Verified.IsZero() || len(got.Suspect) > 0 {
			r.Errorf("entry: %+v", got)
		}
	})
}

func TestVerifyTask(t *testing.T) {
	inRig(t, func(r *rig) {
		keeper, b := r.kept(1)
		r.server.identity = "main"
		scratch := newServer()
		scratch.identity = "scratch"
		lab := map[string]source.Source{"lab": scratch}
		p := r.planner(func(c *PlannerConfig) { c.Catalog.Scratch = lab })
		task, err := p.PlanVerify(r.Context(), CheckRequest{Backup: b[0].Backup, Scratch: "lab"})
		r.must(err)
		r.must(pause(r.Context(), time.Hour/2))
		if row, err := r.led.Task(r.Context(), task.ID); err != nil || row.State != ledger.Planned {
			r.Errorf("a node without the scratch server began: %+v, %v", row, err)
		}
		keeper.w.Stop()
		r.start("n2", func(c *Config) { c.Catalog.Scratch = lab }, nil)
		r.awaitState(task.ID, ledger.Completed)
		if len(scratch.settled) != 1 || scratch.commits != 0 || len(scratch.names()) != 1 {
			r.Errorf("scratch server: %q, %d commits, %d settled", scratch.names(), scratch.commits, len(scratch.settled))
		}
		if got := r.wantEntry(b[0].Backup, ledger.BackupCompleted); got.Verified.IsZero() || len(got.Suspect) > 0 {
			r.Errorf("entry: %+v", got)
		}
		r.rewrite(b[0], source.PartData, flip)
		task, err = p.PlanVerify(r.Context(), CheckRequest{Database: "shop"})
		r.must(err)
		done := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(done.Error, "one: corrupt") || done.Hint == "" {
			r.Errorf("task: %+v", done)
		}
		got := r.wantEntry(b[0].Backup, ledger.BackupCompleted)
		if got.Copies[0].State != ledger.CopyCorrupt || got.Copies[1].State != ledger.CopyPresent || len(got.Suspect) > 0 {
			r.Errorf("entry: %+v", got)
		}
		mended, err := p.PlanReplicate(r.Context(), CopyRequest{Backup: b[0].Backup})
		r.must(err)
		r.awaitState(mended.ID, ledger.Completed)
		got = r.wantEntry(b[0].Backup, ledger.BackupCompleted)
		if got.Copies[0].State != ledger.CopyPresent {
			r.Errorf("mended: %+v", got)
		}
		task, err = p.PlanVerify(r.Context(), CheckRequest{Backup: b[0].Backup, Storages: []string{"one"}})
		r.must(err)
		r.awaitState(task.ID, ledger.Completed)
		r.rewrite(b[0], source.PartData, flip)
		r.must(r.disks["two"].Delete(r.Context(), ManifestPath(b[0].Backup, b[0].Token)))
		task, err = p.PlanVerify(r.Context(), CheckRequest{Backup: b[0].Backup})
		r.must(err)
		r.awaitState(task.ID, ledger.Failed)
		if got := r.wantEntry(b[0].Backup, ledger.BackupCompleted); len(got.Suspect) != 1 {
			r.Errorf("no copy is whole, and it is not suspect: %+v", got)
		}
		var bad *RequestError
		if _, err := p.PlanReplicate(r.Context(), CopyRequest{Backup: b[0].Backup}); !errors.As(err, &bad) {
			r.Errorf("replicate without a whole copy: %v", err)
		}
		if _, err := p.PlanVerify(r.Context(), CheckRequest{Backup: b[0].Backup, Scratch: "shop"}); !errors.As(err, &bad) || bad.Field != "scratch" {
			r.Errorf("a source as scratch: %v", err)
		}
	})
}

// A copy that was never made is made from another, also where a tombstone lies in the manifest's place.
func TestReplicateOverATombstone(t *testing.T) {
	inRig(t, func(r *rig) {
		_, b := r.kept(1)
		path := ManifestPath(b[0].Backup, b[0].Token)
		r.must(r.disks["two"].Delete(r.Context(), path))
		_, err := entomb(r.Context(), r.disks["two"], Tombstone(b[0].Backup, b[0].Token, "test", time.Now()))
		r.must(err)
		r.must(r.disks["two"].Delete(r.Context(), ObjectPath(b[0].Backup, b[0].Token, "data")))
		task, err := r.planner(nil).PlanReplicate(r.Context(), CopyRequest{Backup: b[0].Backup, Storages: []string{"two"}})
		r.must(err)
		r.awaitState(task.ID, ledger.Completed)
		r.wantWhole("two", b[0].Token)
		r.wantNoClaims()
	})
}

// A storage that gives wrong bytes is not copied from: the damage does not spread.
func TestReplicateDoesNotSpreadDamage(t *testing.T) {
	inRig(t, func(r *rig) {
		_, b := r.kept(1)
		for _, part := range []string{"data", "manifest.json"} {
			r.must(r.disks["two"].Delete(r.Context(), ObjectPath(b[0].Backup, b[0].Token, part)))
		}
		r.rewrite(b[0], source.PartData, flip)
		task, err := r.planner(nil).PlanReplicate(r.Context(), CopyRequest{Backup: b[0].Backup, Storages: []string{"two"}})
		r.must(err)
		r.awaitState(task.ID, ledger.Failed)
		if _, err := r.disks["two"].Stat(r.Context(), ObjectPath(b[0].Backup, b[0].Token, "data")); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("damaged bytes were copied: %v", err)
		}
	})
}
