package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func TestConfigIsChecked(t *testing.T) {
	good := configOf("postgres://u@h/d")
	if c, err := good.checked(); err != nil || c.Timeout != defaultTimeout || c.MaxConns != defaultMaxConns || c.Logger == nil {
		t.Errorf("%+v, %v", c, err)
	}
	for field, change := range map[string]func(*Config){
		"DSN":      func(c *Config) { c.DSN = "" },
		"Cluster":  func(c *Config) { c.Cluster = "" },
		"Timeout":  func(c *Config) { c.Timeout = time.Millisecond },
		"Poll":     func(c *Config) { c.Poll = time.Microsecond },
		"MaxConns": func(c *Config) { c.MaxConns = 1 },
	} {
		bad := good
		change(&bad)
		if _, err := Open(t.Context(), bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Whatever is wrong with the server or the DSN is said in one sentence with a hint, and no secret is in either.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	s := pg.Server(t)
	db := s.Database(t)
	name := nameIn(t, db)
	s.Exec(t, "postgres", `DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN PASSWORD 's3cret-w'`)
	readOnly := s.Database(t)
	s.Exec(t, nameIn(t, readOnly), fmt.Sprintf(`ALTER DATABASE "%s" SET default_transaction_read_only = on`, nameIn(t, readOnly)))
	noTable := s.Database(t)
	mustOpen(t, configOf(noTable))
	s.Exec(t, nameIn(t, noTable), `GRANT USAGE ON SCHEMA fencepost_ledger TO weak; GRANT SELECT ON ALL TABLES IN SCHEMA fencepost_ledger TO weak`)
	newer := s.Database(t)
	mustOpen(t, configOf(newer))
	s.Exec(t, nameIn(t, newer), `INSERT INTO fencepost_ledger.schema_version (version_id, is_applied) VALUES (9999, true)`)
	pooler := newProxy(t, db)
	pooler.set(func() { pooler.pooler = true })
	for _, c := range []struct {
		name, dsn string
		kind      error
		word      string
	}{
		{"no DSN at all", "s3cret", ErrSetup, "not a connection string"},
		{"broken URL", "postgres://u:s3cret@[bad/d", ErrSetup, "not a connection string"},
		{"unknown word", "host=127.0.0.1 password=s3cret port=nope", ErrSetup, "not a connection string"},
		{"wrong password", s.DSNFor("postgres", "s3cret", name), ErrSetup, "refuses the user"},
		{"no such database", s.DSN("nope"), ErrSetup, "does not exist"},
		{"nobody listens", "postgres://u:s3cret@127.0.0.1:1/d?sslmode=disable", ledger.ErrUnavailable, "cannot be reached"},
		{"may not make the schema", s.DSNFor("weak", "s3cret-w", name), ErrSetup, "lacks a right"},
		{"may not write", s.DSNFor("weak", "s3cret-w", nameIn(t, noTable)), ErrSetup, "lacks a right"},
		{"read-only", readOnly, ledger.ErrUnavailable, "only reads"},
		{"pooler", pooler.dsn, ErrSetup, "pooler"},
		{"newer tables", newer, ErrSetup, "newer version"},
	} {
		cfg := configOf(c.dsn)
		_, err := Open(t.Context(), cfg)
		own, ok := errors.AsType[*Error](err)
		if !errors.Is(err, c.kind) || !ok || own.Hint() == "" || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, secret := range []string{"s3cret", s.Password} {
			if strings.Contains(err.Error()+own.Hint(), secret) {
				t.Errorf("%s: the error tells the password: %v", c.name, err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %q", c.name, err)
		}
	}
}

func TestFacts(t *testing.T) {
	good := facts{version: 150004, pid: 7, announced: 7}
	for name, c := range map[string]struct {
		change func(*facts)
		want   error
	}{
		"good":      {func(*facts) {}, nil},
		"oldest":    {func(f *facts) { f.version = minVersion }, nil},
		"too old":   {func(f *facts) { f.version = 120022 }, ErrSetup},
		"pooler":    {func(f *facts) { f.announced = 8 }, ErrSetup},
		"standby":   {func(f *facts) { f.recovery, f.readOnly = true, true }, ledger.ErrUnavailable},
		"read-only": {func(f *facts) { f.readOnly = true }, ledger.ErrUnavailable},
	} {
		f := good
		c.change(&f)
		err := f.problem()
		p, _ := errors.AsType[problem](err)
		if (err == nil) != (c.want == nil) || c.want != nil && (p.kinds[0] != c.want || p.hint == "") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if p := explainCode("08P01", "unsupported startup parameter: options"); p.what != pooled.what {
		t.Errorf("a pooler that refuses a parameter: %+v", p)
	}
}

// Of several hosts the one that takes writes is used.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	s := pg.Server(t)
	name := nameIn(t, s.Database(t))
	dsn := fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=1,%d user=postgres password='%s' dbname='%s' sslmode=disable", s.Port, s.Password, name)
	led := mustOpen(t, configOf(dsn))
	if led.pool.Config().ConnConfig.ValidateConnect == nil {
		t.Error("a standby would be taken for the primary")
	}
	single, err := poolConfig(configOf("postgres://u@h/d"))
	if err != nil || single.ConnConfig.ValidateConnect != nil {
		t.Errorf("one host: %v", err)
	}
}

// Settings of the role do not reach the ledger's sessions: a commit that was answered is on disk, and nothing waits for ever.
func TestSettingsAreOurs(t *testing.T) {
	t.Parallel()
	s := pg.Server(t)
	dsn := s.Database(t)
	s.Exec(t, "postgres", `DROP ROLE IF EXISTS hasty; CREATE ROLE hasty LOGIN SUPERUSER PASSWORD 'h';
		ALTER ROLE hasty SET statement_timeout = '5ms'; ALTER ROLE hasty SET lock_timeout = '1ms';
		ALTER ROLE hasty SET synchronous_commit = off; ALTER ROLE hasty SET search_path = pg_catalog;
		ALTER ROLE hasty SET default_transaction_isolation = 'serializable'`)
	led := mustOpen(t, configOf(s.DSNFor("hasty", "h", nameIn(t, dsn))))
	for name, want := range map[string]string{
		"synchronous_commit": "on", "statement_timeout": "30s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "10s",
		"tcp_user_timeout": "10000", "default_transaction_isolation": "read committed", "TimeZone": "UTC",
	} {
		var got string
		if err := led.pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
}

// Five nodes open one empty database at once: one makes the tables, all agree on one ledger.
func TestFiveOpenAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pg.Server(t).Database(t)
	var wg sync.WaitGroup
	leds := make([]*Ledger, 5)
	errs := make([]error, 5)
	for i := range leds {
		wg.Go(func() { leds[i], errs[i] = Open(soon(t), configOf(dsn)) })
	}
	wg.Wait()
	ids := map[string]bool{}
	for i, led := range leds {
		if errs[i] != nil {
			t.Errorf("node %d: %v", i, errs[i])
			continue
		}
		ids[led.expects().ledger] = true
		if err := led.Close(); err != nil {
			t.Error(err)
		}
		if err := led.Close(); err != nil {
			t.Errorf("close twice: %v", err)
		}
	}
	if len(ids) != 1 {
		t.Errorf("%d ledgers", len(ids))
	}
}

// A ledger of each released version is brought up by Open, and works.
func TestUpFromEveryVersion(t *testing.T) {
	t.Parallel()
	last, err := newest(0)
	if err != nil {
		t.Fatal(err)
	}
	for from := range last + 1 {
		dsn := pg.Server(t).Database(t)
		if from > 0 {
			migratedTo(t, dsn, from)
		}
		led := mustOpen(t, configOf(dsn))
		if is, err := version(t.Context(), led.pool); err != nil || is != last {
			t.Errorf("from %d: version %d, %v", from, is, err)
		}
		if err := led.Plan(t.Context(), ledger.Task{ID: "t1", MaxAttempts: 1}); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

func migratedTo(t *testing.T, dsn string, v int64) {
	t.Helper()
	pool, err := connect(t.Context(), configOfChecked(t, dsn), begin)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := makeSchema(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := migrateTo(t.Context(), pool, v); err != nil {
		t.Fatal(err)
	}
}

func configOfChecked(t *testing.T, dsn string) Config {
	t.Helper()
	c, err := configOf(dsn).checked()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A role that owns nothing but its schema is enough, and may end the sessions of its fellows.
func TestOrdinaryRole(t *testing.T) {
	t.Parallel()
	s := pg.Server(t)
	name := nameIn(t, s.Database(t))
	s.Exec(t, "postgres", `DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN PASSWORD 'p'`)
	s.Exec(t, name, fmt.Sprintf(`GRANT CREATE ON DATABASE "%s" TO plain`, name))
	b := &bench{T: t, group: newGroup(), dsn: s.DSNFor("plain", "p", name)}
	b.led = mustOpen(t, configOf(b.dsn))
	zombie := mustOpen(t, configOf(b.dsn))
	b.group.OpenRun("aa")
	g, row := b.take("t1", "aa")
	reached, resume := paused(zombie, "commit")
	defer resume()
	late := make(chan error, 1)
	row.State = ledger.Failed
	go func() { late <- zombie.Write(soon(t), g, ledger.Change{Task: row}) }()
	<-reached
	if err := b.led.ShutOut(soon(t), b.fence("aa", "bb")); err != nil {
		t.Error(err)
	}
	resume()
	if err := <-late; !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("late write: %v", err)
	}
}
