package postgres

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

func TestStandbyFits(t *testing.T) {
	const limit = 5 * time.Minute
	for name, test := range map[string]struct {
		state standbyState
		fails string
	}{
		"primary":                 {state: standbyState{age: -time.Second}},
		"caught up, idle primary": {state: standbyState{standby: true, receiving: true, caughtUp: true, age: 24 * time.Hour}},
		"a little behind":         {state: standbyState{standby: true, receiving: true, age: time.Minute}},
		"far behind":              {state: standbyState{standby: true, receiving: true, age: time.Hour}, fails: "1h0m0s behind, at most 5m0s are allowed: it lags"},
		"no receiver, fresh":      {state: standbyState{standby: true, caughtUp: true, age: time.Minute}},
		"no receiver, old":        {state: standbyState{standby: true, caughtUp: true, age: time.Hour}, fails: "receives nothing"},
		"paused":                  {state: standbyState{standby: true, receiving: true, caughtUp: true, paused: true, age: time.Hour}, fails: "paused"},
		"nothing replayed":        {state: standbyState{standby: true, age: -time.Second}, fails: "replayed nothing"},
	} {
		p, ok := test.state.fits(limit)
		if ok != (test.fails == "") || !strings.Contains(p.what, test.fails) || !ok && p.hint == "" {
			t.Errorf("%s: %v, %+v", name, ok, p)
		}
	}
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A standby is preferred while it keeps up, and dumped as the primary would be, also in several streams; one whose replay
// stands still is passed over, or refused when there is nothing else.
func TestStandby(t *testing.T) {
	primary := pgtest.New(t, pgtest.Options{Password: oddPassword, Settings: pgtest.StandbySettings()})
	dsn := primary.Database(t)
	if err := pgtest.Sample(t.Context(), dsn, 0); err != nil {
		t.Fatal(err)
	}
	name := newSource(t, Config{DSN: dsn}).Database()
	primary.Exec(t, name, `CREATE UNLOGGED TABLE scratch AS SELECT 1 AS a`)
	standby := pgtest.NewStandby(t, primary, pgtest.Options{})
	both := severalDSN(name, "", primary, standby)
	only := standby.DSN(name)
	log := &lockedBuffer{}
	prefer := newSource(t, Config{DSN: both, Standby: StandbyPrefer, Logger: slog.New(slog.NewTextHandler(log, nil))})

	catchUp(t, primary, standby)
	for _, jobs := range []int{0, 3} {
		b := takeWith(t, prefer, source.DumpOptions{Jobs: jobs})
		if b.info.Standby == nil || b.info.Standby.Unlogged != 1 {
			t.Fatalf("jobs %d: of the standby: %+v; log %s", jobs, b.info.Standby, log)
		}
		r, err := newSource(t, Config{DSN: dsn}).Restore(t.Context(), first, source.RestoreOptions{Target: "of the standby", Info: b.info})
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r, b)
		if _, err := r.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(log.String(), "unlogged") || !strings.Contains(log.String(), "hot_standby_feedback") {
		t.Errorf("the log: %s", log)
	}

	standby.Exec(t, "postgres", `SELECT pg_wal_replay_pause()`)
	primary.Exec(t, name, `CREATE TABLE since AS SELECT 1 AS a`)
	await(t, "the standby to be old", func() bool {
		return standby.Text(t, "postgres", `SELECT pg_is_wal_replay_paused() AND now() - pg_last_xact_replay_timestamp() > '100 ms'`) == "true"
	})
	prefer = newSource(t, Config{DSN: both, Standby: StandbyPrefer, StandbyMaxAge: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if b := takeWith(t, prefer, source.DumpOptions{}); b.info.Standby != nil || !strings.Contains(log.String(), "no standby to dump") {
		t.Errorf("a standby that stands still was dumped: %+v, log %s", b.info.Standby, log)
	}
	_, err := newSource(t, Config{DSN: only, StandbyMaxAge: 50 * time.Millisecond}).Dump(t.Context(), first)
	fails(t, err, "replay is paused", source.ErrUnavailable)
	hasHint(t, err)
	noSecret(t, log.String())
}

// catchUp waits until the standby has all that the primary has committed, a transaction of its own among it: one that has
// replayed no commit since it started cannot tell how old it is.
func catchUp(t *testing.T, primary, standby *pgtest.Server) {
	t.Helper()
	primary.Exec(t, "postgres", `SELECT pg_current_xact_id()`)
	lsn := primary.Text(t, "postgres", `SELECT pg_current_wal_lsn()`)
	await(t, "the standby to have it all", func() bool {
		return standby.Text(t, "postgres", `SELECT coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) AND pg_last_xact_replay_timestamp() IS NOT NULL`, lsn) == "true"
	})
}

// A dump that replay cancels is no backup, and says what to do.
func TestRecoveryConflict(t *testing.T) {
	primary := pgtest.New(t, pgtest.Options{Password: oddPassword, Settings: pgtest.StandbySettings()})
	dsn := primary.Database(t)
	if err := pgtest.Sample(t.Context(), dsn, 4<<20); err != nil {
		t.Fatal(err)
	}
	standby := pgtest.NewStandby(t, primary, pgtest.Options{Settings: map[string]string{"max_standby_streaming_delay": "3s", "hot_standby_feedback": "off"}})
	catchUp(t, primary, standby)
	s := newSource(t, Config{DSN: dsn})
	s = newSource(t, Config{DSN: standby.DSN(s.Database())})
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	reached, goOn := make(chan struct{}), make(chan struct{})
	failed := make(chan error)
	go func() {
		failed <- d.Write(t.Context(), source.PartData, &pausing{Writer: io.Discard, after: 64 << 10, reached: reached, goOn: goOn})
	}()
	<-reached
	primary.Exec(t, s.Database(), `DROP TABLE events CASCADE`)
	dropped := primary.Text(t, "postgres", `SELECT pg_current_wal_lsn()`)
	// Replay waits for the lock, until its patience ends: then it has told the dump's backend, which ends when it does not wait for
	// us to read.
	startup := func(what string) bool {
		return standby.Text(t, "postgres", `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event_type = 'Lock')
			AND pg_last_wal_replay_lsn() < $1::pg_lsn`, dropped) == what
	}
	await(t, "replay to meet the dump", func() bool { return startup("true") })
	await(t, "replay to lose its patience", func() bool { return startup("false") })
	close(goOn)
	err = <-failed
	fails(t, err, "replay on the standby", source.ErrIncomplete, source.ErrUnavailable) // it is tried again
	hasHint(t, err)
}

// pausing is a writer that stops once, until it may go on.
type pausing struct {
	io.Writer
	after         int
	reached, goOn chan struct{}
	n             int
}

func (p *pausing) Write(b []byte) (int, error) {
	if before := p.n; before < p.after && before+len(b) >= p.after {
		close(p.reached)
		<-p.goOn
	}
	p.n += len(b)
	return p.Writer.Write(b)
}
