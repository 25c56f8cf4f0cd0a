package pgtest

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Hold runs sql in a transaction of a session of its own and keeps it open, with the locks it took, until release is called
// or the test ends; then it is rolled back. An error ends the test.
func (s *Server) Hold(t TB, database, sql string) (release func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		t.Fatalf("connect to %s: %v", database, err)
	}
	release = sync.OnceFunc(func() { _ = conn.Close(ctx) }) // the server rolls back
	t.Cleanup(release)
	if _, err := conn.Exec(ctx, "BEGIN; "+sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return release
}
