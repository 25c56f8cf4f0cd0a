package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Bounds of the dropping of history.
const (
	dropAtOnce = 64                 // rows dropped by one Plan: catches up with any rate of planning
	goneFor    = 8 * 24 * time.Hour // longer than any upload session lives, as for tombstones
)

// Plan implements ledger.Tasks. It also drops history beyond the bound.
func (l *Ledger) Plan(ctx context.Context, t ledger.Task) error {
	now := l.now().UTC()
	row, err := ledger.AsPlanned(t, now)
	if err != nil {
		return err
	}
	put, err := encode(taskPrefix+row.ID, row)
	if err != nil {
		return err
	}
	for range tries {
		old, err := l.old(ctx, now)
		if err != nil {
			return err
		}
		err = l.store.Commit(ctx, Txn{
			Conditions: []Condition{{Kind: VersionIs, Key: put.Key}},
			Puts:       []Put{put},
			Deletes:    old,
		})
		var failed *ConditionError
		switch {
		case errors.As(err, &failed):
			return fmt.Errorf("plan task %s: %w", row.ID, ledger.ErrExists)
		case errors.Is(err, ErrFull):
			if roomErr := l.makeRoom(ctx); roomErr != nil {
				return fmt.Errorf("plan task %s: %w: %w", row.ID, ErrFull, roomErr)
			}
		case err != nil:
			return unavailable("plan task "+row.ID, err)
		default:
			return nil
		}
	}
	return fmt.Errorf("plan task %s: %w", row.ID, ErrFull)
}

// old lists the keys that history no longer has room for. All of them are of rows that never change again, so that
// they need no condition.
func (l *Ledger) old(ctx context.Context, now time.Time) ([]string, error) {
	tasks, err := list[ledger.Task](ctx, l.store, taskPrefix)
	if err != nil {
		return nil, err
	}
	ended := slices.DeleteFunc(tasks, func(t ledger.Task) bool { return !t.State.Final() })
	slices.SortFunc(ended, newestTask)
	keys := l.expired(ctx, ended[min(l.history, len(ended)):])
	backups, err := list[ledger.Backup](ctx, l.store, backupPrefix)
	if err != nil {
		return nil, err
	}
	gone := slices.DeleteFunc(backups, func(b ledger.Backup) bool { return b.State != ledger.BackupGone })
	slices.SortFunc(gone, newestBackup)
	for i := len(gone) - 1; i >= l.history && len(keys) < 2*dropAtOnce; i-- {
		if now.Sub(gone[i].Gone) > goneFor {
			keys = append(keys, backupPrefix+gone[i].ID)
		}
	}
	return keys, nil
}

// Take implements ledger.Tasks.
func (l *Ledger) Take(ctx context.Context, g ledger.Guard, id, node string) (ledger.Task, error) {
	if g.Item != id {
		return ledger.Task{}, fmt.Errorf("take task %s: the claim is on %q", id, g.Item)
	}
	var before ledger.Task
	err := l.change(ctx, "take task "+id, func() (Txn, error) {
		stored, version, err := l.task(ctx, id)
		if err != nil {
			return Txn{}, err
		}
		next, err := ledger.AfterTake(stored, g, node, l.now().UTC())
		if err != nil {
			return Txn{}, err
		}
		put, err := encode(taskPrefix+id, next)
		before = stored
		return Txn{
			Conditions: append(conditions(g), Condition{Kind: VersionIs, Key: put.Key, Version: version}),
			Puts:       []Put{put},
		}, err
	})
	if err != nil {
		return ledger.Task{}, err
	}
	it, err := l.store.Get(ctx, cancelPrefix+id)
	if err != nil || it.Version == 0 {
		return before, nil // the owner's watcher looks for cancel requests again
	}
	c, err := decode[cancelRow](it)
	before.CancelBy = c.By
	return before, err
}

// Write implements ledger.Tasks.
func (l *Ledger) Write(ctx context.Context, g ledger.Guard, c ledger.Change) error {
	id := c.Task.ID
	if g.Item != id {
		return fmt.Errorf("write task %s: the claim is on %q", id, g.Item)
	}
	return l.change(ctx, "write task "+id, func() (Txn, error) {
		stored, txn, err := l.taskHalf(ctx, g, c.Task)
		if err != nil {
			return txn, err
		}
		if stored.State == ledger.Planned && ledger.Begins(c.Task) {
			if txn, err = l.gates(ctx, stored, c, txn); err != nil {
				return txn, err
			}
		}
		if c.Backup == nil {
			return txn, nil
		}
		return l.backupHalf(ctx, g, *c.Backup, txn)
	})
}

// gateRow is the value of a gate/<database> key: only its version counts.
type gateRow struct {
	Task string `json:"task"` // that passed last
}

