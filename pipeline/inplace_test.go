package pipeline

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

func (r *rig) inPlaceTask(backup string) ledger.Task {
	r.Helper()
	t, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: backup, Replace: true, Choices: source.RestoreChoices{InPlace: true}})
	r.must(err)
	return t
}

func TestRestoreInPlace(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		r.server.set("shop", []byte("changed since"))
		r.start("n1", nil, nil)
		done := r.awaitState(r.inPlaceTask(b.Backup).ID, ledger.Completed)
		if now, _ := r.server.get("shop"); string(now.data) != string(patternOf(700_000)) || len(r.server.names()) != 1 {
			r.Errorf("target has %d bytes, databases %q", len(now.data), r.server.names())
		}
		if !done.Prepared.InPlace || done.Prepared.Undo != "" || !done.Choices.InPlace {
			r.Errorf("task %+v", done)
		}
	})
}

// The owner is paused before its COMMIT and goes on after its successor's: it fails, and what users wrote since stays.
func TestZombieBeforeCommitInPlace(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
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
		task := r.inPlaceTask(b.Backup)
		<-paused
		old, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		if old.State != ledger.Restoring || !old.Prepared.InPlace {
			r.Fatalf("row before the commit: %+v", old)
		}
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, zombie, old)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(task.ID, ledger.Completed)
		r.server.set("shop", []byte("of users"))
		close(goOn)
		r.wantNoClaims()
		if now, _ := r.server.get("shop"); string(now.data) != "of users" || r.server.commits != 1 {
			r.Errorf("target %.20q, %d commits", now.data, r.server.commits)
		}
	})
}

// The owner died after its COMMIT, before the ledger knew: the restore happened, once, whether its row says where to look
// (it always does) or was lost with an older copy of the ledger.
func TestCommittedInPlaceIsNotRepeated(t *testing.T) {
	for name, recorded := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				b := r.filled()
				dead := r.node("n1", nil, nil)
				r.server.onCommit = func(context.Context) error {
					r.store.CloseRun(dead.run)
					return nil
				}
				r.must(dead.w.Start(context.Background()))
				task := r.inPlaceTask(b.Backup)
				r.await(task.ID, "committed", func(ledger.Task) bool { return r.server.commitCount() == 1 })
				old, err := r.led.Task(r.Context(), task.ID)
				r.must(err)
				dead.kill(old.Token)
				r.server.onCommit = nil
				r.server.set("shop", []byte("of users"))
				if !recorded {
					old.Prepared = source.Prepared{}
				}
				heir := r.start("n2", nil, nil)
				verdict, _, err := r.recoverBy(heir, dead, old)
				r.must(err)
				r.awaitState(task.ID, ledger.Completed)
				if now, _ := r.server.get("shop"); verdict != Settled || r.server.commits != 1 || string(now.data) != "of users" {
					r.Errorf("verdict %d, %d commits, target %.20q", verdict, r.server.commits, now.data)
				}
			})
		})
	}
}

// An attempt that finds at its beginning that an earlier one of its task has committed has nothing left to do.
func TestAttemptFindsCommitInPlace(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		task := r.inPlaceTask(b.Backup)
		r.server.inPlace[task.ID] = true
		r.start("n1", nil, nil)
		r.awaitState(task.ID, ledger.Completed)
		if r.server.commits != 0 {
			r.Errorf("%d commits", r.server.commits)
		}
	})
}

// A recoverer knows where to look even when the dead attempt recorded nothing.
func TestKnown(t *testing.T) {
	if p := known(ledger.Task{Target: "x", Choices: source.RestoreChoices{InPlace: true}}); !p.InPlace || p.Target != "x" {
		t.Errorf("known: %+v", p)
	}
	if p := known(ledger.Task{Target: "x"}); p != (source.Prepared{}) {
		t.Errorf("known: %+v", p)
	}
}

// What was asked of a dump reaches the source, and is in the row.
func TestDumpOptionsReachTheSource(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", nil, nil)
		want := source.DumpOptions{Schemas: []string{"a"}, ExcludeTables: []string{"b.c"}, NoGlobals: true}
		task, err := r.planner(nil).PlanBackup(r.Context(), BackupRequest{Database: "shop", Dump: want})
		r.must(err)
		done := r.awaitState(task.ID, ledger.Completed)
		if !reflect.DeepEqual(done.Dump, want) || !reflect.DeepEqual(r.server.asked, []source.DumpOptions{want}) {
			r.Errorf("row %+v, asked %+v", done.Dump, r.server.asked)
		}
	})
	inRig(t, func(r *rig) {
		r.filled()
		if len(r.server.asked) != 0 {
			r.Errorf("asked %+v without options", r.server.asked)
		}
		var bad *RequestError
		if _, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: "nope", Choices: source.RestoreChoices{InPlace: true}}); !errors.As(err, &bad) {
			r.Errorf("%v", err)
		}
	})
}
