package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// lockPatience is how long a shut-out waits for the locks before it looks again whom to end.
const lockPatience = 250 * time.Millisecond

// ShutOut implements ledger.Ledger. It ends the sessions of the dead run and of earlier holders of the fence that are
// inside a guarded transaction, takes the locks that each of their writes holds, and sets the guard rows. It returns nil
// only when that is committed; it may be repeated. A living writer of a shut-out run does not hold it up: locks are given
// in the order in which they were asked for.
func (l *Ledger) ShutOut(ctx context.Context, f ledger.Fence) error {
	doing := "shut out run " + f.Run
	if f.Token == 0 || f.Token > maxToken || f.Run == "" {
		return fmt.Errorf("%s: a fence needs a run, and a token between 1 and %d", doing, uint64(maxToken))
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	begun := time.Now()
	ended := 0
	for {
		n, err := l.endSessions(ctx, f)
		ended += n
		if err == nil {
			err = l.shutOutOnce(ctx, f)
		}
		switch {
		case err == nil:
			l.holds(ctx, f.Token)
			l.cfg.Logger.Info("ledger: shut out", "run", f.Run, "fence", f.Component, "token", f.Token, "sessions", ended,
				"took", time.Since(begun).Round(time.Millisecond).String())
			return nil
		case ctx.Err() != nil || !again(err) && !isLockTimeout(err) && !errors.Is(err, errUnknown):
			return wrap(ctx, doing, err)
		}
		select {
		case <-time.After(pauseMin):
		case <-ctx.Done():
			return wrap(ctx, doing, err)
		}
	}
}

func isLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}

// endSessions ends the sessions that f shuts out. Each node uses the same role, so it may end those of another.
func (l *Ledger) endSessions(ctx context.Context, f ledger.Fence) (int, error) {
	rows, err := l.pool.Query(ctx, `SELECT pid, application_name FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, $1)`, tagPrefix)
	if err != nil {
		return 0, err
	}
	type session struct {
		PID  int32
		Name string
	}
	sessions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[session])
	if err != nil {
		return 0, err
	}
	ended := 0
	for _, s := range sessions {
		if t, ok := parseTag(s.Name); !ok || !t.shutOutBy(f) {
			continue
		}
		// It may have ended its transaction since, and serve another: only the same tag is ended.
		tag, err := l.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`, s.PID, s.Name)
		if err != nil {
			return ended, err
		}
		ended += int(tag.RowsAffected())
	}
	return ended, nil
}

// shutOutOnce takes the locks and sets the guard rows, in one transaction.
func (l *Ledger) shutOutOnce(ctx context.Context, f ledger.Fence) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	want := l.expects()
	in, highest, err := lockOut(ctx, conn, f)
	if err != nil {
		return rollBack(ctx, conn, err)
	}
	if err, _ := in.problem(want); err != nil {
		return rollBack(ctx, conn, err)
	}
	if highest > f.Token {
		return rollBack(ctx, conn, fmt.Errorf("token %d has shut out %d already: %w", highest, f.Token, ledger.ErrFenced))
	}
	token := int64(f.Token)
	return commit(ctx, conn, []statement{
		{`INSERT INTO runs (run, shut_out) VALUES ($1, clock_timestamp()) ON CONFLICT (run) DO UPDATE SET shut_out = COALESCE(runs.shut_out, excluded.shut_out)`, []any{f.Run}},
		{`INSERT INTO fences (component, node, run, token) VALUES ($1, $2, $3, $4)
		ON CONFLICT (component, node, run) DO UPDATE SET token = excluded.token, changed = clock_timestamp() WHERE fences.token < excluded.token`,
			[]any{f.Component, f.Node, f.Run, token}},
		{`INSERT INTO events (kind, run, token) VALUES ('shut out', $1, $2)`, []any{f.Run, token}},
		notify,
		raiseMark(f.Token), // a copy that has lost a shut-out lets a dead run write
	})
}

// lockOut begins the transaction: the locks, then what the guard rows say.
func lockOut(ctx context.Context, conn *pgxpool.Conn, f ledger.Fence) (in lineage, highest uint64, err error) {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(`SELECT set_config('lock_timeout', $1, true)`, fmt.Sprint(lockPatience.Milliseconds()))
	b.Queue(`SELECT pg_advisory_xact_lock($1)`, runLock(f.Run))
	b.Queue(`SELECT pg_advisory_xact_lock($1)`, fenceLock(f))
	b.Queue(`SELECT `+lineageColumns+`, COALESCE((SELECT f.token FROM fences f WHERE (f.component, f.node, f.run) = ($1, $2, $3)), 0)::bigint FROM lineage`,
		f.Component, f.Node, f.Run).QueryRow(func(row pgx.Row) error { return row.Scan(append(in.fields(), &highest)...) })
	return in, highest, conn.SendBatch(ctx, b).Close()
}
