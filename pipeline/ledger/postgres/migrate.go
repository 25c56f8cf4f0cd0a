package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// released holds the migrations. One that was released is never changed: what comes next is a new file, so that a ledger
// of any released version can be brought up. One that a program of the version before could not work with belongs to a later
// protocol (protocolOf), and is not made before the group has agreed on that: until then programs of both versions work on
// the tables. It takes nothing away that a program of its own version still uses, since those that run then meet it in the
// middle of their work.
//
//go:embed migrations/*.sql
var released embed.FS

// versionTable is where goose remembers what it did.
const versionTable = "schema_version"

// migrationLock is the session lock under which one node migrates while the others wait.
var migrationLock = lockKey("fencepost migration")

// versions are those of the migrations that this program has, in order.
func versions() (list []int64, err error) {
	files, err := fs.Glob(released, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("this program has no migrations"), err)
	}
	for _, f := range files {
		digits, _, _ := strings.Cut(path.Base(f), "_")
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the version of migration %s: %w", f, err)
		}
		list = append(list, v)
	}
	for _, m := range laterMigrations() {
		list = append(list, m.Version)
	}
	return list, nil
}

// newest is the last version that a group may have which writes that protocol; of 0 the last of all.
func newest(protocol uint32) (last int64, err error) {
	list, err := versions()
	for _, v := range list {
		if protocol == 0 || protocolOf(v) <= protocol {
			last = v
		}
	}
	return last, err
}

// migrate brings the tables up to the newest version of a protocol, and does nothing, with no rights to do more, when they are
// there.
func migrate(ctx context.Context, pool *pgxpool.Pool, protocol uint32) error {
	want, err := newest(protocol)
	if err != nil {
		return err
	}
	known, err := newest(0)
	if err != nil {
		return err
	}
	is, err := version(ctx, pool)
	switch {
	case err != nil:
		return err
	case is > known:
		return setup(fmt.Sprintf("a newer version of fencepost made its tables (%d, this one knows %d)", is, known),
			"upgrade this node; a ledger is never taken back to an older version")
	case is >= want:
		return nil
	}
	if err := makeSchema(ctx, pool); err != nil {
		return err
	}
	return migrateTo(ctx, pool, want)
}

// version is that of the tables; 0 when there are none.
func version(ctx context.Context, pool *pgxpool.Pool) (is int64, err error) {
	var there bool
	table := schema + "." + versionTable
	if err := pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = pool.QueryRow(ctx, `SELECT COALESCE(max(version_id), 0) FROM `+table).Scan(&is)
	return is, err
}

// makeSchema makes the schema. CREATE SCHEMA IF NOT EXISTS alone fails when two do it at once.
func makeSchema(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, fmt.Sprintf(`DO $$ BEGIN
		PERFORM pg_advisory_xact_lock(%d);
		IF to_regnamespace('%s') IS NULL THEN CREATE SCHEMA %s; END IF;
	END $$`, migrationLock, schema, schema))
	return err
}

// migrateTo runs the migrations up to one version, under the session lock.
func migrateTo(ctx context.Context, pool *pgxpool.Pool, to int64) (err error) {
	files, err := fs.Sub(released, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock), lock.WithLockTimeout(1, 60))
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker), goose.WithGoMigrations(laterMigrations()...),
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if _, err := provider.UpTo(ctx, to); err != nil {
		return fmt.Errorf("migrate the tables to version %d: %w", to, err)
	}
	return nil
}
