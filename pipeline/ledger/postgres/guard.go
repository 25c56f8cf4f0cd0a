package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// A guarded write is one transaction of three round trips:
//
//	look    take the shared advisory locks of the run and of the fence, read the guard rows, lock and read the task's row
//	update  change the row WHERE id and token; no row is ErrFenced
//	commit  all that goes with it, and COMMIT, in one message: from here on this process cannot hold it up any more
//
// Whoever shuts the run out takes the same locks exclusively. So either this transaction has ended before the shut-out, or
// it sees the shut-out in the guard row. A process stopped in between is inside a transaction whose session carries its
// tag, and the shut-out ends that session.

// maxToken is the largest token that a group gives out.
const maxToken = 1<<53 - 1

// guardRows is what a transaction reads of lineage, runs and fences under its locks.
type guardRows struct {
	lineage lineage
	run     bool       // the run has its guard row
	shutOut *time.Time // when the run was shut out
	fence   uint64     // highest token that shut out under the fence; 0 when none did
}

const readGuard = `SELECT ` + lineageColumns + `, r.run IS NOT NULL, r.shut_out,
	COALESCE((SELECT f.token FROM fences f WHERE (f.component, f.node, f.run) = ($2, $3, $4)), 0)::bigint
FROM lineage LEFT JOIN runs r ON r.run = $1`

// stands decides whether a write guarded by g may be made.
func (r guardRows) stands(g ledger.Guard, want expectation) error {
	if err, _ := r.lineage.problem(want); err != nil {
		return err
	}
	switch {
	case !r.run:
		return frozen("the guard row of run " + g.Run + " is gone")
	case mutant == "guard":
		return nil
	case r.shutOut != nil:
		return fmt.Errorf("run %s was shut out at %s: %w", g.Run, r.shutOut.UTC().Format(time.RFC3339Nano), ledger.ErrFenced)
	case g.Fence == nil:
		return nil
	case r.fence > g.Fence.Token && mutant != "holders":
		return fmt.Errorf("fence of %s on %s: token %d shut out %d: %w", g.Fence.Component, g.Fence.Node, r.fence, g.Fence.Token, ledger.ErrFenced)
	case r.fence < g.Fence.Token:
		return problem{what: fmt.Sprintf("nobody was shut out under the fence of %s on %s with token %d", g.Fence.Component, g.Fence.Node, g.Fence.Token)}
	}
	return nil
}

// look is what a guarded transaction saw.
type look struct {
	guard    guardRows
	task     ledger.Task
	exists   bool           // the task does
	cancelBy string         // who asked for a cancel
	backup   *ledger.Backup // nil when there is no entry or none was asked for
	beside   ledger.Beside  // when gates were passed
	log      ledger.Log     // of the task, when it was asked for
	revision int64          // of the task's row
	mine     bool           // an earlier try of this very write is in the row, or in its history
	now      time.Time      // by the server's clock
}

// statement is one step of a transaction.
type statement struct {
	sql  string
	args []any
}

// plan is what a guarded transaction shall do: one row of tasks changes by update, and then follows.
type plan struct {
	update  statement
	follows []statement
}

// write is one guarded write.
type write struct {
	doing  string
	guard  ledger.Guard
	backup string                                   // id of the entry to be read too, or ""
	gates  []string                                 // databases whose gates are passed first, in order
	origin string                                   // with gates: database whose entries are read
	log    bool                                     // the task's log is read too
	decide func(seen look, op string) (plan, error) // pure; may be called again
}

// errUnknown: COMMIT was sent and not answered.
var errUnknown = errors.New("the answer to COMMIT was lost")

// Bounds of repetition.
const (
	tries    = 3 // of what certainly did nothing
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
)

