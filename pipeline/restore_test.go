package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestRestore(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		r.server.set("shop", []byte("changed since"))
		n := r.start("n1", nil, nil)
		task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Database: "shop", Target: "copy"})
		r.must(err)
		done := r.awaitState(task.ID, ledger.Completed)
		if got := n.states.seen(); got != "[downloading applying deprocessors restoring completed]" {
			r.Errorf("states: %s", got)
		}
		entry := r.wantEntry(b.Backup, ledger.BackupCompleted)
		if done.Progress.Read != entry.Copies[0].Bytes || done.Progress.Estimate != done.Progress.Read || done.Prepared.Target != "copy" {
			r.Errorf("task: %+v", done)
		}
		got, _ := r.server.get("copy")
		old, _ := r.server.get("shop")
		if !bytes.Equal(got.data, patternOf(700_000)) || string(old.data) != "changed since" || len(r.server.names()) != 2 {
			r.Errorf("databases %q, copy has %d bytes", r.server.names(), len(got.data))
		}
		r.wantNoClaims()
	})
}

func TestRestoreReplacesAndKeepsTheOld(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		r.server.set("shop", []byte("changed since"))
		r.start("n1", nil, nil)
		done := r.awaitState(r.restoreTask(b.Backup, nil).ID, ledger.Completed)
		undo, ok := r.server.get(done.Prepared.Undo)
		if !ok || string(undo.data) != "changed since" {
			r.Errorf("the undo %q: %v", done.Prepared.Undo, ok)
		}
	})
}

// Whatever is wrong with what a storage gives: the source never sees a clean end of it, and the target stays.
func TestRestoreOfDamagedObjects(t *testing.T) {
	for name, c := range map[string]struct {
		fault *storagetest.Fault
		harm  func(r *rig, b ledger.Task)
		text  string
	}{
		"cut":        {fault: storagetest.Cut(50_000).On("/data"), text: "bytes"},
		"cut at 0":   {fault: storagetest.Cut(0).On("/data"), text: "bytes"},
		"flipped":    {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartData, flip) }},
		"longer":     {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartData, longer) }, text: "more than"},
		"other part": {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartDatabase, flip) }},
		"missing": {harm: func(r *rig, b ledger.Task) {
			r.must(r.disks["one"].Delete(r.Context(), ObjectPath(b.Backup, b.Token, source.PartData)))
		}, text: "not found"},
	} {
		for _, chain := range []string{"zstd", ""} {
			t.Run(name+" "+chain, func(t *testing.T) {
				inRig(t, func(r *rig) {
					maker := r.start("maker", func(cfg *Config) {
						if chain == "" {
							cfg.Catalog.Chain = nil
						}
					}, nil)
					b := r.awaitState(r.backup("all").ID, ledger.Completed)
					maker.w.Stop()
					if c.harm != nil {
						c.harm(r, b)
					}
					var fs faults
					if c.fault != nil {
						fs = faults{"one": {c.fault}}
					}
					r.start("n1", nil, fs)
					task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: b.Backup, Target: "copy", Storage: "one"})
					r.must(err)
					done := r.awaitState(task.ID, ledger.Failed)
					if !strings.Contains(done.Error, c.text) || !strings.Contains(done.Hint, "another storage") || done.Attempt != 1 {
						r.Errorf("task: %+v", done)
					}
					if len(r.server.names()) != 1 || r.server.commits != 0 {
						r.Errorf("databases: %q", r.server.names())
					}
				})
			})
		}
	}
}

// rewrite changes a stored object behind the program's back.
func (r *rig) rewrite(b ledger.Task, part string, change func([]byte) []byte) {
	r.Helper()
	st, name := r.disks["one"], ObjectPath(b.Backup, b.Token, part)
	obj, _, err := st.Get(r.Context(), name)
	r.must(err)
	data, err := io.ReadAll(obj)
	r.must(err)
	r.must(obj.Close())
	r.must(st.Delete(r.Context(), name))
	_, err = st.Put(r.Context(), name, bytes.NewReader(change(data)), storage.Condition{})
	r.must(err)
}

