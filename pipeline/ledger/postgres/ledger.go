package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Ledger implements ledger.Ledger in a PostgreSQL database. Open makes it, Close ends it. Safe for concurrent use.
type Ledger struct {
	cfg  Config
	pool *pgxpool.Pool
	hub  *hub

	mu       sync.Mutex
	expected expectation
	enrolled map[string]bool // runs whose guard row this process has made
	upgraded uint32          // protocol whose migrations are made

	// hook is called inside each guarded transaction, with the stage that comes next: update (the guard was read, nothing is
	// written) and commit. It is where tests stop a zombie; nil otherwise.
	hook func(stage string)
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open connects, brings the tables up to the version of the group's protocol, claims the ledger for c.Cluster when nobody has it, checks that
// it may be used, and begins to listen. ErrSetup means that a person must change something, ErrForeign and ErrFrozen that
// a person must decide; all three, and whatever else trying again may help with, are ledger.ErrUnavailable. The caller
// calls Close.
func Open(ctx context.Context, c Config) (*Ledger, error) {
	const doing = "open the ledger"
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	l := &Ledger{cfg: c, enrolled: make(map[string]bool), expected: expectation{cluster: c.Cluster}}
	if l.pool, err = connect(ctx, c, l.connected); err != nil {
		return nil, wrap(ctx, doing, err)
	}
	if err := l.ready(ctx); err != nil {
		l.pool.Close()
		return nil, wrap(ctx, doing, err)
	}
	l.hub = newHub(l.pool.Config().ConnConfig, c.Poll, c.Logger)
	l.hub.start()
	return l, nil
}

// connect makes a pool whose new sessions pass each.
func connect(ctx context.Context, c Config, each func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	pc, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	pc.AfterConnect = each
	return pgxpool.NewWithConfig(ctx, pc)
}

// ready makes the ledger usable, or says why it is not.
func (l *Ledger) ready(ctx context.Context) error {
	if err := l.mayTouch(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, l.pool, l.cfg.Protocol); err != nil {
		return err
	}
	if err := mayUse(ctx, l.pool); err != nil {
		return err
	}
	mark, err := l.cfg.groupMark(ctx) // before the lineage is read, which others raise meanwhile: what is known by now, it has to hold
	if err != nil {
		return err
	}
	in, err := claimLineage(ctx, l.pool, l.cfg.Cluster)
	if err != nil {
		return err
	}
	uses, err := l.cfg.uses(ctx, in.ledger)
	if err != nil {
		return err
	}
	if err := inspect(ctx, l.pool, in, expectation{ledger: uses, cluster: l.cfg.Cluster, mark: mark}); err != nil {
		return err
	}
	if err := l.cfg.compare(ctx, l.pool); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = expectation{ledger: in.ledger, cluster: l.cfg.Cluster, mark: max(mark, in.mark)}
	return nil
}

// mayTouch says whether anything may be changed in the database at all: not a table of another group's ledger, whatever its
// version, and nothing where the group's own ledger is not.
func (l *Ledger) mayTouch(ctx context.Context) error {
	in, made, err := readLineage(ctx, l.pool)
	switch {
	case err != nil:
		return err
	case made && in.cluster != l.cfg.Cluster:
		err, _ := in.problem(expectation{cluster: l.cfg.Cluster})
		return err
	case made:
		return nil
	}
	uses, err := l.cfg.uses(ctx, "")
	if err == nil && uses != "" {
		return problem{"there is no ledger in this database, and the group uses another one",
			"give ledger.dsn of this node what the other nodes have, and start it again; if the group's ledger is lost for good: fencepost ledger init",
			[]error{ErrFrozen, ledger.ErrUnavailable}}
	}
	return err
}

// mayUse checks the rights on every table, so that a missing one is told at the start and not by the first backup.
func mayUse(ctx context.Context, q querier) error {
	var lacks *string
	err := q.QueryRow(ctx, `SELECT min(tablename) FROM pg_tables WHERE schemaname = $1
		AND NOT has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT, INSERT, UPDATE, DELETE')`, schema).Scan(&lacks)
	if err != nil || lacks == nil {
		return err
	}
	return explainCode("42501", "permission denied for table "+*lacks)
}

// connected makes a new session fit for use. A server that was put back in time or exchanged is noticed here: that
// breaks every session first.
func (l *Ledger) connected(ctx context.Context, conn *pgx.Conn) error {
	if err := begin(ctx, conn); err != nil {
		return err
	}
	if l.expects().ledger == "" {
		return nil // Open is still looking
	}
	l.hear(ctx)
	want := l.expects()
	var in lineage
	err := conn.QueryRow(ctx, `SELECT `+lineageColumns+` FROM `+schema+`.lineage`).Scan(in.fields()...)
	if errors.Is(err, pgx.ErrNoRows) || missing(err) {
		return frozen("its tables are gone")
	}
	if err != nil {
		return fmt.Errorf("read the lineage: %w", err)
	}
	return inspect(ctx, conn, in, want)
}

// Upgrade makes the migrations that wait for the group to write that protocol; nothing when they are there. Any node may call
// it, several at once, while all work. It blocks until that is done, or ctx ends.
func (l *Ledger) Upgrade(ctx context.Context, protocol uint32) error {
	l.mu.Lock()
	done := protocol <= l.upgraded
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := migrate(ctx, l.pool, protocol); err != nil {
		return wrap(ctx, "upgrade the ledger", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.upgraded = max(l.upgraded, protocol)
	return nil
}

// Now is the server's time.
func (l *Ledger) Now(ctx context.Context) (now time.Time, err error) {
	err = l.repeat(ctx, "read the ledger's clock", func(ctx context.Context) error {
		return l.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	})
	return now, err
}

// hearWithin bounds the question for the group's mark when a session begins.
const hearWithin = 2 * time.Second

// hear learns the group's mark: another process may have seen a result that this one has not. A group that does not answer
// gives nothing out either.
func (l *Ledger) hear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hearWithin)
	defer cancel()
	mark, err := l.cfg.groupMark(ctx)
	if err != nil {
		l.cfg.Logger.Debug("ledger: the group did not tell its mark", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected.mark = max(l.expected.mark, mark)
}

// Stands says why the ledger must not be used at this moment, as Open would; nil when it may.
func (l *Ledger) Stands(ctx context.Context) error {
	return l.repeat(ctx, "look at the ledger", l.standsOnce)
}

func (l *Ledger) standsOnce(ctx context.Context) error {
	var in lineage
	want := l.expects()
	err := l.pool.QueryRow(ctx, `SELECT `+lineageColumns+` FROM lineage`).Scan(in.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return frozen("its tables are gone")
	}
	if err != nil {
		return err
	}
	return inspect(ctx, l.pool, in, want)
}

func (l *Ledger) expects() expectation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expected
}

// holds notes that the ledger holds the result of token.
func (l *Ledger) holds(ctx context.Context, token uint64) {
	l.mu.Lock()
	l.expected.mark = max(l.expected.mark, token)
	l.mu.Unlock()
	if l.cfg.Marked != nil {
		l.cfg.Marked(ctx, token)
	}
}

// Close ends the watching and all sessions, and waits for calls that are under way. May be called twice.
func (l *Ledger) Close() error {
	l.hub.stop()
	l.pool.Close()
	return nil
}

// Watch implements ledger.Ledger: a hint after each change that the server announces, at every poll, and whenever
// announcements may have been missed.
func (l *Ledger) Watch(ctx context.Context) <-chan struct{} { return l.hub.watch(ctx) }
