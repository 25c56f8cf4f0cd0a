package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

const errorPrefix = "error/"

func errorKey(task string, token uint64) string {
	return fmt.Sprintf("%s%s-%016d", errorPrefix, task, token)
}

// NoteError implements ledger.Errors: a key of its own for each attempt, which goes when it is handled.
func (l *Ledger) NoteError(ctx context.Context, g ledger.Guard, what string) error {
	key := errorKey(g.Item, g.Token)
	return l.change(ctx, "note an error of task "+g.Item, func() (Txn, error) {
		stored, version, err := l.task(ctx, g.Item)
		if err != nil {
			return Txn{}, err
		}
		if stored.Token != g.Token {
			return Txn{}, fmt.Errorf("the task has token %d, not %d: %w", stored.Token, g.Token, ledger.ErrFenced)
		}
		earlier, err := l.store.Get(ctx, key)
		if err != nil {
			return Txn{}, unavailable("read error of "+g.Item, err)
		}
		if earlier.Version != 0 {
			return Txn{Conditions: conditions(g)}, nil
		}
		put, err := encode(key, ledger.TaskError{Task: g.Item, Token: g.Token, Problem: ledger.Clip(what), Noted: l.now().UTC()})
		return Txn{
			Conditions: append(conditions(g), Condition{Kind: VersionIs, Key: taskPrefix + g.Item, Version: version}, Condition{Kind: VersionIs, Key: key}),
			Puts:       []Put{put},
		}, err
	})
}

// HandleErrors implements ledger.Errors. Two nodes may look at one error at once; what they make of it is one thing to do.
func (l *Ledger) HandleErrors(ctx context.Context, n int, handle func(context.Context, ledger.TaskError) error) (handled int, err error) {
	items, err := l.store.List(ctx, errorPrefix)
	if err != nil {
		return 0, unavailable("list errors of tasks", err)
	}
	slices.SortFunc(items, func(a, b Item) int { return int(int64(a.Version) - int64(b.Version)) })
	var refused []error
	for _, it := range items[:min(n, len(items))] {
		e, err := decode[ledger.TaskError](it)
		if err != nil {
			return handled, err
		}
		e.Seq = int64(it.Version)
		if err := handle(ctx, e); err != nil {
			refused = append(refused, fmt.Errorf("task %s: %w", e.Task, err))
			continue
		}
		err = l.change(ctx, "mark an error of task "+e.Task, func() (Txn, error) { return Txn{Deletes: []string{it.Key}}, nil })
		if err != nil {
			return handled, err
		}
		handled++
	}
	return handled, errors.Join(refused...)
}
