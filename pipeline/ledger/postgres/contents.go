package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Contents reads all that the ledger holds. Nobody works with it meanwhile, or they are of no
// single moment.
func (r *Repair) Contents(ctx context.Context) (ledger.Contents, error) {
	l := r.led
	c := ledger.Contents{Logs: map[string]ledger.Log{}}
	var err error
	if c.Tasks, err = l.Tasks(ctx, ledger.TaskFilter{}); err != nil {
		return c, err
	}
	if c.Backups, err = l.allBackups(ctx); err != nil {
		return c, err
	}
	if c.Steps, err = l.histories(ctx); err != nil {
		return c, err
	}
	err = l.repeat(ctx, "read the logs of tasks", func(ctx context.Context) error {
		_, err := collect(ctx, l, func(row pgx.CollectableRow) (id string, err error) {
			var kept []byte
			if err := row.Scan(&id, &kept); err != nil {
				return "", err
			}
			c.Logs[id], err = decodeLog(kept)
			return id, err
		}, `SELECT task, kept FROM task_logs`)
		return err
	})
	if err != nil {
		return c, err
	}
	err = l.repeat(ctx, "read errors of tasks", func(ctx context.Context) error {
		c.Errors, err = collect(ctx, l, pgx.RowToStructByPos[TaskError], `SELECT seq, task, token, problem, noted FROM task_errors WHERE handled IS NULL ORDER BY seq`)
		return err
	})
	if err != nil {
		return c, err
	}
	err = l.repeat(ctx, "read items", func(ctx context.Context) error {
		c.Items, err = collect(ctx, l, func(row pgx.CollectableRow) (kept json.RawMessage, err error) {
			return kept, row.Scan((*[]byte)(&kept))
		}, `SELECT kept FROM items ORDER BY id`)
		return err
	})
	return c, err
}

// fill writes contents into empty tables.
func fill(ctx context.Context, tx pgx.Tx, c ledger.Contents) error {
	for _, t := range byCreation(c.Tasks) {
		if err := fillTask(ctx, tx, t, c.Steps[t.ID]); err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		kept, ok := c.Logs[t.ID]
		if !ok {
			continue
		}
		text, err := encode("the log of task "+t.ID, kept)
		if err != nil {
			return err
		}
		if err := run(ctx, tx, statement{`INSERT INTO task_logs (task, kept) VALUES ($1, $2)`, []any{t.ID, text}}); err != nil {
			return err
		}
	}
	for _, b := range c.Backups {
		steps, err := storeBackup(b, true)
		if err == nil {
			err = run(ctx, tx, steps...)
		}
		if err != nil {
			return fmt.Errorf("backup %s: %w", b.ID, err)
		}
	}
	for _, e := range c.Errors {
		if !slices.ContainsFunc(c.Tasks, func(t ledger.Task) bool { return t.ID == e.Task }) {
			continue // it was noted after the tasks were read, of a ledger in use
		}
		err := run(ctx, tx, statement{`INSERT INTO task_errors (task, token, problem, noted) VALUES ($1, $2, $3, $4)`, []any{e.Task, int64(e.Token), text(e.Problem), e.Noted}})
		if err != nil {
			return fmt.Errorf("error of task %s: %w", e.Task, err)
		}
	}
	for _, raw := range c.Items {
		var k component.Kept
		if err := json.Unmarshal(raw, &k); err != nil {
			return fmt.Errorf("decode an item: %w", err)
		}
		k.Item.ChangedAt = micro(k.Item.ChangedAt)
		for i := range k.Item.Events {
			k.Item.Events[i].Start = micro(k.Item.Events[i].Start)
		}
		if err := storeItem(ctx, tx, k); err != nil {
			return fmt.Errorf("item %s: %w", k.Item.ID, err)
		}
	}
	return nil
}

// fillTask inserts a task as it is, with its history.
func fillTask(ctx context.Context, tx pgx.Tx, t ledger.Task, before []Step) error {
	by := t.CancelBy
	t.CancelBy = ""
	detail, err := encode("task "+t.ID, t)
	if err != nil {
		return err
	}
	var owner *string
	if t.Token != 0 {
		owner = &t.Run
		if err := run(ctx, tx, statement{`INSERT INTO runs (run) VALUES ($1) ON CONFLICT DO NOTHING`, []any{t.Run}}); err != nil {
			return err
		}
	}
	var finished *time.Time
	if t.State.Final() {
		finished = &t.Finished
	}
	steps := []statement{
		{`INSERT INTO tasks (id, type, run_type, state, attempt, max_attempts, database, backup, node, run, token, created, updated, finished, detail, write)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'filled')`,
			[]any{t.ID, t.Type, t.RunType, t.State, t.Attempt, t.MaxAttempts, t.Database, t.Backup, t.Node, owner, int64(t.Token), t.Created, t.Updated, finished, detail}},
		fillHistory(t, before),
	}
	if by != "" {
		steps = append(steps, statement{`INSERT INTO cancels (task, asker) VALUES ($1, $2)`, []any{t.ID, text(by)}})
	}
	return run(ctx, tx, steps...)
}
