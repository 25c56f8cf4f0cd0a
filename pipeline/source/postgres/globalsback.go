package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

var _ source.GlobalsKeeper = (*Source)(nil)

const comparing, restoring = "compare roles and tablespaces", "make roles and tablespaces"

// CompareGlobals implements source.GlobalsKeeper.
func (s *Source) CompareGlobals(ctx context.Context, a source.Attempt, text string) (source.GlobalsDiff, error) {
	want, err := parseGlobals(text)
	if err := errors.Join(checkAttempt(a), err); err != nil {
		return source.GlobalsDiff{}, fmt.Errorf("%s: %w", comparing, err)
	}
	conn, err := s.primary(ctx, a, s.Database())
	if err != nil {
		return source.GlobalsDiff{}, err
	}
	defer conn.close()
	d, err := s.compareGlobals(ctx, conn, a, want)
	return d, s.wrap(ctx, err, "%s", comparing)
}

func (s *Source) compareGlobals(ctx context.Context, conn *session, a source.Attempt, want globals) (source.GlobalsDiff, error) {
	d := &dump{src: s, attempt: a, sess: conn}
	passwords := want.passwords()
	if passwords {
		secret, err := d.unreadableGlobals(ctx, true)
		if err != nil {
			return source.GlobalsDiff{}, err
		}
		passwords = secret == ""
	}
	d.filters.options.RolePasswords = passwords
	var version string
	what, err := d.unreadableGlobals(ctx, passwords)
	if err == nil {
		err = conn.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version)
	}
	switch {
	case err != nil:
		return source.GlobalsDiff{}, err
	case what != "":
		return source.GlobalsDiff{}, s.errorf(problem{what: "the role may not read " + what, hint: "use a superuser"}, "%s", comparing)
	}
	if d.globals, err = s.findTool(ctx, "pg_dumpall", majorOf(version)); err != nil {
		return source.GlobalsDiff{}, err
	}
	var text strings.Builder
	if err := d.run(ctx, d.globalsProduct(), &text); err != nil {
		return source.GlobalsDiff{}, err
	}
	have, err := parseGlobals(text.String())
	if err != nil {
		return source.GlobalsDiff{}, err
	}
	return compareGlobals(want, have, passwords), nil
}

// RestoreGlobals implements source.GlobalsKeeper.
func (s *Source) RestoreGlobals(ctx context.Context, a source.Attempt, text string) ([]source.Global, error) {
	want, err := parseGlobals(text)
	if err := errors.Join(checkAttempt(a), err); err != nil {
		return nil, fmt.Errorf("%s: %w", restoring, err)
	}
	conn, err := s.primary(ctx, a, s.Database())
	if err != nil {
		return nil, err
	}
	defer conn.close()
	d, err := s.compareGlobals(ctx, conn, a, want)
	if err != nil {
		return nil, s.wrap(ctx, err, "%s", restoring)
	}
	if _, err := conn.Exec(ctx, `SET standard_conforming_strings = on; SET default_transaction_read_only = off`); err != nil { // as the dump was written
		return nil, s.wrap(ctx, err, "%s", restoring)
	}
	made, spaces, err := s.makeRoles(ctx, conn, want, d.Missing)
	if err != nil {
		return nil, err
	}
	for _, g := range spaces {
		for _, statement := range want.made[globalKey{g.Kind, g.Name}] {
			if err := runOne(ctx, conn, statement); err != nil {
				return made, s.wrap(ctx, err, "make tablespace %q, whose directory must be there, be empty and belong to the user of the server", g.Name)
			}
		}
		made = append(made, g)
	}
	return made, nil
}

// makeRoles makes what can be made in a transaction, in one, and returns what cannot.
func (s *Source) makeRoles(ctx context.Context, conn *session, want globals, missing []source.Global) (made, spaces []source.Global, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, nil, s.wrap(ctx, err, "%s", restoring)
	}
	defer func() {
		clean, cancel := detached(ctx)
		defer cancel()
		_ = tx.Rollback(clean) // after a commit it does nothing
	}()
	// Where the server logs statements, what is behind PASSWORD is not for the log. Only a superuser may set that.
	_, err = tx.Exec(ctx, `SELECT set_config('log_statement', 'none', true), set_config('log_min_duration_statement', '-1', true), set_config('log_min_error_statement', 'panic', true)
		FROM pg_roles WHERE rolname = current_user AND rolsuper`)
	if err != nil {
		return nil, nil, s.wrap(ctx, err, "%s", restoring)
	}
	for _, g := range missing {
		if g.Kind == source.GlobalTablespace {
			spaces = append(spaces, g)
			continue
		}
		for _, statement := range want.made[globalKey{g.Kind, g.Name}] {
			if err := runOne(ctx, conn, statement); err != nil {
				return nil, nil, s.wrap(ctx, err, "make %s %q", g.Kind, g.Name)
			}
		}
		made = append(made, g)
	}
	return made, spaces, s.wrap(ctx, tx.Commit(ctx), "%s", restoring)
}

// runOne runs one statement, and nothing that may follow it in the text: the server refuses more than one at a time here.
func runOne(ctx context.Context, conn *session, s statement) error {
	return conn.PgConn().ExecParams(ctx, s.text, nil, nil, nil, nil).Read().Err
}
