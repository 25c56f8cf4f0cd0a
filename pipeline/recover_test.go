package pipeline

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// blockAt returns a source hook that stops a dump at an offset of its data until its context ends or go on is closed;
// reached is closed when it is there. Only the first dump is stopped.
func blockAt(offset int64) (hook func(context.Context, string, int64) error, reached, goOn chan struct{}) {
	reached, goOn = make(chan struct{}), make(chan struct{})
	first := true
	return func(ctx context.Context, part string, sent int64) error {
		if part != source.PartData || sent < offset || !first {
			return nil
		}
		first = false
		close(reached)
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, reached, goOn
}

// kill ends a node's process: what it does from now on has no effect but what is under way already.
func (n *node) kill(token uint64) {
	n.r.store.CloseRun(n.run)
	n.r.server.kill(token)
	n.close(errors.New("killed"))
}

// A node is killed while its source has given nothing: nothing was stored, so no tombstone is needed; the heir runs the
// task again under its own token.
func TestRecoverFromCreating(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, _ := blockAt(0)
		r.server.onWrite = hook
		dead := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		task := r.await(id, "creating", func(t ledger.Task) bool { return t.State == ledger.Creating })
		dead.kill(task.Token)
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, dead, task)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		r.wantObjects("one")
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if row.State != ledger.Planned || row.Attempt != 2 || row.Token != claim.Token {
			r.Errorf("row after recovery: %+v", row)
		}
		r.must(heir.w.Resume(r.Context(), claim))
		done := r.awaitState(id, ledger.Completed)
		if done.Token != claim.Token || done.Attempt != 2 || done.Node != "n2" {
			r.Errorf("done: %+v", done)
		}
		r.wantWhole("one", claim.Token)
		r.wantWhole("two", claim.Token)
		r.wantNoClaims()
	})
}

// The owner is paused just before its manifests, its run is closed, and it goes on after its successor has finished: the
// tombstone refuses its manifest, its ledger write is fenced, and its void objects are gone.
func TestRule26_ZombieBeforeManifest(t *testing.T) {
	inRig(t, func(r *rig) {
		g1, g2 := storagetest.NewGate(), storagetest.NewGate()
		zombie := r.start("n1", nil, faults{
			"one": {storagetest.Stall(storagetest.Put, g1).On(manifestName)},
			"two": {storagetest.Stall(storagetest.Put, g2).On(manifestName)},
		})
		id := r.backup("all").ID
		<-g1.Reached()
		<-g2.Reached()
		old, err := r.led.Task(r.Context(), id)
		r.must(err)
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		for _, disk := range []string{"one", "two"} {
			if got := r.objects(disk); len(got) != 1 || !strings.HasSuffix(got[0], "/void") {
				r.Errorf("disk %s after the revert: %q", disk, got)
			}
		}
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
		g1.Release()
		g2.Release()
		r.wantNoClaims() // waits until the zombie has come to its end
		r.wantWhole("one", claim.Token)
		r.wantWhole("two", claim.Token)
		b := r.wantEntry(old.Backup, ledger.BackupCompleted)
		if b.Token != claim.Token {
			r.Errorf("entry: %+v", b)
		}
		if list, _ := r.led.Backups(r.Context(), ledger.BackupFilter{}); len(list) != 1 {
			r.Errorf("backups: %+v", list)
		}
	})
}

// The owner is paused at the end of an object, which comes to be after its successor's clean-up: when the owner goes on, it finds
// the tombstone and takes its object away.
func TestRule27_ZombieFinishesAnObject(t *testing.T) {
	inRig(t, func(r *rig) {
		g := storagetest.NewGate()
		zombie := r.start("n1", func(c *Config) { c.Catalog.Chain = nil }, faults{"one": {storagetest.StallEnd(storagetest.Put, g).On(source.PartData)}})
		id := r.backup("all").ID
		<-g.Reached()
		old, err := r.led.Task(r.Context(), id)
		r.must(err)
		heir := r.start("n2", nil, nil)
		_, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
		_, err = r.disks["one"].Put(r.Context(), ObjectPath(old.Backup, old.Token, source.PartData), storage.Bytes([]byte("late")), storage.Condition{})
		r.must(err)
		zombie.close(errors.New("its lease has run out")) // which it learns before it goes on
		g.Release()
		r.wantNoClaims() // waits until the zombie has come to its end
		r.wantWhole("one", claim.Token)
		for _, name := range r.objects("one") {
			if strings.Contains(name, strconv.FormatUint(old.Token, 10)) && !strings.HasSuffix(name, "/void") {
				r.Errorf("left of the void attempt: %s", name)
			}
		}
	})
}

