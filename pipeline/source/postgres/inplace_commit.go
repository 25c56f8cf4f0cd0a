package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Commit implements source.Restore.
func (r *inPlace) Commit(ctx context.Context) error {
	switch {
	case r.over:
		return nil
	case !r.checked || r.progress.isFailed():
		return fmt.Errorf("%s: it was not checked", r.doing())
	}
	sql := fmt.Sprintf(releaseSQL, literal(r.attempt.Task), r.attempt.Token)
	if mutant == "attempt" {
		sql = fmt.Sprintf("INSERT INTO pg_temp.fencepost_key VALUES (%d); COMMIT;", r.attempt.Token)
	}
	_, err := r.psql.ask(ctx, sql, "1")
	if err == nil {
		err = r.psql.finish(ctx) // what is not 0 now is not about the COMMIT, which was answered
		r.over = true
		if err != nil {
			r.src.log.WarnContext(ctx, "psql ended badly after a commit", "database", r.options.Target, "error", err)
		}
		return nil
	}
	r.progress.fail()
	unclear := r.src.wrap(ctx, err, "%s", r.doing())
	if ctx.Err() == nil {
		unclear = r.src.errorf(r.psql.why(), "%s", r.doing())
	}
	return r.outcome(ctx, unclear)
}

// outcome finds out what became of a COMMIT that was not answered. The session that got it is ended; then the row tells.
func (r *inPlace) outcome(ctx context.Context, unclear error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	done, there, err := r.look(ctx, `task = $1 AND token = $2`)
	switch {
	case err != nil:
		return r.src.errorf(problem{"the answer to the commit was lost and the server cannot be asked", "look at the table fencepost.attempt of the database",
			[]error{source.ErrUnavailable, unclear}}, "%s", r.doing())
	case done:
		r.over = true
		return nil
	case !there:
		return r.superseded()
	}
	return unclear
}

// look ends the attempt's sessions, takes its row, and says whether it was there and done. One that is not done is
// deleted.
func (r *inPlace) look(ctx context.Context, mine string) (done, there bool, err error) {
	conn, err := r.src.primaryAt(ctx, r.attempt, r.at, r.options.Target)
	if err != nil {
		return false, false, err
	}
	defer conn.close()
	for {
		if err := endSessions(ctx, conn, `SELECT pid FROM pg_stat_activity WHERE application_name = $1`, tag(r.attempt)); err != nil {
			return false, false, err
		}
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fencepost.attempt WHERE `+mine+`)`, r.attempt.Task, int64(r.attempt.Token)).Scan(&there)
		if err != nil {
			return false, false, err
		}
		done, err = takeAttempts(ctx, conn, mine, r.attempt.Task, int64(r.attempt.Token))
		if !errors.Is(err, errHeld) || ctx.Err() != nil {
			return done, there, err
		}
	}
}

// Abort implements source.Restore.
func (r *inPlace) Abort() error {
	if r.over {
		return nil
	}
	if r.psql != nil {
		r.psql.kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*cleanupTimeout)
	defer cancel()
	done, _, err := r.look(ctx, `task = $1 AND token = $2`)
	if state := sqlState(err); state == "42P01" || state == "3F000" {
		err = nil // it did not come so far as to make the table
	}
	if err != nil {
		return r.src.wrap(ctx, err, "end the %s", r.doing())
	}
	if done {
		r.src.log.WarnContext(ctx, "a restore that was to be ended had committed", "database", r.options.Target, "task", r.attempt.Task)
	}
	r.over = true
	return nil
}
