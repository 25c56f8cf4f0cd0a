package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// pageSize is how many rows one query of a listing reads. A long listing is several short queries, each going on after the
// last row of the one before, so that it holds back no vacuum and no other session.
const pageSize = 2000

// Place is a place in a listing.
type Place = ledger.Place

// Task implements ledger.Tasks.
func (l *Ledger) Task(ctx context.Context, id string) (t ledger.Task, err error) {
	err = l.repeat(ctx, "read task "+id, func(ctx context.Context) error {
		var by string
		t, err = taskRow(l.pool.QueryRow(ctx, `SELECT `+taskColumns+`, COALESCE(c.asker, '')
			FROM tasks t LEFT JOIN cancels c ON c.task = t.id WHERE t.id = $1`, id), &by)
		t.CancelBy = by
		return found(err)
	})
	return t, err
}

// Backup implements ledger.Backups.
func (l *Ledger) Backup(ctx context.Context, id string) (b ledger.Backup, err error) {
	err = l.repeat(ctx, "read backup "+id, func(ctx context.Context) error {
		b, err = backupRow(l.pool.QueryRow(ctx, `SELECT `+backupColumns+` FROM backups b WHERE b.id = $1`, id))
		return found(err)
	})
	return b, err
}

func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.ErrNotFound
	}
	return err
}

// Tasks implements ledger.Tasks.
func (l *Ledger) Tasks(ctx context.Context, f ledger.TaskFilter) ([]ledger.Task, error) {
	return l.TasksAfter(ctx, f, f.After)
}

// TasksAfter is Tasks from a place on; f.Limit makes it a page, and its last task's Created and ID are the next place.
func (l *Ledger) TasksAfter(ctx context.Context, f ledger.TaskFilter, from Place) ([]ledger.Task, error) {
	place := func(t ledger.Task) Place { return Place{Created: t.Created, ID: t.ID} }
	page := func(ctx context.Context, from Place) ([]ledger.Task, error) {
		sql, args := taskQuery(f, from, pageSize)
		rows, err := l.pool.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Task, error) {
			var by string
			t, err := taskRow(row, &by)
			t.CancelBy = by
			return t, err
		})
	}
	return listing(ctx, l, "list tasks", page, from, place, f.Matches, f.Limit)
}

// Backups implements ledger.Backups.
func (l *Ledger) Backups(ctx context.Context, f ledger.BackupFilter) ([]ledger.Backup, error) {
	return l.BackupsAfter(ctx, f, f.After)
}

// BackupsAfter is Backups from a place on, as TasksAfter is Tasks.
func (l *Ledger) BackupsAfter(ctx context.Context, f ledger.BackupFilter, from Place) ([]ledger.Backup, error) {
	place := func(b ledger.Backup) Place { return Place{Created: b.Created, ID: b.ID} }
	page := func(ctx context.Context, from Place) ([]ledger.Backup, error) {
		sql, args := backupQuery(f, from, pageSize)
		rows, err := l.pool.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Backup, error) { return backupRow(row) })
	}
	return listing(ctx, l, "list backups", page, from, place, f.Matches, f.Limit)
}

// listing reads page after page until limit rows match (0: all).
func listing[T any](ctx context.Context, l *Ledger, doing string, page func(context.Context, Place) ([]T, error), from Place,
	place func(T) Place, matches func(T) bool, limit int) (out []T, err error) {
	for {
		var rows []T
		err := l.repeat(ctx, doing, func(ctx context.Context) (err error) {
			rows, err = page(ctx, from)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if matches(row) {
				out = append(out, row)
			}
			if limit > 0 && len(out) == limit {
				return out, nil
			}
		}
		if len(rows) < atMost(limit, pageSize) {
			return out, nil
		}
		from = place(rows[len(rows)-1])
	}
}

// conditions collects the parts of a WHERE.
type conditions struct {
	parts []string
	args  []any
}

// add takes a part with one %s for each argument.
func (c *conditions) add(part string, args ...any) {
	holes := make([]any, len(args))
	for i, a := range args {
		c.args = append(c.args, a)
		holes[i] = fmt.Sprintf("$%d", len(c.args))
	}
	c.parts = append(c.parts, fmt.Sprintf(part, holes...))
}

func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

func taskQuery(f ledger.TaskFilter, from Place, n int) (string, []any) {
	var c conditions
	if f.Active {
		c.add("t.finished IS NULL")
	}
	if f.Database != "" {
		c.add("t.database = %s", f.Database)
	}
	if f.Type != "" {
		c.add("t.type = %s", f.Type)
	}
	if f.RunType != "" {
		c.add("t.run_type = %s", f.RunType)
	}
	if f.Backup != "" {
		c.add("t.backup = %s", f.Backup)
	}
	if from != (Place{}) {
		c.add("(t.created, t.id) < (%s, %s)", from.Created, from.ID)
	}
	return fmt.Sprintf(`SELECT %s, COALESCE(c.asker, '') FROM tasks t LEFT JOIN cancels c ON c.task = t.id%s ORDER BY t.created DESC, t.id DESC LIMIT %d`,
		taskColumns, c.where(), atMost(f.Limit, n)), c.args
}

func backupQuery(f ledger.BackupFilter, from Place, n int) (string, []any) {
	var c conditions
	if f.State == "" {
		c.add("b.state <> 'gone'")
	} else {
		c.add("b.state = %s", f.State)
	}
	if f.Database != "" {
		c.add("b.database = %s", f.Database)
	}
	if from != (Place{}) {
		c.add("(b.created, b.id) < (%s, %s)", from.Created, from.ID)
	}
	return fmt.Sprintf(`SELECT %s FROM backups b%s ORDER BY b.created DESC, b.id DESC LIMIT %d`, backupColumns, c.where(), atMost(f.Limit, n)), c.args
}

// atMost is how many rows to ask for when limit are wanted (0: all) and n are a page.
func atMost(limit, n int) int {
	if limit > 0 && limit < n {
		return limit
	}
	return n
}