func flip(data []byte) []byte   { data[len(data)/2] ^= 1; return data }
func longer(data []byte) []byte { return append(data, 'x') }

func TestRestoreRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		prep func(r *rig)
		text string
		hint string
	}{
		"target exists": {text: "target database exists", hint: "another target"},
		"commit fails": {text: "boom", prep: func(r *rig) {
			r.server.onCommit = func(context.Context) error { return errBoom }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				b := r.filled()
				if c.prep != nil {
					c.prep(r)
				}
				r.start("n1", nil, nil)
				task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: b.Backup, Replace: c.prep != nil})
				r.must(err)
				done := r.awaitState(task.ID, ledger.Failed)
				if !strings.Contains(done.Error, c.text) || !strings.Contains(done.Hint, c.hint) {
					r.Errorf("task: %+v", done)
				}
				if len(r.server.names()) != 1 {
					r.Errorf("databases: %q", r.server.names())
				}
				r.wantNoClaims()
			})
		})
	}
}

func TestRestoreExpires(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		task := r.restoreTask(b.Backup, func(c *PlannerConfig) { c.StartWithin = time.Minute })
		timer := time.NewTimer(2 * time.Minute)
		<-timer.C
		r.start("n1", nil, nil)
		done := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(done.Error, "not begun in time") || r.server.commits != 0 {
			r.Errorf("task: %+v", done)
		}
	})
}

// A swap whose outcome is not known is neither failed nor repeated blindly: under a new token it is read from the target.
func TestRestoreUnclearCommit(t *testing.T) {
	for name, happened := range map[string]bool{"happened": true, "did not": false} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				b := r.filled()
				first := true
				r.server.onCommit = func(context.Context) error {
					if !first {
						return nil
					}
					first = false
					if happened {
						r.server.swapByHand()
					}
					return source.ErrUnavailable
				}
				r.start("n1", nil, nil)
				done := r.awaitState(r.restoreTask(b.Backup, nil).ID, ledger.Completed)
				if r.server.commitCount() != 1 || done.Attempt != 2 {
					r.Errorf("%d swaps, task %+v", r.server.commits, done)
				}
				r.wantNoClaims()
			})
		})
	}
}

// swapByHand swaps the only prepared database in, as a server does whose answer is lost.
func (s *fakeServer) swapByHand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, db := range s.byName {
		if target, _, ok := strings.Cut(name, "__fp_"); ok {
			delete(s.byName, name)
			s.byName[target] = fakeDB{id: db.id}
			s.commits++
			return
		}
	}
}

// The newest valid manifest counts, void ones and unreadable storages are passed over.
func TestPick(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		later := Tombstone(b.Backup, b.Token+5, "test", time.Now())
		_, err := entomb(r.Context(), r.disks["one"], later)
		r.must(err)
		all := r.node("n1", nil, nil).w.cfg.Catalog
		got, err := pick(r.Context(), all, b.Backup, nil)
		if err != nil || got.manifest.Token != b.Token || got.name != "one" {
			r.Errorf("picked %+v, %v", got, err)
		}
		if got, err = pick(r.Context(), all, b.Backup, []string{"two", "one"}); err != nil || got.name != "two" {
			r.Errorf("picked %s, %v", got.name, err)
		}
		bad := r.node("n2", nil, faults{"one": {storagetest.Fail(storagetest.List, errBoom)}}).w.cfg.Catalog
		if got, err = pick(r.Context(), bad, b.Backup, nil); err != nil || got.name != "two" {
			r.Errorf("picked %s, %v", got.name, err)
		}
		if _, err = pick(r.Context(), bad, b.Backup, []string{"one", "nope"}); !errors.Is(err, errBoom) || !passing(err) {
			r.Errorf("no storage can be read: %v", err)
		}
		r.must(Remove(r.Context(), r.disks["one"], b.Backup, b.Token))
		r.must(Remove(r.Context(), r.disks["one"], b.Backup, b.Token))
		r.wantObjects("one", "1006/void")
		if _, err = pick(r.Context(), all, b.Backup, []string{"one"}); !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("nothing but a tombstone: %v", err)
		}
	})
}