// The owner is paused in the middle of its upload; what it stores after its successor's clean-up is refused or void.
func TestRule27_ZombieInUpload(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, goOn := blockAt(2 << 20)
		r.server.onWrite = hook
		zombie := r.start("n1", func(c *Config) { c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		<-reached
		old := r.await(id, "uploading", func(t ledger.Task) bool { return t.State == ledger.Uploading })
		heir := r.start("n2", nil, nil)
		_, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
		close(goOn)
		r.wantNoClaims()
		r.wantWhole("one", claim.Token)
		r.wantWhole("two", claim.Token)
	})
}

// The owner is paused when all manifests are made and the ledger does not know: its successor adopts the backup, and the
// owner's late write is fenced. Nothing is dumped a second time.
func TestZombieBeforeLedgerWriteIsAdopted(t *testing.T) {
	inRig(t, func(r *rig) {
		paused, goOn := make(chan struct{}), make(chan struct{})
		r.store.BeforeCommit(func(_ context.Context, txn embedded.Txn) {
			for _, p := range txn.Puts {
				if strings.HasPrefix(p.Key, "task/") && strings.Contains(string(p.Value), `"state":"completed"`) {
					r.store.BeforeCommit(nil)
					close(paused)
					<-goOn
				}
			}
		})
		zombie := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-paused
		old, err := r.led.Task(r.Context(), id)
		r.must(err)
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		if verdict != Settled {
			r.Fatalf("verdict %d, want settled by adoption", verdict)
		}
		r.must(heir.EndClaim(r.Context(), claim, true))
		close(goOn)
		r.wantNoClaims()
		if !zombie.states.refused(ledger.ErrFenced) {
			r.Error("the late write was not fenced")
		}
		done := r.awaitState(id, ledger.Completed)
		b := r.wantEntry(old.Backup, ledger.BackupCompleted)
		if b.Token != old.Token || done.Token != claim.Token || b.RawBytes == 0 || b.SHA256 == "" || len(b.Copies) != 2 {
			r.Errorf("task %+v, entry %+v", done, b)
		}
		r.wantWhole("one", old.Token)
		r.wantWhole("two", old.Token)
	})
}

// One of two manifests is not enough for `all`: the real one becomes void and the task runs again; for `any` it is
// adopted, and the other storage has a tombstone.
func TestRecoverWithOneManifest(t *testing.T) {
	for require, want := range map[string]Verdict{"all": Rerun, "any": Settled} {
		t.Run(require, func(t *testing.T) {
			inRig(t, func(r *rig) {
				gate := storagetest.NewGate()
				dead := r.start("n1", nil, faults{"two": {storagetest.Stall(storagetest.Put, gate).On(manifestName)}})
				id := r.backup(require).ID
				<-gate.Reached()
				old, err := r.led.Task(r.Context(), id)
				r.must(err)
				r.await(id, "one manifest", func(ledger.Task) bool { return len(r.objects("one")) == 3 })
				dead.kill(old.Token)
				heir := r.start("n2", nil, nil)
				verdict, claim, err := r.recoverBy(heir, dead, old)
				r.must(err)
				if verdict != want {
					r.Fatalf("verdict %d, want %d", verdict, want)
				}
				if want == Settled {
					r.must(heir.EndClaim(r.Context(), claim, true))
					r.wantWhole("one", old.Token)
					b := r.wantEntry(old.Backup, ledger.BackupCompleted)
					if b.Copies[0].State != "present" || b.Copies[1].State != "missing" {
						r.Errorf("copies: %+v", b.Copies)
					}
					return
				}
				r.must(heir.w.Resume(r.Context(), claim))
				r.awaitState(id, ledger.Completed)
				r.wantWhole("one", claim.Token)
				r.wantWhole("two", claim.Token)
			})
		})
	}
}

// The recoverer dies after its tombstones; the next one, under a larger token, still knows the dead attempt's token from
// the backup's entry and does the rest.
func TestRecovererDiesHalfWay(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, goOn := blockAt(2 << 20)
		r.server.onWrite = hook
		zombie := r.start("n1", func(c *Config) { c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		<-reached
		old := r.await(id, "uploading", func(t ledger.Task) bool { return t.State == ledger.Uploading })
		second := r.node("n2", nil, faults{"two": {storagetest.Fail(storagetest.Any, errBoom)}})
		_, _, err := r.recoverBy(second, zombie, old)
		if !errors.Is(err, ErrUnavailable) {
			r.Fatalf("storage away: %v", err)
		}
		r.store.CloseRun(second.run)
		third := r.start("n3", nil, nil)
		verdict, claim, err := r.recoverBy(third, zombie, old)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		r.must(third.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
		close(goOn)
		r.wantNoClaims()
		r.wantWhole("one", claim.Token)
		r.wantWhole("two", claim.Token)
	})
}

// The earlier recoverer is only slow: its write after the fence has moved is refused.
func TestEarlierRecovererIsFenced(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, _ := blockAt(0)
		r.server.onWrite = hook
		dead := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		old := r.await(id, "creating", func(t ledger.Task) bool { return t.State == ledger.Creating })
		dead.kill(old.Token)
		gate := storagetest.NewGate()
		slow := r.node("n2", nil, faults{"one": {storagetest.Stall(storagetest.List, gate)}})
		got := make(chan error, 1)
		g := r.fence(slow, dead, old)
		go func() { _, err := slow.w.Recover(context.Background(), g, "n2"); got <- err }()
		<-gate.Reached()
		r.store.CloseRun(slow.run)
		next := r.node("n3", nil, nil)
		verdict, _, err := r.recoverBy(next, dead, old)
		r.must(err)
		gate.Release()
		if err := <-got; !errors.Is(err, ledger.ErrFenced) || errors.Is(err, ErrUnavailable) {
			r.Errorf("the slow recoverer: %v", err)
		}
		if verdict != Rerun {
			r.Errorf("verdict %d", verdict)
		}
	})
}

