package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

var _ source.Undoer = (*Source)(nil)

// Undo implements source.Undoer. It is the swap of a restore with the two databases exchanged.
func (s *Source) Undo(ctx context.Context, a source.Attempt, p source.Prepared, keep time.Duration) error {
	doing := fmt.Sprintf("undo the restore of database %q", p.Target)
	switch err := errors.Join(checkAttempt(a), checkTarget(p.Target, s.maintenanceName())); {
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case p.InPlace || p.Undo == "" || p.Replaces == 0:
		return s.errorf(problem{what: "it replaced no database that was kept", hint: "restore an older backup instead"}, "%s", doing)
	}
	conn, err := s.maintain(ctx, a)
	if err != nil {
		return err
	}
	defer conn.close()
	var present, other uint32
	if err := conn.QueryRow(ctx, namesQuery, p.Target, p.Undo).Scan(&present, &other); err != nil {
		return s.wrap(ctx, err, "%s", doing)
	}
	forward, back := present == p.ID && other == p.Replaces, present == p.Replaces && other == p.ID
	if !forward && !back {
		return s.errorf(problem{source.ErrSuperseded.Error(), "its time is over, or another restore or a person changed the databases since", []error{source.ErrSuperseded}}, "%s", doing)
	}
	return s.wrap(ctx, s.exchange(ctx, conn, a, p, present, other, keep), "%s", doing)
}

// exchange gives each of two databases the name of the other, and the one that leaves the target's name a time to live.
func (s *Source) exchange(ctx context.Context, conn *session, a source.Attempt, p source.Prepared, present, other uint32, keep time.Duration) error {
	// The swap that is known: the kept database is the prepared one, under a name between.
	between := preparedName(p.Target, a)
	r := &restore{src: s, attempt: a, options: source.RestoreOptions{Target: p.Target, KeepOld: keep}, at: conn.at, checked: true,
		prepared: source.Prepared{Database: between, ID: other, Target: p.Target, Replaces: present, Undo: p.Undo}}
	evict, err := r.evict(ctx)
	if err != nil {
		return err
	}
	defer evict()
	return renames(ctx, conn, r.exchangeNames, r.exchanged)
}

// exchangeNames renames three times. The comment with the time to live goes where it belongs.
func (r *restore) exchangeNames(ctx context.Context, tx pgx.Tx) error {
	own, err := ownComment(ctx, tx, r.prepared.ID)
	if err != nil {
		return err
	}
	for _, names := range [][2]string{{r.prepared.Undo, r.prepared.Database}, {r.options.Target, r.prepared.Undo}, {r.prepared.Database, r.options.Target}} {
		if _, err := tx.Exec(ctx, renameStatement(names[0], names[1])); err != nil {
			return supersededIfGone(err)
		}
	}
	if err := r.markOld(ctx, tx); err != nil {
		return err
	}
	text := "NULL"
	if own != "" {
		text = literal(own)
	}
	if _, err := tx.Exec(ctx, `COMMENT ON DATABASE `+ident(r.options.Target)+` IS `+text); err != nil {
		return err
	}
	return r.verifySwapped(ctx, tx)
}

// ownComment is the comment that a database had before it was kept as an undo.
func ownComment(ctx context.Context, tx pgx.Tx, id uint32) (string, error) {
	var text string
	if err := tx.QueryRow(ctx, `SELECT coalesce(shobj_description($1, 'pg_database'), '')`, id).Scan(&text); err != nil {
		return "", err
	}
	var k kept
	if json.Unmarshal([]byte(text), &k) == nil && k.By == keptMark {
		return k.Own, nil
	}
	return text, nil // somebody changed it since
}

// exchanged finds out what became of a COMMIT that was not answered.
func (r *restore) exchanged(ctx context.Context, pid uint32, unclear error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return r.src.errorf(problem{"the answer to the commit was lost and the server cannot be asked", "look which database has the name now", []error{source.ErrUnavailable, unclear}},
			"undo the restore of database %q", r.options.Target)
	}
	defer conn.close()
	err = endSessions(ctx, conn, `SELECT pid FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`, int32(pid), tag(r.attempt))
	if err != nil {
		return err
	}
	var target, old uint32
	if err := conn.QueryRow(ctx, namesQuery, r.options.Target, r.prepared.Undo).Scan(&target, &old); err != nil {
		return err
	}
	if target == r.prepared.ID && old == r.prepared.Replaces {
		return nil
	}
	return unclear
}
