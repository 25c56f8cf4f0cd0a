package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// MaxDetail bounds what a row holds besides its columns, in bytes of JSON.
const MaxDetail = 64 << 10

// A row is columns for all that is asked for, compared or constrained, and detail: the whole value as JSON. Where the two
// could differ the columns count. So the contract can grow fields without a migration.

// taskColumns are what taskRow reads, of tasks t.
const taskColumns = `t.id, t.type, t.run_type, t.state, t.attempt, t.max_attempts, t.database, t.backup, t.node, COALESCE(t.run, ''),
	t.token, t.created, t.updated, t.finished, t.detail`

// taskRow reads one row of taskColumns; more are the targets of columns after them.
func taskRow(row pgx.Row, more ...any) (ledger.Task, error) {
	var c ledger.Task
	var finished *time.Time
	var detail []byte
	err := row.Scan(append([]any{&c.ID, &c.Type, &c.RunType, &c.State, &c.Attempt, &c.MaxAttempts, &c.Database, &c.Backup, &c.Node, &c.Run,
		&c.Token, &c.Created, &c.Updated, &finished, &detail}, more...)...)
	if err != nil {
		return ledger.Task{}, err
	}
	var t ledger.Task
	if err := json.Unmarshal(detail, &t); err != nil {
		return ledger.Task{}, fmt.Errorf("decode task %s: %w", c.ID, err)
	}
	t.ID, t.Type, t.RunType, t.State, t.Attempt, t.MaxAttempts = c.ID, c.Type, c.RunType, c.State, c.Attempt, c.MaxAttempts
	t.Database, t.Backup, t.Node, t.Run, t.Token = c.Database, c.Backup, c.Node, c.Run, c.Token
	t.Created, t.Updated, t.Finished, t.CancelBy = c.Created.UTC(), c.Updated.UTC(), instant(finished), ""
	return t, nil
}

// backupColumns are what backupRow reads, of backups b.
const backupColumns = `b.id, b.database, b.state, b.token, b.created, b.completed, b.gone, b.detail,
	(SELECT json_agg(json_build_object('storage', c.storage, 'state', c.state, 'bytes', c.bytes, 'error', c.error) ORDER BY c.place)
	 FROM copies c WHERE c.backup = b.id)`

func backupRow(row pgx.Row) (ledger.Backup, error) {
	var c ledger.Backup
	var completed, gone *time.Time
	var detail, copies []byte
	err := row.Scan(&c.ID, &c.Database, &c.State, &c.Token, &c.Created, &completed, &gone, &detail, &copies)
	if err != nil {
		return ledger.Backup{}, err
	}
	var b ledger.Backup
	if err := json.Unmarshal(detail, &b); err != nil {
		return ledger.Backup{}, fmt.Errorf("decode backup %s: %w", c.ID, err)
	}
	b.Copies = nil
	if copies != nil {
		if err := json.Unmarshal(copies, &b.Copies); err != nil {
			return ledger.Backup{}, fmt.Errorf("decode copies of backup %s: %w", c.ID, err)
		}
	}
	b.ID, b.Database, b.State, b.Token = c.ID, c.Database, c.State, c.Token
	b.Created, b.Completed, b.Gone = c.Created.UTC(), instant(completed), instant(gone)
	return b, nil
}

// encode makes the detail of a row.
func encode(what string, row any) ([]byte, error) {
	detail, err := json.Marshal(row)
	if err != nil {
		return nil, ruled{fmt.Errorf("encode %s: %w", what, err)}
	}
	if len(detail) > MaxDetail {
		return nil, ruled{fmt.Errorf("encode %s: %d bytes, at most %d fit", what, len(detail), MaxDetail)}
	}
	return detail, nil
}

// instant is a time of a column that may be NULL.
func instant(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// orNull is a column for a time that may be zero.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text is s as the server can store it: UTF-8 without NUL.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
