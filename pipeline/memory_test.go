package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// notebook is a Memory that may be away for some calls.
type notebook struct {
	mu   sync.Mutex
	away int
	done []string
	held func(task string) bool // the task's claim is held when it is noted
	bad  []string
}

func (n *notebook) Remember(_ context.Context, t ledger.Task) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away > 0 {
		n.away--
		return errors.New("no quorum")
	}
	if n.held != nil && !n.held(t.ID) {
		n.bad = append(n.bad, t.ID)
	}
	if !slices.Contains(n.done, t.ID) {
		n.done = append(n.done, t.ID)
	}
	return nil
}

func (n *notebook) Done(task string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.done, task)
}

func (n *notebook) set(done ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done = done
}

// TestCompletedIsRemembered: a restore and a delete are remembered under their claims, however often that fails; a backup is
// not. A ledger that wants one of them done once more, as one of last night does, gets nobody to do it, and people are told.
func TestCompletedIsRemembered(t *testing.T) {
	inRig(t, func(r *rig) {
		book := &notebook{away: 3, held: func(string) bool { return r.store.Claims() > 0 }}
		n := r.start("n1", func(c *Config) { c.Memory = book }, nil)
		first := r.awaitState(r.backup("all").ID, ledger.Completed)
		r.awaitState(r.backup("all").ID, ledger.Completed) // the last good one is never deleted
		restore, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: first.Backup, Target: "copy"})
		r.must(err)
		r.awaitState(restore.ID, ledger.Completed)
		gone, err := r.delete(first.Backup, nil, 0)
		r.must(err)
		r.awaitState(gone.ID, ledger.Completed)
		r.must(pause(r.Context(), time.Minute)) // while it is not remembered the claim is held
		r.wantNoClaims()
		if len(book.done) != 2 || !book.Done(restore.ID) || !book.Done(gone.ID) || book.away != 0 || len(book.bad) != 0 {
			r.Errorf("remembered %q, away %d times more, without a claim %q", book.done, book.away, book.bad)
		}

		for _, old := range []ledger.Task{restore, gone} { // as they were when they were planned
			old.ID, old.Flight, old.StartBy = NewID(time.Now()), "", time.Time{}
			book.set(old.ID)
			r.must(r.led.Plan(r.Context(), old))
			n.w.wakeAll()
			r.must(pause(r.Context(), time.Hour))
			if row, err := r.led.Task(r.Context(), old.ID); err != nil || row.Attempt != 0 || row.Token != 0 {
				r.Errorf("a completed %s was claimed: %+v, %v", old.Type, row, err)
			}
			if why := Waits(old, Around{Members: map[string]Abilities{"n1": {}}, Done: true}); len(why) == 0 || !strings.Contains(why[0], "remembered as completed") {
				r.Errorf("it waits: %q", why)
			}
			book.set()
			n.w.wakeAll()
			r.await(old.ID, "begun", func(t ledger.Task) bool { return t.Attempt > 0 })
		}
	})
}

// TestOwnerDiesBeforeItIsRemembered: the ledger says completed, and the owner is gone before the memory does: who recovers the
// task makes up for it, and nobody does it again.
func TestOwnerDiesBeforeItIsRemembered(t *testing.T) {
	inRig(t, func(r *rig) {
		stuck := &notebook{away: 1 << 30}
		dead := r.start("n1", func(c *Config) { c.Memory = stuck }, nil)
		first := r.awaitState(r.backup("all").ID, ledger.Completed)
		restore, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: first.Backup, Target: "copy"})
		r.must(err)
		row := r.awaitState(restore.ID, ledger.Completed)
		synctest.Wait()
		if r.store.Claims() != 1 {
			r.Fatalf("%d claims: it is not remembered, and the claim has ended", r.store.Claims())
		}
		dead.close(errors.New("it dies"))
		book := &notebook{}
		heir := r.node("n2", func(c *Config) { c.Memory = book }, nil)
		if verdict, _, err := r.recoverBy(heir, dead, row); err != nil || verdict != Settled || !book.Done(row.ID) {
			r.Errorf("verdict %d, %v, remembered %q", verdict, err, book.done)
		}
	})
}
