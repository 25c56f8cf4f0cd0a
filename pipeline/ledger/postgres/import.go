package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// ImportBackup implements ledger.Backups. Two at once: the second meets the first one's row, and is decided again.
func (l *Ledger) ImportBackup(ctx context.Context, b ledger.Backup) error {
	return l.repeat(ctx, "import backup "+b.ID, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return l.importOnce(ctx, tx, b) })
	})
}

func (l *Ledger) importOnce(ctx context.Context, tx pgx.Tx, b ledger.Backup) error {
	var in lineage
	var now time.Time
	var there bool
	want := l.expects()
	err := tx.QueryRow(ctx, `SELECT `+lineageColumns+`, clock_timestamp(), EXISTS (SELECT FROM backups WHERE id = $1) FROM lineage`, b.ID).
		Scan(append(in.fields(), &now, &there)...)
	if err != nil {
		return err
	}
	if err, _ := in.problem(want); err != nil {
		return err
	}
	if there {
		return ledger.ErrExists
	}
	row, err := ledger.Imported(b, now.UTC())
	if err != nil {
		return ruled{err}
	}
	steps, err := storeBackup(row, true)
	if err != nil {
		return err
	}
	for _, s := range append(steps, notify) {
		if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
			return fmt.Errorf("store it: %w", err)
		}
	}
	return nil
}
