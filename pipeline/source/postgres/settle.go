package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// olderSessions selects the sessions of a task's attempts below a token.
const olderSessions = `SELECT pid FROM pg_stat_activity
	WHERE substring(application_name FROM '^fencepost:' || $1::text || ':([0-9]{1,16})$')::bigint < $2::bigint`

// Settle implements source.Source. The order matters: first sessions end, so that no swap is under way; then prepared
// databases go, so that none can begin; only then the names tell what happened.
func (s *Source) Settle(ctx context.Context, a source.Attempt, prepared source.Prepared) (source.Outcome, error) {
	doing := fmt.Sprintf("settle earlier attempts of task %s", a.Task)
	if err := checkAttempt(a); err != nil {
		return source.Undone, fmt.Errorf("%s: %w", doing, err)
	}
	s.endOlderElsewhere(ctx, a)
	conn, err := s.maintain(ctx, a)
	if err != nil {
		return source.Undone, err
	}
	defer conn.close()
	for left := true; left; {
		if err := endSessions(ctx, conn, olderSessions, a.Task, int64(a.Token)); err != nil {
			return source.Undone, s.wrap(ctx, err, "%s", doing)
		}
		if left, err = s.dropPrepared(ctx, conn, a); err != nil {
			return source.Undone, s.wrap(ctx, err, "%s", doing)
		}
	}
	if prepared.InPlace {
		outcome, err := s.settleInPlace(ctx, conn, a, prepared)
		return outcome, s.wrap(ctx, err, "%s", doing)
	}
	if prepared.ID == 0 {
		return source.Undone, nil
	}
	committed, err := wasSwapped(ctx, conn, prepared)
	if err != nil {
		return source.Undone, s.wrap(ctx, err, "%s", doing)
	}
	if committed {
		return source.Committed, nil
	}
	return source.Undone, nil
}

// endOlderElsewhere ends the sessions of earlier attempts on all servers of the DSN, when there are several: a dump may have
// gone to a standby. What a server that cannot be reached does, nobody can end.
func (s *Source) endOlderElsewhere(ctx context.Context, a source.Attempt) {
	all := s.where.addresses()
	if len(all) == 1 {
		return
	}
	var wg sync.WaitGroup
	for _, at := range all {
		wg.Go(func() {
			conn, err := s.anyAt(ctx, a, at)
			if err == nil {
				defer conn.close()
				err = s.wrap(ctx, endSessions(ctx, conn, olderSessions, a.Task, int64(a.Token)), "end them")
			}
			if err != nil {
				s.log.WarnContext(ctx, "sessions of earlier attempts may be left on a server", "task", a.Task, "server", at.String(), "error", err)
			}
		})
	}
	wg.Wait()
}

// dropPrepared drops the databases that earlier attempts of the task filled, and says whether there were any: then a
// late session may have come between, and it is worth looking again.
func (s *Source) dropPrepared(ctx context.Context, conn *session, a source.Attempt) (bool, error) {
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE '%\_\_fp\_%'`)
	if err != nil {
		return false, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, err
	}
	dropped := false
	for _, name := range names {
		token, ours := preparedBy(name, a.Task)
		if !ours || token >= a.Token {
			continue
		}
		if err := dropDatabase(ctx, conn, name); err != nil {
			return false, err
		}
		dropped = true
	}
	return dropped, nil
}
