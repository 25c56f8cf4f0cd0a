package pgtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes an empty database, named as PostgreSQL allows, and returns its DSN. It is for programs, which have
// no TB; the database goes with the server.
func (s *Server) CreateDatabase(ctx context.Context, name string) (dsn string, err error) {
	err = s.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE template0")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create database %q: %w", name, err)
	}
	return s.DSN(name), nil
}

// Databases lists the names of the server's databases in order, templates left out.
func (s *Server) Databases(ctx context.Context) (names []string, err error) {
	err = s.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT datname::text FROM pg_database WHERE NOT datistemplate ORDER BY datname::text COLLATE "C"`)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return names, nil
}

// with calls do with a session in the database postgres.
func (s *Server) with(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}
