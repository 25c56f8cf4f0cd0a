package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// onceAfter calls do when n bytes have been written, once, and discards all.
type onceAfter struct {
	n    int
	do   func()
	once sync.Once
}

func (o *onceAfter) Write(p []byte) (int, error) {
	if o.n -= len(p); o.n <= 0 {
		o.once.Do(o.do)
	}
	return len(p), nil
}

// fails checks what every failure must be: an error of the right kinds, one line, no secret.
func fails(t *testing.T, err error, part string, kinds ...error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Errorf("%q is not %q", err, kind)
		}
	}
	if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line with %q, got %q", part, err)
	}
	noSecret(t, err.Error())
}

func hasHint(t *testing.T, err error) {
	t.Helper()
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); !ok || h.Hint() == "" {
		t.Errorf("%q has no hint", err)
	}
}

func TestDumpCannotBegin(t *testing.T) {
	srv := pg.Server(t)
	dsn := srv.Database(t)
	here := fmt.Sprintf("127.0.0.1:%d", srv.Port)
	srv.Exec(t, "postgres", `CREATE ROLE nobody_much LOGIN PASSWORD 'x y z'`)
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE nobody_much`) })
	sample := sampled(t, 0)
	for _, c := range []struct {
		name, dsn, part string
		kinds           []error
	}{
		{"wrong password", "postgres://postgres:" + url.QueryEscape("wrong"+oddPassword) + "@" + here + "/postgres", "refuses the password", nil},
		{"no such database", srv.DSN("no such"), "does not exist", nil},
		{"port closed", "postgres://postgres:" + url.QueryEscape(oddPassword) + "@127.0.0.1:1/x", "cannot be reached", []error{source.ErrUnavailable}},
		{"no such host", "postgres://postgres:" + url.QueryEscape(oddPassword) + "@nonexistent.invalid/x", "cannot be reached", []error{source.ErrUnavailable}},
		{"no rights", srv.DSNFor("nobody_much", "x y z", sample.Database()), "may not read", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newSource(t, Config{DSN: c.dsn}).Dump(t.Context(), first)
			fails(t, err, c.part, c.kinds...)
			hasHint(t, err)
			nothingLeft(t, first)
		})
	}
	t.Run("no program", func(t *testing.T) {
		_, err := newSource(t, Config{DSN: dsn, BinDir: t.TempDir()}).Dump(t.Context(), first)
		fails(t, err, "pg_dump of version")
		hasHint(t, err)
	})
	t.Run("row security", func(t *testing.T) {
		srv.Exec(t, sample.Database(), `CREATE TABLE secretive (a int); ALTER TABLE secretive ENABLE ROW LEVEL SECURITY; GRANT pg_read_all_data TO nobody_much`)
		_, err := newSource(t, Config{DSN: srv.DSNFor("nobody_much", "x y z", sample.Database())}).Dump(t.Context(), first)
		fails(t, err, "row security")
	})
	for _, a := range []source.Attempt{{}, {Task: "UP", Token: 1}, {Task: "a.b", Token: 1}, {Task: strings.Repeat("a", 33), Token: 1}, {Task: "a", Token: 1 << 53}} {
		if _, err := newSource(t, Config{DSN: dsn}).Dump(t.Context(), a); err == nil {
			t.Errorf("attempt %+v was taken", a)
		}
	}
}

// The dump ends in the middle, for many reasons; it must never be taken for whole.
func TestDumpEndsMidway(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 8<<20)
	srv.Exec(t, "postgres", `CREATE DATABASE victim TEMPLATE `+ident(s.Database()))
	dropLater(t, "victim")
	victim := newSource(t, Config{DSN: srv.DSN("victim")})
	for _, c := range []struct {
		name, part string
		again      bool // the next attempt may succeed
		src        *Source
		do         func()
	}{
		{"program killed", "pg_dump ended with signal: killed", false, s, func() { killChildren(t, syscall.SIGKILL) }},
		{"program terminated", "pg_dump", false, s, func() { killChildren(t, syscall.SIGTERM) }},
		{"backend terminated", "ended the session", true, s, func() {
			srv.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '`+tag(first)+`'`)
		}},
		{"database dropped", "ended the session", true, victim, func() { srv.Exec(t, "postgres", `DROP DATABASE victim WITH (FORCE)`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.src.Dump(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: c.do})
			fails(t, err, c.part, source.ErrIncomplete)
			if again := errors.Is(err, source.ErrUnavailable); again != c.again {
				t.Errorf("%q is tried again: %t, want %t", err, again, c.again)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, first)
		})
	}
}

func killChildren(t *testing.T, sig os.Signal) {
	t.Helper()
	found := children(t)
	if len(found) == 0 {
		t.Error("no child to kill")
	}
	for pid := range found {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Signal(sig)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) { // of the end of another, perhaps
			t.Error(err)
		}
	}
}

