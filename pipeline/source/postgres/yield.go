package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Yield says what happens when somebody waits for a lock that a dump holds. A dump keeps a weak lock on every table, which
// holds up ALTER TABLE, TRUNCATE and the like, and whoever queues behind these.
type Yield string

// What a dump does about those who wait for it.
const (
	YieldNever  Yield = ""       // nothing is watched
	YieldWarn   Yield = "warn"   // they are told in the log
	YieldCancel Yield = "cancel" // the dump ends with an error; a later attempt begins anew
)

// waiter is a session that waits for one of ours.
type waiter struct {
	pid int32
	who string
}

// waitersQuery looks at locks and names only, which every role may see. On a standby it is replay that waits, of which
// pg_blocking_pids knows nothing; nobody else may ask for such a lock there.
const waitersQuery = `WITH ours AS (SELECT pid FROM pg_stat_activity WHERE application_name = $1)
	SELECT DISTINCT pid, concat_ws('/', coalesce(usename::text, CASE WHEN pg_is_in_recovery() THEN 'replay' ELSE 'somebody' END), nullif(application_name, ''))
	FROM pg_locks wanted LEFT JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name IS DISTINCT FROM $1
	AND (pg_blocking_pids(pid) && ARRAY(SELECT pid FROM ours) OR pg_is_in_recovery() AND locktype = 'relation' AND mode = 'AccessExclusiveLock'
		AND EXISTS (SELECT FROM pg_locks held WHERE held.granted AND held.locktype = 'relation' AND held.database = wanted.database
			AND held.relation = wanted.relation AND held.pid IN (SELECT pid FROM ours)))`

// patience remembers since when who waits. It is pure; now never goes back.
type patience struct {
	limit time.Duration
	since map[int32]time.Time
	told  map[int32]bool
}

// over returns those that have waited longer than the limit and were not returned before.
func (p *patience) over(now time.Time, waiting []waiter) []waiter {
	var out []waiter
	since, told := map[int32]time.Time{}, map[int32]bool{}
	for _, w := range waiting {
		from, known := p.since[w.pid]
		if !known {
			from = now
		}
		since[w.pid], told[w.pid] = from, p.told[w.pid]
		if now.Sub(from) >= p.limit && !told[w.pid] {
			told[w.pid] = true
			out = append(out, w)
		}
	}
	p.since, p.told = since, told
	return out
}

// lockWatch looks who stands in whose way, while something runs, in a session of its own.
type lockWatch struct {
	src      *Source
	attempt  source.Attempt
	at       address // the server on which it runs
	database string
	query    string        // selects pid and name of those meant; $1 is the attempt's tag
	limit    time.Duration // after which each is told of
	tell     func(ctx context.Context, conn *session, w waiter) error
}

// errSeenEnough ends a watch.
var errSeenEnough = errors.New("seen enough")

// start begins to watch. The function that it returns ends the watch and waits for that.
func (l lockWatch) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := l.run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errSeenEnough) {
			l.src.log.WarnContext(ctx, "cannot see who waits for whom", "database", l.database, "error", l.src.wrap(ctx, err, "look at locks"))
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

func (l lockWatch) run(ctx context.Context) error {
	conn, err := l.src.connectAt(ctx, l.attempt, l.at, l.database)
	if err != nil {
		return err
	}
	defer conn.close()
	p := patience{limit: l.limit}
	tick := time.NewTicker(min(time.Second, max(20*time.Millisecond, l.limit/4)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		rows, err := conn.Query(ctx, l.query, tag(l.attempt))
		if err != nil {
			return err
		}
		waiting, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w waiter, err error) { return w, row.Scan(&w.pid, &w.who) })
		if err != nil {
			return err
		}
		for _, w := range p.over(time.Now(), waiting) {
			if err := l.tell(ctx, conn, w); err != nil {
				return err
			}
		}
	}
}

// yielding watches for those who wait for a dump. end is called with the reason when the dump is to give way.
func (d *dump) yielding(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	if d.src.cfg.Yield == YieldNever {
		return func() {}
	}
	limit := d.src.cfg.YieldAfter
	return lockWatch{d.src, d.attempt, d.sess.at, d.src.Database(), waitersQuery, limit, func(ctx context.Context, _ *session, w waiter) error {
		if _, told := d.told.LoadOrStore(w.pid, true); told && d.src.cfg.Yield == YieldWarn {
			return nil // by the watch of another stream
		}
		d.src.log.WarnContext(ctx, "somebody waits for a dump", "database", d.src.Database(), "pid", w.pid, "who", w.who, "longer_than", limit)
		if d.src.cfg.Yield != YieldCancel {
			return nil
		}
		end(d.src.errorf(problem{fmt.Sprintf("it gave way to %s, who had waited %v for its locks", w.who, limit),
			"dump when nobody changes tables, or set yield to warn", []error{source.ErrIncomplete, source.ErrUnavailable}}, "dump database %q", d.src.Database()))
		return errSeenEnough
	}}.start(ctx)
}

// holdersQuery selects the sessions that a restore in place waits for. A prepared transaction has no session.
const holdersQuery = `SELECT DISTINCT b.pid, CASE b.pid WHEN 0 THEN 'a prepared transaction' ELSE concat_ws('/', coalesce(h.usename::text, 'somebody'), nullif(h.application_name, '')) END
	FROM pg_stat_activity mine, unnest(pg_blocking_pids(mine.pid)) AS b (pid) LEFT JOIN pg_stat_activity h ON h.pid = b.pid WHERE mine.application_name = $1`

// holdersTold is after what time a restore that waits for a lock says for whom, or disconnects them.
const holdersTold = 2 * time.Second

// pushing watches for clients that a restore in place waits for: they are told of, and disconnected when that was allowed.
func (r *inPlace) pushing(ctx context.Context) (stop func()) {
	return lockWatch{r.src, r.attempt, r.at, r.options.Target, holdersQuery, holdersTold, func(ctx context.Context, conn *session, w waiter) error {
		log := r.src.log.With("database", r.options.Target, "pid", w.pid, "who", w.who)
		if !r.options.Disconnect || w.pid == 0 {
			log.WarnContext(ctx, "a restore in place waits for a client of the database")
			return nil
		}
		log.InfoContext(ctx, "disconnecting a client for a restore in place")
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend($1)`, w.pid)
		return err
	}}.start(ctx)
}
