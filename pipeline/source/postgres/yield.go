package postgres

import (
	"context"
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

// waitersQuery looks at locks and names only, which every role may see.
const waitersQuery = `SELECT DISTINCT pid, concat_ws('/', coalesce(usename::text, 'somebody'), nullif(application_name, ''))
	FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name IS DISTINCT FROM $1
	AND pg_blocking_pids(pid) && ARRAY(SELECT a.pid FROM pg_stat_activity a WHERE a.application_name = $1)`

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

// yielding watches for waiters while a program runs, in a session of its own. end is called with the reason when the dump
// is to give way. The function that it returns ends the watch and waits for that.
func (d *dump) yielding(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	if d.src.cfg.Yield == YieldNever {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := d.watch(ctx, end); err != nil && ctx.Err() == nil {
			d.src.log.WarnContext(ctx, "cannot see who waits for a dump", "database", d.src.Database(), "error", d.src.wrap(ctx, err, "look at locks"))
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

func (d *dump) watch(ctx context.Context, end context.CancelCauseFunc) error {
	conn, err := d.src.connect(ctx, d.attempt, d.src.Database())
	if err != nil {
		return err
	}
	defer conn.close()
	limit := d.src.cfg.YieldAfter
	p := patience{limit: limit}
	tick := time.NewTicker(min(time.Second, max(20*time.Millisecond, limit/4)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		rows, err := conn.Query(ctx, waitersQuery, tag(d.attempt))
		if err != nil {
			return err
		}
		waiting, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w waiter, err error) { return w, row.Scan(&w.pid, &w.who) })
		if err != nil {
			return err
		}
		for _, w := range p.over(time.Now(), waiting) {
			d.src.log.WarnContext(ctx, "somebody waits for a dump", "database", d.src.Database(), "pid", w.pid, "who", w.who, "longer_than", limit)
			if d.src.cfg.Yield == YieldCancel {
				end(d.src.errorf(problem{fmt.Sprintf("it gave way to %s, who had waited %v for its locks", w.who, limit),
					"dump when nobody changes tables, or set yield to warn", []error{source.ErrIncomplete}}, "dump database %q", d.src.Database()))
				return nil
			}
		}
	}
}
