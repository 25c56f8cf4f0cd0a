package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// ImportBackup implements ledger.Backups.
func (l *Ledger) ImportBackup(ctx context.Context, b ledger.Backup) error {
	row, err := ledger.Imported(b, l.now().UTC())
	if err != nil {
		return err
	}
	put, err := encode(backupPrefix+row.ID, row)
	if err != nil {
		return err
	}
	err = l.store.Commit(ctx, Txn{Conditions: []Condition{{Kind: VersionIs, Key: put.Key}}, Puts: []Put{put}})
	var failed *ConditionError
	switch {
	case errors.As(err, &failed):
		return fmt.Errorf("import backup %s: %w", row.ID, ledger.ErrExists)
	case err != nil:
		return unavailable("import backup "+row.ID, err)
	}
	return nil
}
