package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Databases are the names of the databases of the server that can be dumped, in order: no templates, none that takes no
// connections. Any role may ask.
func (s *Source) Databases(ctx context.Context, a source.Attempt) ([]string, error) {
	if err := checkAttempt(a); err != nil {
		return nil, err
	}
	conn, err := s.connect(ctx, a, s.Database())
	if err != nil {
		return nil, err
	}
	defer conn.close()
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname COLLATE "C"`)
	if err != nil {
		return nil, s.wrap(ctx, err, "list the databases of the server")
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, s.wrap(ctx, err, "list the databases of the server")
}
