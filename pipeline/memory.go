package pipeline

import (
	"context"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// A Memory remembers that restores and deletes were completed, apart from the ledger: one that was put back to an older copy
// would have them done once more. Methods are safe for concurrent use.
type Memory interface {
	// Remember notes durably that a task was completed. It is called under the task's claim, before that ends, again until it
	// succeeds, and perhaps by a successor.
	Remember(ctx context.Context, t ledger.Task) error
	// Done tells whether a task is remembered; of one whose claim this node holds, with all that was noted before the claim
	// was granted. It must not block.
	Done(task string) bool
}

// forgetful is the Memory of a worker without one: the ledger's word counts.
type forgetful struct{}

func (forgetful) Remember(context.Context, ledger.Task) error { return nil }
func (forgetful) Done(string) bool                            { return false }

// toRemember tells whether a task is one that must not be done again.
func toRemember(t ledger.Task) bool {
	return t.State == ledger.Completed && (t.Type == ledger.Restore || t.Type == ledger.Delete)
}

// remember notes that a task was completed, if that is to be; it is repeated until ctx ends, with ctx's cause.
func (c Config) remember(ctx context.Context, t ledger.Task) error {
	if !toRemember(t) {
		return nil
	}
	for wait := writeAgainMin; ; wait = min(2*wait, writeAgainMax) {
		err := c.Memory.Remember(ctx, t)
		if err == nil {
			return nil
		}
		c.Logger.WarnContext(ctx, "that a task was completed is not remembered yet; it is repeated", "task", t.ID, "err", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// rememberRow is remember for a task as the ledger has it, whoever has completed it.
func (w *Worker) rememberRow(ctx context.Context, id string) error {
	t, err := w.cfg.Ledger.Task(ctx, id)
	if err != nil {
		return err
	}
	return w.cfg.remember(ctx, t)
}

// doneBefore tells whether a task is remembered that the ledger wants done: it is older than the memory.
func (w *Worker) doneBefore(t ledger.Task) bool { return !t.State.Final() && w.cfg.Memory.Done(t.ID) }
