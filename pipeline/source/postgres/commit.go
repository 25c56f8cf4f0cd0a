package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/pipeline/source"
)

func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// Commit implements source.Restore.
func (r *restore) Commit(ctx context.Context) error {
	if r.over {
		return nil
	}
	doing := fmt.Sprintf("swap in database %q", r.options.Target)
	if !r.checked {
		return fmt.Errorf("%s: it was not checked", doing)
	}
	if err := r.swap(ctx); err != nil {
		return r.src.wrap(ctx, err, "%s", doing)
	}
	r.over = true
	if r.prepared.Undo != "" && r.options.KeepOld == 0 {
		r.dropOld(ctx)
	}
	return nil
}

// swapAttempts bounds how often a target that its clients never leave is tried; each try lasts five seconds or more.
const swapAttempts = 6

// swap renames until it succeeds or something is wrong. Clients of the target are disconnected all the while.
func (r *restore) swap(ctx context.Context) error {
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return err
	}
	defer conn.close()
	return renames(ctx, conn, r.rename, r.outcome)
}

// renames runs a transaction of renames until it succeeds or something is wrong. Until its COMMIT nobody sees the new
// names; a rename holds a lock that keeps new clients out meanwhile. outcome settles a COMMIT that was not answered.
func renames(ctx context.Context, conn *session, rename func(context.Context, pgx.Tx) error, outcome func(context.Context, uint32, error) error) error {
	for attempt := 1; ; attempt++ {
		err := renamesOnce(ctx, conn, rename, outcome)
		if sqlState(err) != "55006" || attempt == swapAttempts || ctx.Err() != nil {
			return err
		}
	}
}

func renamesOnce(ctx context.Context, conn *session, rename func(context.Context, pgx.Tx) error, outcome func(context.Context, uint32, error) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := rename(ctx, tx); err != nil {
		clean, cancel := detached(ctx)
		defer cancel()
		_ = tx.Rollback(clean) // a lost connection rolls back as well
		return err
	}
	pid := conn.PgConn().PID()
	err = tx.Commit(ctx)
	if err == nil || sqlState(err) != "" || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	return outcome(ctx, pid, err)
}

// rename verifies that both databases are the ones that were prepared, and renames them.
func (r *restore) rename(ctx context.Context, tx pgx.Tx) error {
	if err := r.verify(ctx, tx); err != nil {
		return err
	}
	if err := r.src.sameTimeline(ctx, tx, r.timeline, fmt.Sprintf("swap in database %q", r.options.Target)); err != nil {
		return err
	}
	evict, err := r.evict(ctx)
	if err != nil {
		return err
	}
	defer evict()
	if r.prepared.Undo != "" {
		if _, err := tx.Exec(ctx, renameStatement(r.options.Target, r.prepared.Undo)); err != nil {
			return supersededIfGone(err)
		}
		if err := r.markOld(ctx, tx); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, renameStatement(r.prepared.Database, r.options.Target)); err != nil {
		return supersededIfGone(err)
	}
	return r.verifySwapped(ctx, tx)
}

func renameStatement(from, to string) string {
	return `ALTER DATABASE ` + ident(from) + ` RENAME TO ` + ident(to)
}

// supersededIfGone: between verify and rename somebody dropped one, or made one of the target's name.
func supersededIfGone(err error) error {
	if state := sqlState(err); state == "3D000" || state == "42P04" {
		return fmt.Errorf("%w: %w", source.ErrSuperseded, err)
	}
	return err
}

const namesQuery = `SELECT coalesce((SELECT oid FROM pg_database WHERE datname = $1), 0), coalesce((SELECT oid FROM pg_database WHERE datname = $2), 0)`

func (r *restore) verify(ctx context.Context, tx pgx.Tx) error {
	var fresh, old uint32
	if err := tx.QueryRow(ctx, namesQuery, r.prepared.Database, r.options.Target).Scan(&fresh, &old); err != nil {
		return err
	}
	if fresh != r.prepared.ID || old != r.prepared.Replaces {
		return r.src.errorf(problem{source.ErrSuperseded.Error(), "see which task restored the database meanwhile", []error{source.ErrSuperseded}},
			"swap in database %q", r.options.Target)
	}
	return nil
}

// verifySwapped looks again under the locks of the renames: names could have moved between verify and them.
func (r *restore) verifySwapped(ctx context.Context, tx pgx.Tx) error {
	var fresh, old uint32
	if err := tx.QueryRow(ctx, namesQuery, r.options.Target, r.prepared.Undo).Scan(&fresh, &old); err != nil {
		return err
	}
	if fresh != r.prepared.ID || old != r.prepared.Replaces {
		return source.ErrSuperseded
	}
	return nil
}

// evict disconnects the clients of both databases, and goes on until the function that it returns is called.
func (r *restore) evict(ctx context.Context) (func(), error) {
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ids := []uint32{r.prepared.ID, r.prepared.Replaces}
	r.reportClients(ctx, conn, ids)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer conn.close()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			err := endSessions(ctx, conn, `SELECT pid FROM pg_stat_activity WHERE datid = ANY ($1::oid[]) AND usesysid IS NOT NULL`, ids)
			if err != nil && ctx.Err() == nil {
				r.src.log.WarnContext(ctx, "cannot disconnect the clients of a database", "database", r.options.Target, "error", r.src.wrap(ctx, err, "disconnect clients"))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}, nil
}

