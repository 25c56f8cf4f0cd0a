package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestStartStopLaw(t *testing.T) {
	inRig(t, func(r *rig) {
		early := r.node("n1", nil, nil)
		early.w.Stop()
		early.w.Stop()
		if err := early.w.Start(r.Context()); !errors.Is(err, ErrStopped) {
			r.Errorf("start after stop: %v", err)
		}
		n := r.start("n2", nil, nil)
		if err := n.w.Start(r.Context()); err == nil {
			r.Error("started twice")
		}
		done := make(chan struct{})
		for range 4 {
			go func() { n.w.Stop(); done <- struct{}{} }()
		}
		for range 4 {
			<-done
		}
		if err := n.w.Resume(r.Context(), Claim{Item: "nope"}); err == nil {
			r.Error("resumed an unknown task")
		}
	})
}

// A planned stop reverts what runs, plans it again without counting the attempt, and gives the claim back.
func TestStopPlansAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, _ := blockAt(2 << 20)
		r.server.onWrite = hook
		first := r.start("n1", func(c *Config) { c.StopGrace = 10 * time.Second; c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		<-reached
		began := time.Now()
		first.w.Stop()
		if took := time.Since(began); took != 10*time.Second {
			r.Errorf("stop took %s, the grace is 10 s", took)
		}
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if row.State != ledger.Planned || row.Attempt != 0 || row.Error != "" {
			r.Errorf("row after stop: %+v", row)
		}
		r.wantObjects("one")
		r.wantNoClaims()
		r.start("n2", nil, nil)
		done := r.awaitState(id, ledger.Completed)
		if done.Attempt != 1 || done.Node != "n2" || done.Token <= row.Token {
			r.Errorf("done: %+v", done)
		}
		r.wantWhole("one", done.Token)
	})
}

// Who is told to hurry waits for no grace, whenever it is told: what runs is planned again at once.
func TestHurriedStopPlansAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, _ := blockAt(2 << 20)
		r.server.onWrite = hook
		n := r.start("n1", func(c *Config) { c.StopGrace = time.Hour; c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		<-reached
		began := time.Now()
		time.AfterFunc(3*time.Second, n.w.Hurry)
		n.w.Stop()
		if took := time.Since(began); took != 3*time.Second {
			r.Errorf("stop took %s, and was hurried after 3 s", took)
		}
		n.w.Hurry()
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if row.State != ledger.Planned || row.Attempt != 0 || row.Error != "" {
			r.Errorf("row after stop: %+v", row)
		}
		r.wantNoClaims()
	})
}

func TestStopWaitsForWhatEnds(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(5<<20))
		n := r.start("n1", func(c *Config) { c.StopGrace = time.Minute; c.RateLimit = 1 << 20 }, nil)
		id := r.backup("all").ID
		r.await(id, "uploading", func(t ledger.Task) bool { return t.State == ledger.Uploading })
		n.w.Stop()
		r.awaitState(id, ledger.Completed)
	})
}

// When the ledger is away a stop ends all the same, and the claim stays for recovery.
func TestStopWithoutLedger(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, _ := blockAt(0)
		r.server.onWrite = hook
		n := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		r.store.SetDown(true)
		n.w.Stop()
		r.store.SetDown(false)
		if r.store.Claims() != 1 {
			r.Error("the claim of a task in an unknown state was given back")
		}
		old, err := r.led.Task(r.Context(), id)
		r.must(err)
		heir := r.start("n2", nil, nil)
		verdict, claim, err := r.recoverBy(heir, n, old)
		r.must(err)
		if verdict != Rerun {
			r.Fatalf("verdict %d", verdict)
		}
		r.must(heir.w.Resume(r.Context(), claim))
		r.awaitState(id, ledger.Completed)
	})
}

