package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// makeAttempts makes the table of attempts in a target. A row is made before anything else; the restore's own
// transaction locks it first and sets done last, so that both become visible in one step. Whoever deletes the row makes
// sure that this transaction cannot commit. Rows of restores that happened are kept for a month.
const makeAttempts = `CREATE SCHEMA IF NOT EXISTS fencepost;
	CREATE TABLE IF NOT EXISTS fencepost.attempt (task text, token bigint, done boolean NOT NULL DEFAULT false, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (task, token));
	COMMENT ON TABLE fencepost.attempt IS 'restores in place; dumps leave it out';
	DELETE FROM fencepost.attempt WHERE done AND at < now() - interval '30 days'`

// insertAttempt makes a row unless a later attempt has one, or the task is done.
const insertAttempt = `INSERT INTO fencepost.attempt (task, token) SELECT $1::text, $2::bigint
	WHERE NOT EXISTS (SELECT FROM fencepost.attempt WHERE task = $1 AND (done OR token >= $2))`

// announce makes the row of an attempt.
func announce(ctx context.Context, conn *session, a source.Attempt) error {
	// Two that make the table at the same time: the second finds it when it tries again.
	for tries := 1; ; tries++ {
		_, err := conn.PgConn().Exec(ctx, makeAttempts).ReadAll()
		if err == nil {
			break
		}
		if state := sqlState(err); tries == 3 || (state != "23505" && state != "42P06" && state != "42P07" && state != "XX000") {
			return err
		}
	}
	tag, err := conn.Exec(ctx, insertAttempt, a.Task, int64(a.Token))
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("%w: the target knows a later attempt of the task", source.ErrSuperseded)
	}
	return err
}

// errHeld: a session of an earlier attempt has the row.
var errHeld = errors.New("the row is held")

// takeAttempts locks the rows of a task that query selects, deletes those that are not done, and says whether any is:
// then the restore happened. errHeld when a session still holds one.
func takeAttempts(ctx context.Context, conn *session, below string, args ...any) (done bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT done FROM fencepost.attempt WHERE `+below+` FOR UPDATE NOWAIT`, args...)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[bool])
		if err != nil {
			return err
		}
		for _, one := range all {
			done = done || one
		}
		_, err = tx.Exec(ctx, `DELETE FROM fencepost.attempt WHERE NOT done AND `+below, args...)
		return err
	})
	switch sqlState(err) {
	case "55P03": // somebody holds a row
		return false, errHeld
	case "42P01", "3F000": // no table: no attempt ever began here
		return false, nil
	}
	return done, err
}

// settleInPlace makes sure that no earlier attempt of the task can commit, and says whether one did. Sessions are ended
// until none of them holds its row: one that comes late finds its row gone.
func (s *Source) settleInPlace(ctx context.Context, conn *session, a source.Attempt, p source.Prepared) (source.Outcome, error) {
	target, err := targetName(ctx, conn, p)
	if err != nil || target == "" {
		return source.Undone, err // the database is gone, and what was restored into it
	}
	there, err := s.primaryAt(ctx, a, conn.at, target)
	if err != nil {
		return source.Undone, err
	}
	defer there.close()
	for {
		if err := endSessions(ctx, conn, olderSessions, a.Task, int64(a.Token)); err != nil {
			return source.Undone, err
		}
		done, err := takeAttempts(ctx, there, `task = $1 AND token < $2`, a.Task, int64(a.Token))
		switch {
		case errors.Is(err, errHeld) && ctx.Err() == nil:
			continue
		case err != nil:
			return source.Undone, err
		case done:
			return source.Committed, nil
		}
		return source.Undone, nil
	}
}

// targetName finds the target of a restore in place: by its OID when that was recorded, since a later restore may have
// put it aside; "" when it is gone.
func targetName(ctx context.Context, conn *session, p source.Prepared) (string, error) {
	var name string
	err := conn.QueryRow(ctx, `SELECT datname FROM pg_database WHERE CASE $2::oid WHEN 0 THEN datname = $1 ELSE oid = $2 END`, p.Target, p.ID).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return name, err
}
