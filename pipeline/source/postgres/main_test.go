package postgres

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// oddPassword has every character that has ever broken a tool.
const oddPassword = `p@ss:w/o\rd %+&'"$ ü=#?`

var pg = pgtest.Shared{Options: pgtest.Options{Password: oddPassword}}

// TestMain runs the tests, or plays a node that is killed, in the middle of a dump (TestKilledNode) or while it has a server
// (TestThrowawayOfAKilledProcess).
func TestMain(m *testing.M) {
	if dsn := os.Getenv("FENCEPOST_TEST_DUMP"); dsn != "" {
		playNode(dsn)
	}
	if dir := os.Getenv("FENCEPOST_TEST_SERVERS"); dir != "" {
		playServers(dir)
	}
	goleak.VerifyTestMain(pg.Around(m))
}

var first = source.Attempt{Task: "t-1", Token: 1 << 50}

func next(a source.Attempt) source.Attempt { return source.Attempt{Task: a.Task, Token: a.Token + 1} }

func newSource(t *testing.T, cfg Config) *Source {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sampled makes a source on a database of its own with sample data.
func sampled(t *testing.T, size int64) *Source {
	t.Helper()
	dsn := pg.Server(t).Database(t)
	if err := pgtest.Sample(t.Context(), dsn, size); err != nil {
		t.Fatal(err)
	}
	return newSource(t, Config{DSN: dsn})
}

// backup is a dump in memory.
type backup struct {
	parts map[string][]byte
	info  source.Info
}

func takeBackup(t *testing.T, s *Source, a source.Attempt) backup {
	t.Helper()
	d, err := s.Dump(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	b := backup{parts: map[string][]byte{}}
	for _, part := range d.Parts() {
		var buf bytes.Buffer
		if err := d.Write(t.Context(), part, &buf); err != nil {
			t.Fatal(err)
		}
		b.parts[part] = buf.Bytes()
	}
	b.info = d.Info()
	return b
}

// fill restores a backup up to Check; the target is dropped at the end of the test.
func fill(t *testing.T, s *Source, a source.Attempt, b backup, o source.RestoreOptions) (source.Restore, source.Prepared) {
	t.Helper()
	o.Info = b.info
	dropLater(t, o.Target, undoName(o.Target, a))
	r, err := s.Restore(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Abort(); err != nil {
			t.Errorf("abort: %v", err)
		}
	})
	readAll(t, r, b)
	p, err := r.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// readAll reads every part, those of one stage at the same time.
func readAll(t *testing.T, r source.Restore, b backup) {
	t.Helper()
	for _, stage := range source.Stages(slices.Collect(maps.Keys(b.parts))) {
		var wg sync.WaitGroup
		for _, part := range stage {
			wg.Go(func() {
				if err := r.Read(t.Context(), part, bytes.NewReader(b.parts[part])); err != nil {
					t.Errorf("read %s: %v", part, err)
				}
			})
		}
		wg.Wait()
	}
	if t.Failed() {
		t.FailNow()
	}
}

func dropLater(t *testing.T, names ...string) {
	t.Helper()
	srv := pg.Server(t)
	t.Cleanup(func() {
		for _, name := range names {
			srv.Exec(t, "postgres", "DROP DATABASE IF EXISTS "+ident(name)+" WITH (FORCE)")
		}
	})
}

func fingerprint(t *testing.T, database string) pgtest.Print {
	t.Helper()
	f, err := pgtest.Fingerprint(t.Context(), pg.Server(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func same(t *testing.T, want, got pgtest.Print) {
	t.Helper()
	for _, d := range pgtest.Diff(want, got) {
		t.Error(d)
	}
}

// query returns one value, as text.
func query(t *testing.T, database, sql string, args ...any) string {
	t.Helper()
	return pg.Server(t).Text(t, database, sql, args...)
}

func exists(t *testing.T, database string) bool {
	t.Helper()
	return query(t, "postgres", `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database) == "true"
}

// sessions counts the sessions of an attempt.
func sessions(t *testing.T, a source.Attempt) int {
	t.Helper()
	n, err := strconv.Atoi(query(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, tag(a)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// children lists the client programs that this process runs, with their arguments.
func children(t *testing.T) map[int]string {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

func childrenOf(t *testing.T, parent int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, stat := range stats {
		b, _ := os.ReadFile(stat)
		_, rest, ok := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		if strings.Contains(string(line), "pg_dump") || strings.Contains(string(line), "pg_restore") || strings.Contains(string(line), "psql") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			if err != nil {
				t.Fatal(err)
			}
			found[pid] = string(line)
		}
	}
	return found
}

func nothingLeft(t *testing.T, a source.Attempt) {
	t.Helper()
	if left := children(t); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
	defer func() {
		if t.Failed() {
			t.Logf("sessions of the attempt: %s", query(t, "postgres", `SELECT coalesce(json_agg(a)::text, 'none') FROM pg_stat_activity a WHERE application_name = $1`, tag(a)))
		}
	}()
	await(t, "the attempt's sessions to end", func() bool { return sessions(t, a) == 0 })
}

// snapshotOnly waits until of the first attempt only the session with the snapshot is left. (Sessions that were closed
// take a moment to go.)
func snapshotOnly(t *testing.T) {
	t.Helper()
	await(t, "only the snapshot's session to be left", func() bool { return sessions(t, first) == 1 })
}

// noSecret fails when a text holds the server's password in any form.
func noSecret(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{oddPassword, `p@ss`, `p%40ss`} {
		if strings.Contains(text, form) {
			t.Errorf("the password is in: %s", text)
		}
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}

// fakeTools makes a directory with a pg_dump and a pg_restore that run a shell script of ours.
func fakeTools(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pg_dump", "pg_restore", "pg_dumpall"} {
		text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo '" + name + " (PostgreSQL) 99.1'; exit 0; }\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