// gates has a beginning pass the gates of its databases: the transaction takes effect only when nobody passed since what
// it depends on was read, and so nobody else's does.
func (l *Ledger) gates(ctx context.Context, stored ledger.Task, c ledger.Change, txn Txn) (Txn, error) {
	for _, name := range ledger.Gates(stored) {
		put, err := encode(gatePrefix+name, gateRow{Task: stored.ID})
		if err != nil {
			return txn, err
		}
		it, err := l.store.Get(ctx, put.Key)
		if err != nil {
			return txn, unavailable("read gate of "+name, err)
		}
		txn.Conditions = append(txn.Conditions, Condition{Kind: VersionIs, Key: put.Key, Version: it.Version})
		txn.Puts = append(txn.Puts, put)
	}
	asked, err := l.store.Get(ctx, cancelPrefix+stored.ID)
	if err != nil {
		return txn, unavailable("read cancel request of "+stored.ID, err)
	}
	if asked.Version != 0 {
		by, err := decode[cancelRow](asked)
		if err != nil {
			return txn, err
		}
		stored.CancelBy = by.By
	}
	txn.Conditions = append(txn.Conditions, Condition{Kind: VersionIs, Key: asked.Key, Version: asked.Version})
	var b ledger.Beside
	if b.Tasks, err = l.Tasks(ctx, ledger.TaskFilter{Active: true}); err != nil {
		return txn, err
	}
	if b.Backups, err = l.Backups(ctx, ledger.BackupFilter{Database: stored.Origin()}); err != nil {
		return txn, err
	}
	return txn, ledger.MayBegin(stored, c, b)
}

func (l *Ledger) taskHalf(ctx context.Context, g ledger.Guard, next ledger.Task) (ledger.Task, Txn, error) {
	stored, version, err := l.task(ctx, next.ID)
	if err != nil {
		return stored, Txn{}, err
	}
	row, err := ledger.AfterWrite(stored, g, next, l.now().UTC())
	if err != nil {
		return stored, Txn{}, err
	}
	put, err := encode(taskPrefix+row.ID, row)
	return stored, Txn{
		Conditions: append(conditions(g), Condition{Kind: VersionIs, Key: put.Key, Version: version}),
		Puts:       []Put{put},
	}, err
}

func (l *Ledger) backupHalf(ctx context.Context, g ledger.Guard, next ledger.Backup, txn Txn) (Txn, error) {
	stored, version, err := l.backup(ctx, next.ID)
	if err != nil {
		return Txn{}, err
	}
	entry, err := ledger.AfterBackup(stored, g, next, l.now().UTC())
	if err != nil {
		return Txn{}, err
	}
	put, err := encode(backupPrefix+entry.ID, entry)
	txn.Conditions = append(txn.Conditions, Condition{Kind: VersionIs, Key: put.Key, Version: version})
	txn.Puts = append(txn.Puts, put)
	return txn, err
}

// EditBackup implements ledger.Backups. It passes the database's gate: what people say counts for deletes of its fellows.
func (l *Ledger) EditBackup(ctx context.Context, id string, edit func(ledger.Mark) ledger.Mark) (after ledger.Backup, err error) {
	err = l.change(ctx, "edit backup "+id, func() (Txn, error) {
		stored, version, err := l.backup(ctx, id)
		if err != nil {
			return Txn{}, err
		}
		if stored == nil {
			return Txn{}, fmt.Errorf("edit backup %s: %w", id, ledger.ErrNotFound)
		}
		if after, err = ledger.Edited(*stored, edit); err != nil {
			return Txn{}, err
		}
		put, err := encode(backupPrefix+id, after)
		if err != nil {
			return Txn{}, err
		}
		gate, err := encode(gatePrefix+stored.Database, gateRow{})
		if err != nil {
			return Txn{}, err
		}
		it, err := l.store.Get(ctx, gate.Key)
		if err != nil {
			return Txn{}, unavailable("read gate of "+stored.Database, err)
		}
		return Txn{
			Conditions: []Condition{{Kind: VersionIs, Key: put.Key, Version: version}, {Kind: VersionIs, Key: gate.Key, Version: it.Version}},
			Puts:       []Put{put, gate},
		}, nil
	})
	return after, err
}

// RequestCancel implements ledger.Tasks. The condition on the task's version makes it exclusive with the write that
// ends the task; the first request stays.
func (l *Ledger) RequestCancel(ctx context.Context, id, by string) error {
	if by == "" || len(by) > ledger.MaxName {
		return fmt.Errorf("cancel task %s: who asks needs 1 to %d bytes", id, ledger.MaxName)
	}
	key := cancelPrefix + id
	return l.change(ctx, "cancel task "+id, func() (Txn, error) {
		stored, version, err := l.task(ctx, id)
		if err != nil {
			return Txn{}, err
		}
		if stored.State.Final() {
			return Txn{}, fmt.Errorf("cancel task %s, which is %s: %w", id, stored.State, ledger.ErrFinal)
		}
		earlier, err := l.store.Get(ctx, key)
		if err != nil {
			return Txn{}, unavailable("read cancel request of "+id, err)
		}
		if earlier.Version != 0 {
			return Txn{}, nil // idempotent: an empty transaction changes nothing
		}
		put, err := encode(key, cancelRow{By: by})
		return Txn{
			Conditions: []Condition{
				{Kind: VersionIs, Key: taskPrefix + id, Version: version},
				{Kind: VersionIs, Key: key},
			},
			Puts: []Put{put},
		}, err
	})
}
