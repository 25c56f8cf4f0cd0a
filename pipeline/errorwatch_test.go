package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// endless is a ledger that refuses ends of tasks for good, for a while.
type endless struct {
	ledger.Ledger
	left int
}

func (r *endless) Write(ctx context.Context, g ledger.Guard, c ledger.Change) error {
	if r.left > 0 && (c.Task.State.Final() || c.Task.State == ledger.Planned) {
		r.left--
		return errors.New("the row does not fit")
	}
	return r.Ledger.Write(ctx, g, c)
}

// An attempt whose end could not be written keeps its claim, and its run lives on: the failure is noted, the watcher gives
// the claim back within its minute, and whoever takes the task next reverts what was left. Nobody looks at it again.
func TestErrorWatcherRevertsWhatIsKept(t *testing.T) {
	inRig(t, func(r *rig) {
		fails := true
		r.server.onWrite = func(_ context.Context, _ string, sent int64) error {
			if fails && sent > 300_000 {
				fails = false
				return errBoom
			}
			return nil
		}
		n := r.start("n1", func(c *Config) { c.Ledger = &endless{Ledger: r.led, left: 1}; c.Catalog.Chain = nil }, nil)
		id := r.backup("all").ID
		began := time.Now()
		r.must(pause(r.Context(), 30*time.Second))
		row, err := r.led.Task(r.Context(), id)
		r.must(err)
		if r.store.Claims() != 1 || row.State.Final() {
			r.Fatalf("%d claims, row %+v", r.store.Claims(), row)
		}
		done := r.awaitState(id, ledger.Completed)
		if took := time.Since(began); took > 3*time.Minute || done.Attempt != 2 || done.Token <= row.Token {
			r.Errorf("after %s: %+v", took, done)
		}
		r.wantWhole("one", done.Token)
		if n, err := n.w.cfg.Ledger.HandleErrors(r.Context(), 10, n.w.toRevert); err != nil || n != 0 {
			r.Errorf("%d errors are left, %v", n, err)
		}
		r.wantNoClaims()
	})
}
