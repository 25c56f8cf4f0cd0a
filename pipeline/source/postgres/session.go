package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/pipeline/source"
)

// session is one connection of an attempt, and where it went.
type session struct {
	*pgx.Conn
	at address
}

// timeouts are those that a role, a database or the server may set, known to this version or not.
const timeouts = `('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`

// resetSession lifts them, and keeps foreign schemas out of our queries.
const resetSession = `SELECT set_config(name, CASE name WHEN 'search_path' THEN 'pg_catalog' ELSE '0' END, false) FROM pg_catalog.pg_settings
	WHERE name = 'search_path' OR name IN ` + timeouts

// liftedOptions lifts in a child those that are set.
const liftedOptions = `SELECT coalesce(string_agg('-c ' || name || '=0', ' ' ORDER BY name), '') FROM pg_catalog.pg_settings WHERE reset_val <> '0' AND name IN ` + timeouts

// connect opens a session that is tagged with the attempt, on the first server of the DSN that answers. The caller closes it.
func (s *Source) connect(ctx context.Context, a source.Attempt, database string) (*session, error) {
	var errs []error
	for _, at := range s.where.addresses() {
		conn, err := s.connectAt(ctx, a, at, database)
		if err == nil {
			return conn, nil
		}
		if _, refused := errors.AsType[*pgconn.PgError](err); refused || ctx.Err() != nil {
			return nil, s.wrap(ctx, err, "connect to database %q", database)
		}
		errs = append(errs, err)
	}
	return nil, s.wrap(ctx, errs[0], "connect to database %q", database)
}

// connectAt opens a session on one server. Its errors are those of pgx.
func (s *Source) connectAt(ctx context.Context, a source.Attempt, at address, database string) (*session, error) {
	return s.open(ctx, at, s.where.config(at, database, tag(a)))
}

// open connects and lifts the time-outs. Where one is so short that it ends what is to lift it, the connection begins
// without: not at once, since poolers take no such wish along.
func (s *Source) open(ctx context.Context, at address, c *pgx.ConnConfig) (*session, error) {
	const limit = "statement_timeout"
	conn, lifted, err := lift(ctx, c)
	if early, ok := errors.AsType[*pgconn.PgError](err); ok && early.Code == "57014" {
		c.RuntimeParams[limit] = "0"
		conn, lifted, err = lift(ctx, c)
		lifted = strings.TrimSpace("-c " + limit + "=0 " + lifted) // which the server took for that session's default
	}
	if err != nil {
		return nil, err
	}
	if lifted != "" {
		s.where.limits.Store(&lifted)
	}
	return &session{conn, at}, nil
}

// lift connects, and returns the options with which children lift the time-outs that are set.
func lift(ctx context.Context, c *pgx.ConnConfig) (conn *pgx.Conn, options string, err error) {
	if conn, err = pgx.ConnectConfig(ctx, c); err != nil {
		return nil, "", err
	}
	if _, err = conn.Exec(ctx, resetSession); err == nil {
		err = conn.QueryRow(ctx, liftedOptions).Scan(&options)
	}
	if err != nil {
		closeConn(conn)
	}
	return conn, options, err
}

// close ends the session politely, whatever became of the caller's context.
func (c *session) close() { closeConn(c.Conn) }

func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx) // what counts is that the session ends, and it does when the socket goes
}

// isLost says whether an error means that the connection broke, rather than that the server refused something.
func isLost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// detached returns a context for what must be done although ctx may have ended.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}

// endSessions ends the sessions that query selects and comes back when none is left, or ctx ends. query selects pids, with
// args. Each look is waited for whatever becomes of ctx: one that goes on in the server when we have left could end a
// session that begins later and is not meant (a client of a database that was just swapped in).
func endSessions(ctx context.Context, conn *session, query string, args ...any) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := endOnce(ctx, conn, query, args)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func endOnce(ctx context.Context, conn *session, query string, args []any) (left int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	look, cancel := detached(ctx)
	defer cancel()
	err = conn.QueryRow(look, `SELECT count(pg_terminate_backend(pid)) FROM (`+query+`) AS doomed WHERE pid <> pg_backend_pid()`, args...).Scan(&left)
	return left, err
}

// endOwn ends the sessions of an attempt on one server but those in keep: what a killed child may have left waiting there.
func (s *Source) endOwn(ctx context.Context, a source.Attempt, at address, keep ...uint32) error {
	conn, err := s.anyAt(ctx, a, at)
	if err != nil {
		return err
	}
	defer conn.close()
	return s.endOwnBy(ctx, conn, a, keep...)
}

// endOwnBy is endOwn on the server of a session.
func (s *Source) endOwnBy(ctx context.Context, conn *session, a source.Attempt, keep ...uint32) error {
	if keep == nil {
		keep = []uint32{}
	}
	err := endSessions(ctx, conn, `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND pid::bigint <> ALL ($2::bigint[])`, tag(a), keep)
	return s.wrap(ctx, err, "end the sessions of %s", tag(a))
}
