//go:build fencepost_next

package postgres

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"
)

// rehearsal is the migration of the version that this build stands for, in tests of an upgrade: it belongs to protocol 2. It is
// no file, so that the build without the tag knows nothing of it.
const rehearsal = 9000

func protocolOf(version int64) uint32 {
	if version == rehearsal {
		return 2
	}
	return 1
}

func laterMigrations() []*goose.Migration {
	return []*goose.Migration{goose.NewGoMigration(rehearsal, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE rehearsal (word text NOT NULL)`)
		return err
	}}, nil)}
}
