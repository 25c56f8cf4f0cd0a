package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// AppendLog implements ledger.Logs. The row is read and written while the task's is locked.
func (l *Ledger) AppendLog(ctx context.Context, g ledger.Guard, lines []ledger.LogLine) error {
	return l.guarded(ctx, write{doing: "append to the log of task " + g.Item, guard: g, log: true, decide: func(seen look, _ string) (plan, error) {
		if seen.task.Token != g.Token {
			return plan{}, fmt.Errorf("the task has token %d, not %d: %w", seen.task.Token, g.Token, ledger.ErrFenced)
		}
		kept, err := encode("the log of task "+g.Item, ledger.AfterLog(seen.log, lines))
		return plan{update: statement{`INSERT INTO task_logs (task, kept) SELECT id, $3 FROM tasks WHERE id = $1 AND token = $2
			ON CONFLICT (task) DO UPDATE SET kept = EXCLUDED.kept`, []any{g.Item, int64(g.Token), kept}}}, err
	}})
}

// Log implements ledger.Logs.
func (l *Ledger) Log(ctx context.Context, id string) (log ledger.Log, err error) {
	err = l.repeat(ctx, "read the log of task "+id, func(ctx context.Context) error {
		var kept []byte
		row := l.pool.QueryRow(ctx, `SELECT k.kept FROM tasks t LEFT JOIN task_logs k ON k.task = t.id WHERE t.id = $1`, id)
		if err := row.Scan(&kept); err != nil {
			return found(err)
		}
		log, err = decodeLog(kept)
		return err
	})
	return log, err
}

// decodeLog reads what is kept; nil is an empty log.
func decodeLog(kept []byte) (log ledger.Log, err error) {
	if kept == nil {
		return log, nil
	}
	if err := json.Unmarshal(kept, &log); err != nil {
		return log, fmt.Errorf("decode the log of a task: %w", err)
	}
	return log, nil
}
