package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Step is one entry of a task's history.
type Step = ledger.Step

// History lists the states that a task went through, oldest first. A task that was taken over shows the state that it had.
func (l *Ledger) History(ctx context.Context, id string) (steps []Step, err error) {
	err = l.repeat(ctx, "read the history of task "+id, func(ctx context.Context) error {
		steps, err = collect(ctx, l, func(row pgx.CollectableRow) (s Step, err error) {
			err = row.Scan(&s.At, &s.State, &s.Attempt, &s.Token, &s.Node)
			s.At = s.At.UTC()
			return s, err
		}, `SELECT at, state, attempt, token, node FROM task_states WHERE task = $1 ORDER BY seq`, id)
		return err
	})
	return steps, err
}

// histories are those of all tasks.
func (l *Ledger) histories(ctx context.Context) (map[string][]Step, error) {
	all := map[string][]Step{}
	err := l.repeat(ctx, "read the histories of tasks", func(ctx context.Context) error {
		clear(all)
		_, err := collect(ctx, l, func(row pgx.CollectableRow) (id string, err error) {
			var s Step
			err = row.Scan(&id, &s.At, &s.State, &s.Attempt, &s.Token, &s.Node)
			s.At = s.At.UTC()
			all[id] = append(all[id], s)
			return "", err
		}, `SELECT task, at, state, attempt, token, node FROM task_states ORDER BY task, seq`)
		return err
	})
	return all, err
}

// fillHistory inserts the steps of a task; of one of which none are known, the state that it is in.
func fillHistory(t ledger.Task, steps []Step) statement {
	if len(steps) == 0 {
		return history(t, "filled")
	}
	var at []time.Time
	var states, nodes []string
	var attempts, tokens []int64
	for _, s := range steps {
		at, states, nodes = append(at, s.At), append(states, string(s.State)), append(nodes, s.Node)
		attempts, tokens = append(attempts, int64(s.Attempt)), append(tokens, int64(s.Token))
	}
	return statement{`INSERT INTO task_states (task, at, state, attempt, token, node, write)
		SELECT $1, s.at, s.state, s.attempt, s.token, s.node, 'filled'
		FROM unnest($2::timestamptz[], $3::text[], $4::bigint[], $5::bigint[], $6::text[]) WITH ORDINALITY AS s (at, state, attempt, token, node, n) ORDER BY s.n`,
		[]any{t.ID, at, states, attempts, tokens, nodes}}
}

// Event is something that happened, for those who read on from the last one they know.
type Event struct {
	Seq     int64 // grows; there may be gaps, and for a moment an event may be missing whose transaction is still open
	At      time.Time
	Kind    string // planned | taken | cancel | ended | "shut out"
	Task    string // "" for "shut out"
	Run     string
	Token   uint64
	Success bool // of "ended": the task is completed
}

// Events lists at most n events after one, oldest first.
func (l *Ledger) Events(ctx context.Context, after int64, n int) (events []Event, err error) {
	err = l.repeat(ctx, "read events", func(ctx context.Context) error {
		events, err = collect(ctx, l, func(row pgx.CollectableRow) (e Event, err error) {
			err = row.Scan(&e.Seq, &e.At, &e.Kind, &e.Task, &e.Run, &e.Token, &e.Success)
			e.At = e.At.UTC()
			return e, err
		}, `SELECT seq, at, kind, COALESCE(task, ''), run, token, COALESCE(success, false) FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`, after, n)
		return err
	})
	return events, err
}

func collect[T any](ctx context.Context, l *Ledger, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := l.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}

// TaskError is a failure of one attempt that somebody has to revert.
type TaskError = ledger.TaskError

// NoteError notes that the attempt guarded by g failed and left something to revert. It is a guarded write; a second one
// of the same attempt changes nothing.
func (l *Ledger) NoteError(ctx context.Context, g ledger.Guard, what string) error {
	return l.guarded(ctx, write{doing: "note an error of task " + g.Item, guard: g, decide: func(seen look, _ string) (plan, error) {
		if seen.task.Token != g.Token {
			return plan{}, fmt.Errorf("the task has token %d, not %d: %w", seen.task.Token, g.Token, ledger.ErrFenced)
		}
		return plan{
			update: statement{`INSERT INTO task_errors (task, token, problem) SELECT id, token, left($3, $4) FROM tasks WHERE id = $1 AND token = $2
				ON CONFLICT (task, token) DO UPDATE SET problem = task_errors.problem`, []any{g.Item, int64(g.Token), text(what), ledger.MaxText}},
			follows: []statement{notify},
		}, nil
	}})
}

// HandleErrors calls handle for at most n errors, the oldest that nobody has handled, and marks those for which it returned
// nil. Errors that another node is looking at are left to it. handle is called inside a transaction: it must be quick
// (seconds), and only turns the error into something to do; who does that claims the task first. An error that is not
// marked, because handle or the node failed, comes again.
func (l *Ledger) HandleErrors(ctx context.Context, n int, handle func(context.Context, TaskError) error) (handled int, err error) {
	const doing = "handle errors of tasks"
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	var refused []error
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT seq, task, token, problem, noted FROM task_errors WHERE handled IS NULL ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED`, n)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TaskError])
		if err != nil {
			return err
		}
		var done []int64
		for _, e := range found {
			if err := handle(ctx, e); err != nil {
				refused = append(refused, fmt.Errorf("task %s: %w", e.Task, err))
				continue
			}
			done = append(done, e.Seq)
		}
		handled = len(done)
		_, err = tx.Exec(ctx, `UPDATE task_errors SET handled = clock_timestamp() WHERE seq = ANY ($1)`, done)
		return err
	})
	if err != nil {
		return 0, wrap(ctx, doing, err)
	}
	if len(refused) > 0 {
		return handled, fmt.Errorf("%s: %w", doing, errors.Join(refused...))
	}
	return handled, nil
}
