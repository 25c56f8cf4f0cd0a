package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// asked notes the calls of a ledger by name.
type asked struct {
	ledger.Ledger
	mu    sync.Mutex
	calls []string
}

func (a *asked) note(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
}

func (a *asked) ShutOut(ctx context.Context, f ledger.Fence) error {
	a.note("shut out")
	return a.Ledger.ShutOut(ctx, f)
}

func (a *asked) Take(ctx context.Context, g ledger.Guard, id, node string) (ledger.Task, error) {
	a.note("take")
	return a.Ledger.Take(ctx, g, id, node)
}

func (a *asked) Task(ctx context.Context, id string) (ledger.Task, error) {
	a.note("task")
	return a.Ledger.Task(ctx, id)
}

func (a *asked) Backup(ctx context.Context, id string) (ledger.Backup, error) {
	a.note("backup")
	return a.Ledger.Backup(ctx, id)
}

// PROTOCOL.md 23: a recoverer shuts its predecessors out before it looks at anything.
func TestRule23_RecoverShutsOutFirst(t *testing.T) {
	inRig(t, func(r *rig) {
		hook, reached, _ := blockAt(0)
		r.server.onWrite = hook
		dead := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-reached
		task, err := r.led.Task(r.Context(), id)
		r.must(err)
		dead.kill(task.Token)
		seen := &asked{Ledger: r.led}
		heir := r.node("n2", func(c *Config) { c.Ledger = seen }, nil)
		_, _, err = r.recoverBy(heir, dead, task)
		r.must(err)
		if len(seen.calls) < 3 || seen.calls[0] != "shut out" || !slices.Contains(seen.calls, "take") {
			r.Errorf("a recoverer asked the ledger for %q", seen.calls)
		}
	})
}

// planCopy makes a backup and asks for its restore; the swap runs hook first, once.
func (r *rig) planCopy(hook func(ctx context.Context, id string) error) ledger.Task {
	r.Helper()
	b := r.backup("all")
	r.awaitState(b.ID, ledger.Completed)
	once := true
	var id string
	r.server.onCommit = func(ctx context.Context) error {
		if !once {
			return nil
		}
		once = false
		return hook(ctx, id)
	}
	task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: b.Backup, Target: "copy"})
	r.must(err)
	id = task.ID
	return task
}

// From the swap on a cancel comes too late: it neither interrupts the swap nor hides it.
func TestCancelDoesNotReachTheSwap(t *testing.T) {
	inRig(t, func(r *rig) {
		r.start("n1", nil, nil)
		task := r.planCopy(func(ctx context.Context, id string) error {
			r.must(r.planner(nil).Cancel(r.Context(), id, "ann"))
			synctest.Wait()
			return context.Cause(ctx)
		})
		r.awaitState(task.ID, ledger.Completed)
	})
}

// The swap is done, and the write that says so fails for good: its owner does not call the restore failed. Whoever takes
// the task next reads from the server that it was done.
func TestSwapThatTheLedgerDoesNotKnow(t *testing.T) {
	inRig(t, func(r *rig) {
		led := &refusing{Ledger: r.led}
		r.start("n1", func(c *Config) { c.Ledger = led }, nil)
		task := r.planCopy(func(context.Context, string) error { return nil })
		done := r.awaitState(task.ID, ledger.Completed)
		if r.server.commits != 1 || done.Attempt != 2 {
			r.Errorf("%d swaps, attempt %d", r.server.commits, done.Attempt)
		}
		if _, there := r.server.get("copy"); !there {
			r.Error("the restored database is gone")
		}
	})
}

// refusing refuses the first write that completes a restore.
type refusing struct {
	ledger.Ledger
	once sync.Once
}

func (l *refusing) Write(ctx context.Context, g ledger.Guard, c ledger.Change) (err error) {
	if c.Task.Type == ledger.Restore && c.Task.State == ledger.Completed && c.Task.Prepared != (source.Prepared{}) {
		l.once.Do(func() { err = errors.New("row does not fit") })
	}
	if err != nil {
		return err
	}
	return l.Ledger.Write(ctx, g, c)
}
