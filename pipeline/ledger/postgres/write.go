package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

var notify = statement{sql: `SELECT pg_notify('` + channel + `', '')`}

// Plan implements ledger.Tasks.
func (l *Ledger) Plan(ctx context.Context, t ledger.Task) error {
	if err := ledger.ValidID(t.ID); err != nil {
		return fmt.Errorf("plan task: %w", err)
	}
	op := rand.Text()
	return l.repeat(ctx, "plan task "+t.ID, func(ctx context.Context) error { return l.planOnce(ctx, t, op) })
}

func (l *Ledger) planOnce(ctx context.Context, t ledger.Task, op string) error {
	var in lineage
	var now time.Time
	want := l.expects()
	err := l.pool.QueryRow(ctx, `SELECT `+lineageColumns+`, clock_timestamp() FROM lineage`).Scan(append(in.fields(), &now)...)
	if err != nil {
		return err
	}
	if err := inspect(ctx, l.pool, in, want); err != nil {
		return err
	}
	row, err := ledger.AsPlanned(t, now.UTC())
	if err != nil {
		return ruled{err}
	}
	detail, err := encode("task "+row.ID, row)
	if err != nil {
		return err
	}
	var stored string
	err = l.pool.QueryRow(ctx, `WITH made AS (
			INSERT INTO tasks (id, type, run_type, state, attempt, max_attempts, database, backup, node, token, created, updated, detail, write)
			VALUES ($1, $2, $3, 'planned', 0, $4, $5, $6, '', 0, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING RETURNING id, write),
		state AS (INSERT INTO task_states (task, state, attempt, token, node, write) SELECT id, 'planned', 0, 0, '', write FROM made),
		event AS (INSERT INTO events (kind, task) SELECT 'planned', id FROM made RETURNING pg_notify('`+channel+`', ''))
		SELECT write FROM made UNION ALL SELECT write FROM tasks WHERE id = $1`,
		row.ID, row.Type, row.RunType, row.MaxAttempts, row.Database, row.Backup, row.Created, row.Updated, detail, op).Scan(&stored)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && stored != op { // none: somebody planned it at the same moment
		return ledger.ErrExists
	}
	return err
}

// repeat calls once again while it fails in a way that another try may mend. once must be safe to be repeated.
func (l *Ledger) repeat(ctx context.Context, doing string, once func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	wait := pauseMin
	for try := 1; ; try++ {
		err := once(ctx)
		if err == nil || !again(err) || try >= tries {
			return wrap(ctx, doing, err)
		}
		l.renew(ctx, err)
		select {
		case <-time.After(wait):
			wait = min(2*wait, pauseMax)
		case <-ctx.Done():
			return wrap(ctx, doing, err)
		}
	}
}

// Take implements ledger.Tasks. It asks the group first (Config.Check): a claim that was never given, or has moved since,
// is refused here even when its token would do.
func (l *Ledger) Take(ctx context.Context, g ledger.Guard, id, node string) (ledger.Task, error) {
	doing := "take task " + id
	if g.Item != id {
		return ledger.Task{}, fmt.Errorf("%s: the claim is on %q", doing, g.Item)
	}
	if l.cfg.Check != nil {
		if err := l.cfg.Check(ctx, g); err != nil {
			return ledger.Task{}, fmt.Errorf("%s: %w", doing, err)
		}
	}
	var before ledger.Task
	err := l.guarded(ctx, write{doing: doing, guard: g, decide: func(seen look, op string) (plan, error) {
		next, err := ledger.AfterTake(seen.task, g, node, seen.now)
		if err != nil {
			return plan{}, err
		}
		before = seen.task
		before.CancelBy = seen.cancelBy
		detail, err := encode("task "+id, next)
		return plan{
			update: statement{`UPDATE tasks SET attempt = $3, node = $4, run = $5, token = $2, updated = $6, detail = $7, write = $8, revision = revision + 1
				WHERE id = $1 AND token < $2 AND finished IS NULL`,
				[]any{id, int64(g.Token), next.Attempt, node, next.Run, next.Updated, detail, op}},
			follows: []statement{history(next, op), event("taken", next), notify},
		}, err
	}})
	return before, err
}

// Write implements ledger.Tasks. When the answer to its COMMIT is lost it reads the row again, and tells what became of it.
func (l *Ledger) Write(ctx context.Context, g ledger.Guard, c ledger.Change) error {
	id := c.Task.ID
	doing := "write task " + id
	if g.Item != id {
		return fmt.Errorf("%s: the claim is on %q", doing, g.Item)
	}
	w := write{doing: doing, guard: g}
	if c.Backup != nil {
		w.backup = c.Backup.ID
	}
	if ledger.Begins(c.Task) {
		w.gates, w.origin = ledger.Gates(c.Task), c.Task.Origin()
	}
	result := c.Task.State.Final() || c.Backup != nil && c.Backup.State != ledger.BackupCreating
	w.decide = func(seen look, op string) (plan, error) { return decideWrite(seen, g, c, op, result) }
	err := l.guarded(ctx, w)
	if err == nil && result {
		l.holds(ctx, g.Token)
	}
	return err
}

