package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// lockGates makes and locks the rows of databases, in their order.
func lockGates(b *pgx.Batch, databases []string) {
	for _, name := range databases {
		b.Queue(`INSERT INTO gates (database) VALUES ($1) ON CONFLICT DO NOTHING`, name)
		b.Queue(`SELECT FROM gates WHERE database = $1 FOR UPDATE`, name)
	}
}

// queueGates locks the gates of a write, and then reads what is beside its task.
func queueGates(b *pgx.Batch, w write, into *ledger.Beside) {
	lockGates(b, w.gates)
	b.Queue(`SELECT ` + taskColumns + ` FROM tasks t WHERE t.finished IS NULL`).Query(func(rows pgx.Rows) error {
		into.Tasks = nil
		for rows.Next() {
			t, err := taskRow(rows)
			if err != nil {
				return err
			}
			into.Tasks = append(into.Tasks, t)
		}
		return rows.Err()
	})
	b.Queue(`SELECT `+backupColumns+` FROM backups b WHERE b.database = $1 AND b.state <> 'gone'`, w.origin).Query(func(rows pgx.Rows) error {
		into.Backups = nil
		for rows.Next() {
			entry, err := backupRow(rows)
			if err != nil {
				return err
			}
			into.Backups = append(into.Backups, entry)
		}
		return rows.Err()
	})
}

// EditBackup implements ledger.Backups. It passes the database's gate: what people say counts for deletes of its fellows.
func (l *Ledger) EditBackup(ctx context.Context, id string, edit func(ledger.Mark) ledger.Mark) (after ledger.Backup, err error) {
	err = l.repeat(ctx, "edit backup "+id, func(ctx context.Context) error {
		stored, err := l.Backup(ctx, id)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
			b := &pgx.Batch{}
			l.expects().queue(b)
			lockGates(b, []string{stored.Database})
			var ruleErr error
			b.Queue(`SELECT `+backupColumns+` FROM backups b WHERE b.id = $1 FOR UPDATE OF b`, id).QueryRow(func(row pgx.Row) error {
				entry, err := backupRow(row)
				if err != nil {
					return found(err)
				}
				after, ruleErr = ledger.Edited(entry, edit)
				return nil
			})
			if err := errors.Join(tx.SendBatch(ctx, b).Close(), asRuled(ruleErr)); err != nil {
				return err
			}
			after.Mark.Note, after.Mark.By = text(after.Mark.Note), text(after.Mark.By)
			slim := after
			slim.Copies = nil
			detail, err := encode("backup "+id, slim)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE backups SET detail = $2 WHERE id = $1`, id, detail); err != nil {
				return fmt.Errorf("store it: %w", err)
			}
			_, err = tx.Exec(ctx, notify.sql)
			return err
		})
	})
	return after, err
}

// asRuled marks what the rules say; nil stays nil.
func asRuled(err error) error {
	if err == nil {
		return nil
	}
	return ruled{err}
}