func TestCancel(t *testing.T) {
	hook := func(r *rig) chan struct{} {
		h, reached, _ := blockAt(2 << 20)
		r.server.onWrite = h
		return reached
	}
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		reached := hook(r)
		r.start("n1", func(c *Config) { c.Catalog.Chain = nil }, nil)
		task := r.backup("all")
		<-reached
		p := r.planner(nil)
		r.must(p.Cancel(r.Context(), task.ID, "ann"))
		done := r.awaitState(task.ID, ledger.Cancelled)
		if done.Error != "cancelled by ann" || done.CancelBy != "ann" {
			r.Errorf("task: %+v", done)
		}
		r.wantObjects("one")
		r.wantObjects("two")
		r.wantEntry(task.Backup, ledger.BackupGone)
		r.wantNoClaims()
		var bad *RequestError
		if err := p.Cancel(r.Context(), task.ID, "ann"); !errors.As(err, &bad) || !errors.Is(err, ledger.ErrFinal) {
			r.Errorf("cancel after the end: %v", err)
		}
		if err := p.Cancel(r.Context(), "nope", "ann"); !errors.As(err, &bad) || bad.Hint == "" || !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("cancel of an unknown task: %v", err)
		}
	})
}

// A cancel of a task that nobody runs is not lost: the first node that sees it ends it without starting it.
func TestCancelPlanned(t *testing.T) {
	inRig(t, func(r *rig) {
		dumps := 0
		r.server.onDump = func(context.Context) error { dumps++; return nil }
		task := r.backup("all")
		r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
		r.start("n1", nil, nil)
		r.awaitState(task.ID, ledger.Cancelled)
		r.wantNoClaims()
		if dumps != 0 {
			r.Error("a cancelled task was begun")
		}
	})
}

// A cancel while manifests are made leaves tombstones where one may be, so that none can appear later.
func TestCancelWhileSealing(t *testing.T) {
	inRig(t, func(r *rig) {
		gate := storagetest.NewGate()
		r.start("n1", nil, faults{"two": {storagetest.Stall(storagetest.Put, gate).On(manifestName).Times(1)}})
		task := r.backup("all")
		<-gate.Reached()
		r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
		done := r.awaitState(task.ID, ledger.Cancelled)
		r.wantNoClaims()
		for _, disk := range []string{"one", "two"} {
			r.wantObjects(disk, fmt.Sprintf("%d/void", done.Token))
		}
		gate.Release()
	})
}

func TestCancelRestore(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		gate := storagetest.NewGate()
		r.start("n1", nil, faults{"one": {storagetest.StallAt(storagetest.Get, 1000, gate).On("/data")}})
		task := r.restoreTask(b.Backup, nil)
		<-gate.Reached()
		r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
		r.awaitState(task.ID, ledger.Cancelled)
		r.wantNoClaims()
		if len(r.server.names()) != 1 || r.server.commits != 0 {
			r.Errorf("databases: %q", r.server.names())
		}
	})
}

// From the swap on a cancel comes too late, and the state says what really happened.
func TestCancelDuringSwapIsTooLate(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		swapping, goOn := make(chan struct{}), make(chan struct{})
		r.server.onCommit = func(ctx context.Context) error {
			close(swapping)
			<-goOn
			return ctx.Err()
		}
		r.start("n1", nil, nil)
		task := r.restoreTask(b.Backup, nil)
		<-swapping
		r.must(r.planner(nil).Cancel(r.Context(), task.ID, "ann"))
		synctest.Wait()
		close(goOn)
		r.awaitState(task.ID, ledger.Completed)
		if r.server.commits != 1 {
			r.Errorf("%d swaps", r.server.commits)
		}
	})
}

// Netiquette: new work waits for the fence on the node; what was adopted does not.
func TestFencedNodeWaits(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.node("n1", nil, nil)
		n.fenced = make(chan struct{})
		r.must(n.w.Start(r.Context()))
		task := r.backup("all")
		timer := time.NewTimer(time.Hour)
		<-timer.C
		row, err := r.led.Task(r.Context(), task.ID)
		r.must(err)
		if row.State != ledger.Planned || r.store.Claims() != 0 {
			r.Errorf("a fenced node began: %+v", row)
		}
		close(n.fenced)
		r.awaitState(task.ID, ledger.Completed)
	})
}