func TestDumpServerShutDown(t *testing.T) {
	srv := pgtest.New(t, pgtest.Options{})
	if err := pgtest.Sample(t.Context(), srv.DSN("postgres"), 8<<20); err != nil {
		t.Fatal(err)
	}
	d, err := newSource(t, Config{DSN: srv.DSN("postgres")}).Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	}})
	fails(t, err, "ended the session", source.ErrIncomplete, source.ErrUnavailable)
	if left := children(t); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
}

func TestWriterFails(t *testing.T) {
	full := errors.New("storage is full")
	s := sampled(t, 8<<20)
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	fails(t, d.Write(t.Context(), source.PartData, failingWriter{full}), "storage is full", full)
	if n := len(children(t)); n > 0 {
		t.Errorf("%d children left", n)
	}
	snapshotOnly(t)
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// A program that says it is content is not believed without an archive, nor when it warned.
func TestLyingProgram(t *testing.T) {
	dsn := pg.Server(t).Database(t)
	for _, c := range []struct{ name, script, part string }{
		{"nothing", `exit 0`, "no archive"},
		{"tiny", `printf PGD`, "no archive"},
		{"text", `echo CREATE TABLE`, "no archive"},
		{"warning", `printf PGDMP; echo "pg_dump: warning: subscriptions not dumped because current user is not a superuser" >&2`, "left out"},
		{"exit code", `printf PGDMPxxxxxxxx; echo "pg_dump: error: oops" >&2; exit 1`, "oops"},
		{"secrets", `printf '%s\n' "pg_dump: error: connection to $PGPASSWORD failed" >&2; exit 1`, "***"},
		{"endless stderr", `i=0; while [ $i -lt 3000 ]; do echo "line $i of noise that goes on and on and on and on" >&2; i=$((i+1)); done; exit 3`, "exit status 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := newSource(t, Config{DSN: dsn, BinDir: fakeTools(t, c.script)}).Dump(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			fails(t, d.Write(t.Context(), source.PartData, io.Discard), c.part, source.ErrIncomplete)
		})
	}
	t.Run("circular keys are fine", func(t *testing.T) {
		script := `printf PGDMP; echo "pg_dump: warning: there are circular foreign-key constraints on this table:" >&2`
		d, err := newSource(t, Config{DSN: dsn, BinDir: fakeTools(t, script)}).Dump(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if err := d.Write(t.Context(), source.PartData, io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// A child that ignores the polite request is killed after the grace; one that leaves a child of its own behind, which
// holds the pipe, does not keep the dump from ending.
func TestStubbornProgram(t *testing.T) {
	dsn := pg.Server(t).Database(t)
	for _, script := range []string{`trap '' TERM; printf PGDMP; while :; do :; done`, `printf PGDMP; sleep 1000; exit 0`} {
		t.Run(script, func(t *testing.T) {
			s := newSource(t, Config{DSN: dsn, Grace: 50 * time.Millisecond, BinDir: fakeTools(t, script)})
			d, err := s.Dump(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("stopped by the user")
			err = d.Write(ctx, source.PartData, &onceAfter{n: 1, do: func() { cancel(stop) }})
			fails(t, err, "stopped by the user", stop, context.Canceled)
			if left := children(t); len(left) > 0 {
				t.Errorf("children left: %v", left)
			}
		})
	}
}

// While pg_dump waits for a lock neither it nor its session may outlive the end of the dump, be it asked to end or killed.
func TestEndWhileWaitingForLock(t *testing.T) {
	s := sampled(t, 0)
	conn, err := pgx.Connect(t.Context(), pg.Server(t).DSN(s.Database()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE customers IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		end  func(cancel func())
		part string
	}{
		{"cancelled", func(cancel func()) { cancel() }, "canceled"},
		{"killed", func(func()) { killChildren(t, syscall.SIGKILL) }, "killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := s.Dump(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- d.Write(ctx, source.PartData, io.Discard) }()
			await(t, "pg_dump to wait for the lock", func() bool {
				return query(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, tag(first)) == "1"
			})
			c.end(cancel)
			fails(t, <-result, c.part)
			snapshotOnly(t)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, first)
		})
	}
}

// What the kernel shows of a child to everybody must not hold the password.
func TestCommandLineIsClean(t *testing.T) {
	s := sampled(t, 8<<20)
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	seen := 0
	err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1 << 20, do: func() {
		for pid, line := range children(t) {
			seen++
			noSecret(t, line)
			env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil || !bytes.Contains(env, []byte("PGPASSWORD="+oddPassword)) {
				t.Errorf("the child has no password of its own: %v", err)
			}
		}
	}})
	if err != nil || seen != 1 {
		t.Errorf("saw %d children: %v", seen, err)
	}
	if _, ok := os.LookupEnv("PGPASSWORD"); ok {
		t.Error("the password is in our own environment")
	}
}