func decideWrite(seen look, g ledger.Guard, c ledger.Change, op string, result bool) (plan, error) {
	if seen.task.Run != g.Run {
		return plan{}, fmt.Errorf("task %s was taken by run %s, not by %s: %w", seen.task.ID, seen.task.Run, g.Run, ledger.ErrFenced)
	}
	next, err := ledger.AfterWrite(seen.task, g, c.Task, seen.now)
	if err != nil {
		return plan{}, err
	}
	if seen.task.State == ledger.Planned && ledger.Begins(next) {
		stored := seen.task
		stored.CancelBy = seen.cancelBy
		if err := ledger.MayBegin(stored, c, seen.beside); err != nil {
			return plan{}, err
		}
	}
	next.Error, next.Hint = text(next.Error), text(next.Hint)
	detail, err := encode("task "+next.ID, next)
	if err != nil {
		return plan{}, err
	}
	p := plan{update: statement{`UPDATE tasks SET state = $3, attempt = $4, database = $5, updated = $6, finished = $7, detail = $8, write = $9, revision = revision + 1
		WHERE id = $1 AND token = $2 AND finished IS NULL`,
		[]any{next.ID, int64(g.Token), next.State, next.Attempt, next.Database, next.Updated, orNull(next.Finished), detail, op}}}
	if next.State != seen.task.State {
		p.follows = append(p.follows, history(next, op))
	}
	if next.State.Final() {
		p.follows = append(p.follows, event("ended", next))
	}
	if c.Backup != nil {
		entry, err := ledger.AfterBackup(seen.backup, g, *c.Backup, seen.now)
		if err != nil {
			return plan{}, err
		}
		steps, err := storeBackup(entry, seen.backup == nil)
		if err != nil {
			return plan{}, err
		}
		p.follows = append(p.follows, steps...)
	}
	p.follows = append(p.follows, notify)
	if result { // last: this row is everybody's, and is locked until COMMIT, which comes in the same message
		p.follows = append(p.follows, raiseMark(g.Token))
	}
	return p, nil
}

func raiseMark(token uint64) statement {
	return statement{`UPDATE lineage SET mark = $1 WHERE mark < $1`, []any{int64(token)}}
}

// storeBackup are the steps that put an entry and its copies in place of what was there. A first one that meets another
// first one of the same id fails, and is decided again.
func storeBackup(b ledger.Backup, first bool) ([]statement, error) {
	copies := b.Copies
	b.Copies = nil
	detail, err := encode("backup "+b.ID, b)
	if err != nil {
		return nil, err
	}
	entry := `UPDATE backups SET database = $2, state = $3, token = $4, created = $5, completed = $6, gone = $7, detail = $8 WHERE id = $1`
	if first {
		entry = `INSERT INTO backups (id, database, state, token, created, completed, gone, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	}
	steps := []statement{
		{entry, []any{b.ID, b.Database, b.State, int64(b.Token), b.Created, orNull(b.Completed), orNull(b.Gone), detail}},
		{`DELETE FROM copies WHERE backup = $1`, []any{b.ID}},
	}
	for i, c := range copies {
		steps = append(steps, statement{`INSERT INTO copies (backup, place, storage, state, bytes, error) VALUES ($1, $2, $3, $4, $5, $6)`,
			[]any{b.ID, i, c.Storage, c.State, c.Bytes, text(c.Error)}})
	}
	return steps, nil
}

func history(t ledger.Task, op string) statement {
	return statement{`INSERT INTO task_states (task, state, attempt, token, node, write) VALUES ($1, $2, $3, $4, $5, $6)`,
		[]any{t.ID, t.State, t.Attempt, int64(t.Token), t.Node, op}}
}

func event(kind string, t ledger.Task) statement {
	var success *bool
	if kind == "ended" {
		good := t.State == ledger.Completed
		success = &good
	}
	return statement{`INSERT INTO events (kind, task, run, token, success) VALUES ($1, $2, $3, $4, $5)`,
		[]any{kind, t.ID, t.Run, int64(t.Token), success}}
}

// RequestCancel implements ledger.Tasks. It is one statement, so that nobody can stop inside it: the row's lock makes it
// exclusive with the write that ends the task. The first request stays.
func (l *Ledger) RequestCancel(ctx context.Context, id, by string) error {
	doing := "cancel task " + id
	if by == "" || len(by) > ledger.MaxName {
		return fmt.Errorf("%s: who asks needs 1 to %d bytes", doing, ledger.MaxName)
	}
	return l.repeat(ctx, doing, func(ctx context.Context) error {
		if err := l.standsOnce(ctx); err != nil {
			return err
		}
		var state ledger.State
		err := l.pool.QueryRow(ctx, `WITH t AS (SELECT id, state, finished, run, token FROM tasks WHERE id = $1 FOR UPDATE),
			made AS (INSERT INTO cancels (task, asker) SELECT id, $2 FROM t WHERE finished IS NULL ON CONFLICT DO NOTHING RETURNING task),
			event AS (INSERT INTO events (kind, task, run, token) SELECT 'cancel', id, COALESCE(run, ''), token FROM t JOIN made ON made.task = t.id
				RETURNING pg_notify('`+channel+`', ''))
			SELECT state FROM t`, id, text(by)).Scan(&state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ledger.ErrNotFound
		case err == nil && state.Final():
			return fmt.Errorf("it is %s: %w", state, ledger.ErrFinal)
		}
		return err
	})
}
