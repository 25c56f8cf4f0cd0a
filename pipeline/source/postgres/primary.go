package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/pipeline/source"
)

// What changes something goes to the primary among the DSN's servers, whichever of them it is just now and whatever the DSN
// says of target_session_attrs, which is about dumps. A restore stays where it began: who has only a part of it must not
// swap it in.

// errStandby: the server is a standby, on which nothing can be made.
var errStandby = errors.New("it is a standby")

// noStandby refuses a connection to a standby. A name may stand for several servers: pgx then tries the next one.
func noStandby(ctx context.Context, conn *pgconn.PgConn) error {
	got := conn.ExecParams(ctx, `SELECT pg_catalog.pg_is_in_recovery()`, nil, nil, nil, nil).Read()
	switch {
	case got.Err != nil:
		return got.Err
	case len(got.Rows) == 1 && string(got.Rows[0][0]) == "t":
		return errStandby
	}
	return nil
}

// primaryAt opens a session on one server, which must be a primary.
func (s *Source) primaryAt(ctx context.Context, a source.Attempt, at address, database string) (*session, error) {
	c := s.where.config(at, database, tag(a))
	c.ValidateConnect = noStandby
	conn, err := s.open(ctx, at, c)
	if errors.Is(err, errStandby) && ctx.Err() == nil {
		return nil, s.errorf(problem{fmt.Sprintf("%s is a standby, where nothing can be made", at),
			"name the primary in the DSN, or wait until one of its servers is promoted", []error{source.ErrUnavailable, errStandby}}, "connect to database %q", database)
	}
	return conn, s.wrap(ctx, err, "connect to database %q", database)
}

// primary looks for the primary among the DSN's servers. When there is none, whoever is no standby tells why.
func (s *Source) primary(ctx context.Context, a source.Attempt, database string) (*session, error) {
	var why error
	for _, at := range s.where.addresses() {
		conn, err := s.primaryAt(ctx, a, at, database)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		if why == nil || errors.Is(why, errStandby) && !errors.Is(err, errStandby) {
			why = err
		}
	}
	return nil, why
}

// maintain opens a session in the database from which databases are created, renamed and dropped, on the primary.
func (s *Source) maintain(ctx context.Context, a source.Attempt) (*session, error) {
	return s.inMaintenance(ctx, func(database string) (*session, error) { return s.primary(ctx, a, database) })
}

// maintainAt is maintain on one server.
func (s *Source) maintainAt(ctx context.Context, a source.Attempt, at address) (*session, error) {
	return s.inMaintenance(ctx, func(database string) (*session, error) { return s.primaryAt(ctx, a, at, database) })
}

// anyAt opens a session on one server, be it a standby, from which sessions can be ended.
func (s *Source) anyAt(ctx context.Context, a source.Attempt, at address) (*session, error) {
	return s.inMaintenance(ctx, func(database string) (*session, error) {
		conn, err := s.connectAt(ctx, a, at, database)
		return conn, s.wrap(ctx, err, "connect to database %q", database)
	})
}

func (s *Source) inMaintenance(ctx context.Context, open func(database string) (*session, error)) (*session, error) {
	if s.cfg.Maintenance != "" {
		return open(s.cfg.Maintenance)
	}
	conn, err := open("postgres")
	if err == nil || errors.Is(err, source.ErrUnavailable) || ctx.Err() != nil {
		return conn, err
	}
	if conn, err := open("template1"); err == nil {
		return conn, nil
	}
	return nil, err
}

// timelineQuery tells how often the server's history has branched: a standby that is promoted begins a new one.
const timelineQuery = `SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`

// sameTimeline refuses to go on with what was begun before a standby took over: it may have got only a part of it.
func (s *Source) sameTimeline(ctx context.Context, tx pgx.Tx, want, doing string) error {
	var now string
	if err := tx.QueryRow(ctx, timelineQuery).Scan(&now); err != nil {
		return err
	}
	if now != want {
		return s.errorf(problem{fmt.Sprintf("a standby took over since it began (timeline %s, then %s), which may have got only a part of it", strings.TrimLeft(want, "0"), strings.TrimLeft(now, "0")),
			"the next attempt begins anew", []error{source.ErrIncomplete, source.ErrUnavailable}}, "%s", doing)
	}
	return nil
}