// reportClients tells the operator who is about to be disconnected.
func (r *restore) reportClients(ctx context.Context, conn *session, ids []uint32) {
	var n int
	var who string
	err := conn.QueryRow(ctx, `SELECT count(*), coalesce(string_agg(DISTINCT concat_ws('/', usename, nullif(application_name, '')), ', '), '')
		FROM pg_stat_activity WHERE datid = ANY ($1::oid[])`, ids).Scan(&n, &who)
	if err == nil && n > 0 {
		r.src.log.InfoContext(ctx, "disconnecting clients for a restore", "database", r.options.Target, "sessions", n, "clients", who)
	}
}

// kept is the comment of a database that is kept as an undo. It replaces the database's own comment, which it carries.
type kept struct {
	By    string    `json:"fencepost"` // "replaced"
	Task  string    `json:"task"`
	At    time.Time `json:"at"`    // when it was replaced, by the server's clock
	Until time.Time `json:"until"` // when it may go
	Own   string    `json:"comment,omitempty"`
}

const keptMark = "replaced"

// markOld writes down, in the same transaction, since when and until when the replaced database is kept.
func (r *restore) markOld(ctx context.Context, tx pgx.Tx) error {
	k := kept{By: keptMark, Task: r.attempt.Task}
	err := tx.QueryRow(ctx, `SELECT clock_timestamp(), coalesce(shobj_description($1, 'pg_database'), '')`, r.prepared.Replaces).Scan(&k.At, &k.Own)
	if err != nil {
		return err
	}
	k.Until = k.At.Add(r.options.KeepOld)
	text, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("mark the replaced database: %w", err)
	}
	_, err = tx.Exec(ctx, `COMMENT ON DATABASE `+ident(r.prepared.Undo)+` IS `+literal(string(text)))
	return err
}

// outcome finds out what became of a COMMIT that was not answered. The session that sent it may still be at it, so it is
// ended first; then the names tell.
func (r *restore) outcome(ctx context.Context, pid uint32, unclear error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return r.src.errorf(problem{"the answer to the commit was lost and the server cannot be asked", "look which database has the name now", []error{source.ErrUnavailable, unclear}},
			"swap in database %q", r.options.Target)
	}
	defer conn.close()
	err = endSessions(ctx, conn, `SELECT pid FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`, int32(pid), tag(r.attempt))
	if err != nil {
		return err
	}
	committed, err := wasSwapped(ctx, conn, r.prepared)
	if err != nil {
		return err
	}
	if committed {
		return nil
	}
	return unclear
}

// wasSwapped says whether the prepared database got its name: it exists, and not under the name it was filled under. It
// may have been replaced by a later restore since, or renamed by hand; the swap has happened all the same.
func wasSwapped(ctx context.Context, conn *session, p source.Prepared) (bool, error) {
	var yes bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname <> $1 AND oid = $2)`, p.Database, p.ID).Scan(&yes)
	return yes, err
}

// dropOld drops the replaced database when it is not to be kept. The restore has succeeded by then; what cannot be
// dropped now is dropped by ExpireOld.
func (r *restore) dropOld(ctx context.Context) {
	ctx, cancel := detached(ctx)
	defer cancel()
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err == nil {
		defer conn.close()
		err = dropDatabase(ctx, conn, r.prepared.Undo)
	}
	if err != nil {
		r.src.log.WarnContext(ctx, "the replaced database could not be dropped", "database", r.prepared.Undo, "error", r.src.wrap(ctx, err, "drop it"))
	}
}

// ExpireOld drops replaced databases on this server whose time as an undo is over, by the server's clock, and returns
// their names. Databases whose comment was changed since are left alone. Call it now and then, under a task of its own.
func (s *Source) ExpireOld(ctx context.Context, a source.Attempt) ([]string, error) {
	conn, err := s.maintain(ctx, a)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	var now time.Time
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return nil, s.wrap(ctx, err, "find replaced databases")
	}
	rows, err := conn.Query(ctx, `SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database
		WHERE datname ~ '__was_[0-9]{1,16}$' AND shobj_description(oid, 'pg_database') IS NOT NULL ORDER BY 1`)
	if err != nil {
		return nil, s.wrap(ctx, err, "find replaced databases")
	}
	var expired []string
	err = eachPair(rows, func(name, comment string) {
		var k kept
		if strings.HasPrefix(comment, "{") && json.Unmarshal([]byte(comment), &k) == nil && k.By == keptMark && k.Until.Before(now) {
			expired = append(expired, name)
		}
	})
	if err != nil {
		return nil, s.wrap(ctx, err, "find replaced databases")
	}
	for i, name := range expired {
		if err := dropDatabase(ctx, conn, name); err != nil {
			return expired[:i], s.wrap(ctx, err, "drop replaced database %q", name)
		}
	}
	return expired, nil
}