// ErrUnavailable keeps everything as it is: the same recoverer goes on with the same token.
func TestRecoverAgainWithTheSameToken(t *testing.T) {
	inRig(t, func(r *rig) {
		gate := storagetest.NewGate()
		dead := r.start("n1", nil, faults{"one": {storagetest.Stall(storagetest.Put, gate).On(manifestName)}})
		id := r.backup("all").ID
		<-gate.Reached()
		old, err := r.led.Task(r.Context(), id)
		r.must(err)
		dead.kill(old.Token)
		heir := r.node("n2", nil, faults{"one": {storagetest.Fail(storagetest.Put, errBoom).Times(2)}})
		g := r.fence(heir, dead, old)
		for range 2 {
			if _, err := heir.w.Recover(r.Context(), g, "n2"); !errors.Is(err, ErrUnavailable) {
				r.Fatalf("storage away: %v", err)
			}
		}
		r.store.SetDown(true)
		if _, err := heir.w.Recover(r.Context(), g, "n2"); !errors.Is(err, ErrUnavailable) {
			r.Fatalf("ledger away: %v", err)
		}
		r.store.SetDown(false)
		verdict, err := heir.w.Recover(r.Context(), g, "n2")
		r.must(err)
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if verdict != Rerun || row.Attempt != 2 {
			r.Errorf("verdict %d, row %+v", verdict, row)
		}
		if _, err := heir.w.Recover(r.Context(), ledger.Guard{}, "n2"); err == nil {
			r.Error("recovered without a fence")
		}
	})
}

// What a recoverer does instead of running the task again.
func TestRecoverEnds(t *testing.T) {
	for name, c := range map[string]struct {
		plan func(*PlannerConfig)
		prep func(r *rig, id string)
		want ledger.State
		text string
	}{
		"too many attempts": {plan: func(c *PlannerConfig) { c.MaxAttempts = 1 }, want: ledger.Failed, text: "gave up after 1 attempts"},
		"on_failure revert": {plan: func(c *PlannerConfig) { c.OnFailure = "revert" }, want: ledger.Reverted, text: "reverted"},
		"cancel requested": {want: ledger.Cancelled, text: "cancelled by ann", prep: func(r *rig, id string) {
			r.must(r.led.RequestCancel(r.Context(), id, "ann"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				gate := storagetest.NewGate()
				dead := r.start("n1", nil, faults{"one": {storagetest.Stall(storagetest.Put, gate).On(manifestName)}})
				task, err := r.planner(c.plan).PlanBackup(r.Context(), BackupRequest{Database: "shop"})
				r.must(err)
				<-gate.Reached()
				old, err := r.led.Task(r.Context(), task.ID)
				r.must(err)
				dead.kill(old.Token)
				if c.prep != nil {
					c.prep(r, task.ID)
				}
				heir := r.node("n2", nil, nil)
				verdict, _, err := r.recoverBy(heir, dead, old)
				r.must(err)
				done := r.awaitState(task.ID, c.want)
				if verdict != Settled || !strings.Contains(done.Error, c.text) {
					r.Errorf("verdict %d, task %+v", verdict, done)
				}
				r.wantEntry(task.Backup, ledger.BackupGone)
				for _, disk := range []string{"one", "two"} {
					if got := r.objects(disk); len(got) != 1 || !strings.HasSuffix(got[0], "/void") {
						r.Errorf("disk %s: %q", disk, got)
					}
				}
				if v, _, err := r.recoverAgain(heir, dead, done); v != Settled || err != nil {
					r.Errorf("recovery of an ended task: %d, %v", v, err)
				}
			})
		})
	}
}

// recoverAgain lets the same heir recover once more, as after a crash before its Release.
func (r *rig) recoverAgain(heir, dead *node, t ledger.Task) (Verdict, Claim, error) {
	r.store.CloseRun(heir.run)
	next := r.node(heir.name+"b", nil, nil)
	return r.recoverBy(next, dead, t)
}
