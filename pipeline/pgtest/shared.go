package pgtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// TB is what pgtest needs of a *testing.T.
type TB interface {
	Helper()
	Name() string
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// TestingM is what Shared needs of a *testing.M.
type TestingM interface {
	Run() int
}

// startTimeout bounds the start of a server for tests; a loaded machine needs seconds.
const startTimeout = 2 * time.Minute

// New starts a server for one test and stops it at the end of the test. Errors end the test.
func New(t TB, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := Start(ctx, "", o)
	if err != nil {
		t.Fatalf("start a private server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the private server: %v", err)
		}
	})
	return s
}

// Shared is one server for all tests of a binary, started by the first test that asks for it. The zero value is ready;
// set Options before the first use.
type Shared struct {
	Options Options

	once   sync.Once
	server *Server
	err    error
}

// Around returns a TestingM that runs m and then stops the server, if it was started.
func (s *Shared) Around(m TestingM) TestingM { return around{s, m} }

type around struct {
	shared *Shared
	m      TestingM
}

// Run runs the tests and stops the server. A server that cannot be stopped fails the run.
func (a around) Run() int {
	code := a.m.Run()
	a.shared.once.Do(func() { a.shared.err = fmt.Errorf("tests are over") })
	if a.shared.server == nil {
		return code
	}
	if err := a.shared.server.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the private server: %v\n", err)
		return max(code, 1)
	}
	return code
}

// Server returns the shared server. When it could not be started each test that asks for it fails.
func (s *Shared) Server(t TB) *Server {
	t.Helper()
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.server, s.err = Start(ctx, "", s.Options)
	})
	if s.err != nil {
		t.Fatalf("start the shared private server: %v", s.err)
	}
	return s.server
}

// Database makes an empty database with a name of its own, drops it at the end of the test together with whatever is
// connected to it then, and returns its DSN.
func (s *Server) Database(t TB) string {
	t.Helper()
	return s.NamedDatabase(t, fmt.Sprintf("t%d %.30s", s.databases.Add(1), strings.ToValidUTF8(t.Name(), "")))
}

// NamedDatabase is Database with a name that the test chooses; any that PostgreSQL allows.
func (s *Server) NamedDatabase(t TB, name string) string {
	t.Helper()
	s.Exec(t, "postgres", "CREATE DATABASE "+quote(name)+" TEMPLATE template0")
	t.Cleanup(func() { s.Exec(t, "postgres", "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)") })
	return s.DSN(name)
}

// Exec runs SQL statements as superuser in a database; an error ends the test.
func (s *Server) Exec(t TB, database, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		t.Fatalf("connect to database %q: %v", database, err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("run %.200s: %v", sql, err)
	}
}

// Text runs a query that gives one value and returns it as text, NULL as ""; an error ends the test.
func (s *Server) Text(t TB, database, sql string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		t.Fatalf("connect to database %q: %v", database, err)
		return ""
	}
	defer func() { _ = conn.Close(ctx) }()
	var out *string
	if err := conn.QueryRow(ctx, `SELECT (`+sql+`)::text`, args...).Scan(&out); err != nil {
		t.Fatalf("run %.200s: %v", sql, err)
	}
	if out == nil {
		return ""
	}
	return *out
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
