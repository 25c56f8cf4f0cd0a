package embedded

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

const logPrefix = "log/"

// AppendLog implements ledger.Logs. The lines have a key of their own: they go with the task.
func (l *Ledger) AppendLog(ctx context.Context, g ledger.Guard, lines []ledger.LogLine) error {
	key := logPrefix + g.Item
	return l.change(ctx, "append to the log of task "+g.Item, func() (Txn, error) {
		task, version, err := l.task(ctx, g.Item)
		if err != nil {
			return Txn{}, err
		}
		if task.Token != g.Token {
			return Txn{}, fmt.Errorf("append to the log of task %s with token %d, stored is %d: %w", g.Item, g.Token, task.Token, ledger.ErrFenced)
		}
		kept, at, err := l.log(ctx, g.Item)
		if err != nil {
			return Txn{}, err
		}
		put, err := encode(key, ledger.AfterLog(kept, lines))
		return Txn{
			Conditions: append(conditions(g), Condition{Kind: VersionIs, Key: taskPrefix + g.Item, Version: version}, Condition{Kind: VersionIs, Key: key, Version: at}),
			Puts:       []Put{put},
		}, err
	})
}

// Log implements ledger.Logs.
func (l *Ledger) Log(ctx context.Context, id string) (ledger.Log, error) {
	kept, version, err := l.log(ctx, id)
	if err != nil || version != 0 {
		return kept, err
	}
	_, _, err = l.task(ctx, id)
	return ledger.Log{}, err
}

// log reads what is kept and its version.
func (l *Ledger) log(ctx context.Context, id string) (ledger.Log, uint64, error) {
	it, err := l.store.Get(ctx, logPrefix+id)
	if err != nil {
		return ledger.Log{}, 0, unavailable("read the log of task "+id, err)
	}
	if it.Version == 0 {
		return ledger.Log{}, 0, nil
	}
	kept, err := decode[ledger.Log](it)
	return kept, it.Version, err
}