// guarded makes a write, again and again where that is safe, until its outcome is known or the time is over.
func (l *Ledger) guarded(ctx context.Context, w write) error {
	if w.guard.Token > maxToken || w.guard.Token == 0 || w.guard.Fence != nil && w.guard.Fence.Token > maxToken {
		return fmt.Errorf("%s: tokens lie between 1 and %d", w.doing, uint64(maxToken))
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	op := rand.Text()
	var before int64 // the row's revision when a COMMIT got lost; 0: none did
	wait := pauseMin
	for try := 1; ; try++ {
		revision, err := l.once(ctx, w, op, before)
		if err == nil {
			return nil
		}
		switch {
		case errors.Is(err, errUnknown):
			before = revision
		case before != 0 && isLockTimeout(err): // by the session whose answer was lost
		case !again(err) || before == 0 && try >= tries:
			return wrap(ctx, w.doing, err)
		}
		l.renew(ctx, err)
		select {
		case <-time.After(wait):
			wait = min(2*wait, pauseMax)
		case <-ctx.Done():
			return wrap(ctx, w.doing, err)
		}
	}
}

// once is one try. before is the row's revision that an earlier try, whose outcome is not known, had seen.
func (l *Ledger) once(ctx context.Context, w write, op string, before int64) (revision int64, err error) {
	if err := l.enrol(ctx, w.guard.Run); err != nil {
		return 0, err
	}
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release() // closes the session when it is inside a transaction
	want := l.expects()  // before the lineage is read: what is known by now, it has to hold
	seen, err := lookAt(ctx, conn, w, op)
	if err != nil {
		return 0, err
	}
	switch {
	case seen.mine:
		return seen.revision, rollBack(ctx, conn, nil)
	case before != 0 && seen.revision != before && seen.task.Token == w.guard.Token:
		return 0, rollBack(ctx, conn, fmt.Errorf("another write of this claim came between: %w", ledger.ErrUnavailable))
	}
	if err := seen.guard.stands(w.guard, want); err != nil {
		return 0, cmp.Or(rollBack(ctx, conn, nil), inspect(ctx, conn, seen.guard.lineage, want), err) // an older copy is frozen
	}
	if !seen.exists {
		return 0, rollBack(ctx, conn, ledger.ErrNotFound)
	}
	l.at("update")
	p, err := w.decide(seen, op)
	if err != nil {
		return 0, rollBack(ctx, conn, ruled{err})
	}
	tag, err := conn.Exec(ctx, p.update.sql, p.update.args...)
	if err != nil {
		return 0, rollBack(ctx, conn, err)
	}
	if tag.RowsAffected() != 1 {
		return 0, rollBack(ctx, conn, fmt.Errorf("no row has that token: %w", ledger.ErrFenced))
	}
	l.at("commit")
	return seen.revision, commit(ctx, conn, p.follows)
}

// renew closes the sessions that wait for work after one of them broke: the others will be broken too.
func (l *Ledger) renew(ctx context.Context, err error) {
	if ctx.Err() == nil && lost(err) {
		l.pool.Reset()
	}
}

func (l *Ledger) at(stage string) {
	if l.hook != nil {
		l.hook(stage)
	}
}

// lookAt begins the transaction.
func lookAt(ctx context.Context, conn *pgxpool.Conn, w write, op string) (seen look, err error) {
	g := w.guard
	f := ledger.Fence{}
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(`SELECT set_config('application_name', $1, true)`, tagOf(g).String())
	if mutant != "advisory" {
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, runLock(g.Run))
	}
	if g.Fence != nil {
		f = *g.Fence
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, fenceLock(f))
	}
	b.Queue(readGuard, g.Run, f.Component, f.Node, f.Run).QueryRow(func(row pgx.Row) error {
		r := &seen.guard
		return row.Scan(append(r.lineage.fields(), &r.run, &r.shutOut, &r.fence)...)
	})
	b.Queue(`SELECT `+taskColumns+`, t.revision, t.write = $2 OR EXISTS (SELECT FROM task_states s WHERE s.task = t.id AND s.write = $2)
		FROM tasks t WHERE t.id = $1 FOR UPDATE OF t`, g.Item, op).QueryRow(func(row pgx.Row) (err error) {
		seen.task, err = taskRow(row, &seen.revision, &seen.mine)
		seen.exists = err == nil
		return none(err)
	})
	if len(w.gates) > 0 {
		queueGates(b, w, &seen.beside)
	}
	b.Queue(`SELECT asker FROM cancels WHERE task = $1`, g.Item).QueryRow(func(row pgx.Row) error { return none(row.Scan(&seen.cancelBy)) })
	if w.backup != "" {
		b.Queue(`SELECT `+backupColumns+` FROM backups b WHERE b.id = $1 FOR UPDATE OF b`, w.backup).QueryRow(func(row pgx.Row) error {
			entry, err := backupRow(row)
			if err == nil {
				seen.backup = &entry
			}
			return none(err)
		})
	}
	if w.log {
		b.Queue(`SELECT kept FROM task_logs WHERE task = $1`, g.Item).QueryRow(func(row pgx.Row) error {
			var kept []byte
			if err := row.Scan(&kept); err != nil {
				return none(err)
			}
			seen.log, err = decodeLog(kept)
			return err
		})
	}
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&seen.now) })
	err = conn.SendBatch(ctx, b).Close()
	seen.now = seen.now.UTC()
	return seen, err
}

// none takes "no row" for no error.
func none(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// commit carries out the rest and COMMIT, in one message. An error of a statement is a plain one, and nothing was
// changed; anything else is errUnknown.
func commit(ctx context.Context, conn *pgxpool.Conn, follows []statement) error {
	b := &pgx.Batch{}
	for _, s := range follows {
		b.Queue(s.sql, s.args...)
	}
	committed := false
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	err := conn.SendBatch(ctx, b).Close()
	if committed {
		return nil
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && !lost(pg) {
		return rollBack(ctx, conn, err)
	}
	return fmt.Errorf("%w: %w", errUnknown, errors.Join(err, conn.Conn().Close(ctx)))
}

// rollBack ends the transaction and returns err. When it fails the session is closed by its release.
func rollBack(ctx context.Context, conn *pgxpool.Conn, err error) error {
	if !conn.Conn().IsClosed() {
		_, _ = conn.Exec(ctx, "ROLLBACK")
	}
	return err
}

// enrol makes the guard row of a run before its first write.
func (l *Ledger) enrol(ctx context.Context, run string) error {
	l.mu.Lock()
	known := l.enrolled[run]
	l.mu.Unlock()
	if known {
		return nil
	}
	if _, err := l.pool.Exec(ctx, `INSERT INTO runs (run) VALUES ($1) ON CONFLICT DO NOTHING`, run); err != nil {
		return fmt.Errorf("make the guard row of run %s: %w", run, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enrolled[run] = true
	return nil
}
