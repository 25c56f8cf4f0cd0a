package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Check implements source.Restore: the new database must hold as many objects of each kind as the snapshot did.
func (r *restore) Check(ctx context.Context) (source.Prepared, error) {
	doing := fmt.Sprintf("check database %q", r.prepared.Database)
	if !r.progress.filled() || r.over {
		return source.Prepared{}, fmt.Errorf("%s: %w", doing, source.ErrIncomplete)
	}
	conn, err := r.src.primaryAt(ctx, r.attempt, r.at, r.prepared.Database)
	if err != nil {
		return source.Prepared{}, err
	}
	defer conn.close()
	var id uint32
	if err := conn.QueryRow(ctx, `SELECT oid FROM pg_database WHERE datname = current_database()`).Scan(&id); err != nil {
		return source.Prepared{}, r.src.wrap(ctx, err, "%s", doing)
	}
	if id != r.prepared.ID {
		return source.Prepared{}, fmt.Errorf("%s: %w", doing, source.ErrSuperseded)
	}
	if r.expected != nil {
		got, err := countObjects(ctx, conn, countQuery)
		if err != nil {
			return source.Prepared{}, r.src.wrap(ctx, err, "%s", doing)
		}
		if p, ok := r.expected.compare(got); !ok {
			r.progress.fail()
			return source.Prepared{}, r.src.errorf(p, "%s", doing)
		}
		if err := r.checkLists(ctx, conn, doing); err != nil {
			return source.Prepared{}, err
		}
	}
	r.checked = true
	return r.prepared, nil
}

// checkLists compares the names of all objects, when that was asked for and nothing was left out.
func (r *restore) checkLists(ctx context.Context, conn *session, doing string) error {
	if !r.options.Names || r.expected.partial {
		return nil
	}
	got, err := readLists(ctx, conn)
	if err != nil {
		return r.src.wrap(ctx, err, "%s", doing)
	}
	if p, ok := compareLists(r.expected.lists, got); !ok {
		r.progress.fail()
		return r.src.errorf(p, "%s", doing)
	}
	return nil
}

// Abort implements source.Restore.
func (r *restore) Abort() error {
	if r.over {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*cleanupTimeout)
	defer cancel()
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return err
	}
	defer conn.close()
	if err := dropDatabase(ctx, conn, r.prepared.Database); err != nil {
		return r.src.wrap(ctx, err, "drop database %q", r.prepared.Database)
	}
	r.over = true
	return nil
}

// dropDatabase drops a database and whoever is connected to it. That it does not exist is fine.
func dropDatabase(ctx context.Context, conn *session, name string) error {
	limit := time.Now().Add(cleanupTimeout)
	for {
		_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+ident(name)+` WITH (FORCE)`)
		if sqlState(err) == "55006" && time.Now().Before(limit) && ctx.Err() == nil {
			continue // FORCE waits five seconds for sessions to end; a loaded server needs longer
		}
		return err
	}
}