// Many tasks on three nodes: each is done exactly once, and no node runs more than it may.
func TestTasksAreSharedOut(t *testing.T) {
	inRig(t, func(r *rig) {
		const tasks, nodes = 30, 3
		running := make(chan struct{}, nodes*2)
		var dumps atomic.Int32
		r.server.onDump = func(context.Context) error {
			dumps.Add(1)
			select {
			case running <- struct{}{}:
				return nil
			default:
				return errors.New("more than two a node at once")
			}
		}
		r.server.onWrite = func(_ context.Context, part string, sent int64) error {
			if part == source.PartDatabase && sent > 0 {
				<-running
			}
			return nil
		}
		for i := range nodes {
			r.start(fmt.Sprintf("n%d", i), func(c *Config) { c.MaxConcurrent = 2 }, nil)
		}
		var planned []ledger.Task
		for range tasks {
			planned = append(planned, r.backup("all"))
		}
		for _, t := range planned {
			done := r.awaitState(t.ID, ledger.Completed)
			if done.Attempt != 1 {
				r.Errorf("task %s took %d attempts", t.ID, done.Attempt)
			}
		}
		if n := dumps.Load(); n != tasks {
			r.Errorf("%d dumps of %d tasks", n, tasks)
		}
		r.wantNoClaims()
	})
}

// A run that is closed ends its tasks without a write, and without touching what recovery will look at.
func TestClosedRunHoldsStill(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(3<<20))
		hook, reached, _ := blockAt(2 << 20)
		r.server.onWrite = hook
		n := r.start("n1", func(c *Config) { c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		<-reached
		old := r.await(id, "uploading", func(t ledger.Task) bool { return t.State == ledger.Uploading })
		n.kill(old.Token)
		synctest.Wait()
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if row.State != ledger.Uploading || r.store.Claims() != 1 {
			r.Errorf("row %+v, %d claims", row, r.store.Claims())
		}
	})
}

// A ledger write that is fenced ends the whole attempt, though the node has not heard of the end of its run.
func TestFencedWriteEndsTheAttempt(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.set("shop", patternOf(12<<20))
		n := r.start("n1", func(c *Config) { c.RateLimit = 1 << 20; c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		r.await(id, "uploading", func(t ledger.Task) bool { return t.State == ledger.Uploading })
		r.store.CloseRun(n.run)
		timer := time.NewTimer(5 * time.Second)
		<-timer.C // a progress write comes at least each 2 s
		if ids := n.w.runningIDs(); len(ids) != 0 {
			r.Errorf("still running: %q", ids)
		}
		if !n.states.refused(ledger.ErrFenced) {
			r.Error("no write was refused")
		}
	})
}

func TestResumeNeedsItsToken(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.start("n1", nil, nil)
		task := r.awaitState(r.backup("all").ID, ledger.Completed)
		err := n.w.Resume(r.Context(), Claim{Component: "backup", Item: task.ID, Token: task.Token})
		if !errors.Is(err, ledger.ErrFenced) || !strings.Contains(err.Error(), "completed") {
			r.Errorf("resume of an ended task: %v", err)
		}
	})
}

func TestNewWorkerChecksItsConfig(t *testing.T) {
	inRig(t, func(r *rig) {
		n := r.node("n1", nil, nil)
		for name, edit := range map[string]func(*Config){
			"no ledger": func(c *Config) { c.Ledger = nil },
			"no claims": func(c *Config) { c.Claims = nil },
			"no gate":   func(c *Config) { c.Gate = nil },
			"many":      func(c *Config) { c.MaxConcurrent = 65 },
			"negative":  func(c *Config) { c.StopGrace = -1 },
			"processor": func(c *Config) { c.Catalog.Chain = []string{"nope"} },
		} {
			cfg := n.w.cfg
			edit(&cfg)
			if _, err := NewWorker(cfg); err == nil {
				r.Errorf("%s: accepted", name)
			}
		}
	})
}
