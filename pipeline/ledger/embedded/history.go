package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// ErrFull: the Store has no room for what would be written, and no ended task is left that could make some. Nothing was
// written, and repeating it does not help: it is no ledger.ErrUnavailable.
var ErrFull = errors.New("the ledger is full")

const (
	archiveFrom = 32 // ended tasks beyond the history before a batch is archived
	archiveAt   = 64 // tasks of one batch
)

// expired are the keys of tasks beyond the history that go now: all of them, oldest first, up to a bound; with an archive
// a batch at a time, once it has been archived. beyond is newest first.
func (l *Ledger) expired(ctx context.Context, beyond []ledger.Task) []string {
	if l.archive != nil && len(beyond) < archiveFrom {
		return nil
	}
	batch := oldest(beyond, dropAtOnce/2)
	if l.archive != nil && l.archive(ctx, batch) != nil {
		return nil // they stay until they can be archived, or room is needed
	}
	return taskKeys(batch)
}

// oldest are the last n of a list that is newest first, oldest first.
func oldest(tasks []ledger.Task, n int) []ledger.Task {
	batch := slices.Clone(tasks[max(0, len(tasks)-n):])
	slices.Reverse(batch)
	return batch
}

func taskKeys(tasks []ledger.Task) []string {
	var keys []string
	for _, t := range tasks {
		keys = append(keys, taskPrefix+t.ID, cancelPrefix+t.ID, logPrefix+t.ID)
	}
	return keys
}

// makeRoom archives and drops the oldest ended tasks, however few there are: what goes on needs the room.
func (l *Ledger) makeRoom(ctx context.Context) error {
	tasks, err := list[ledger.Task](ctx, l.store, taskPrefix)
	if err != nil {
		return err
	}
	ended := slices.DeleteFunc(tasks, func(t ledger.Task) bool { return !t.State.Final() })
	slices.SortFunc(ended, newestTask)
	batch := oldest(ended, archiveAt)
	if len(batch) == 0 {
		return errors.New("no ended task is left to be archived")
	}
	if l.archive != nil {
		if err := l.archive(ctx, batch); err != nil {
			return fmt.Errorf("archive %d ended tasks: %w", len(batch), err)
		}
	}
	if err := l.store.Commit(ctx, Txn{Deletes: taskKeys(batch)}); err != nil {
		return unavailable("drop archived tasks", err)
	}
	return nil
}
