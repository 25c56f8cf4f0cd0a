package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// restore is one attempt to fill a new database and to swap it in.
type restore struct {
	src       *Source
	attempt   source.Attempt
	options   source.RestoreOptions
	pgRestore tool    // for an archive
	psql      tool    // for a plain script
	at        address // where the new database is made
	timeline  string  // of that server then
	prepared  source.Prepared
	expected  *expected // by the backup's script; nil until it was read
	progress  *progress
	failure   failure // of streams
	checked   bool
	over      bool // committed or aborted
}

// Restore implements source.Source. When it returns, the new database exists and is empty.
func (s *Source) Restore(ctx context.Context, a source.Attempt, o source.RestoreOptions) (source.Restore, error) {
	if o.InPlace {
		return s.restoreInPlace(ctx, a, o)
	}
	doing := fmt.Sprintf("prepare the restore of database %q", o.Target)
	if err := errors.Join(checkAttempt(a), checkTarget(o.Target, s.maintenanceName()), checkJobs(o.Jobs), checkJobs(o.Info.Streams)); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	conn, err := s.maintain(ctx, a)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	r := &restore{src: s, attempt: a, options: o, at: conn.at, progress: newProgress(o.Info)}
	r.prepared = source.Prepared{Database: preparedName(o.Target, a), Target: o.Target}
	if err := r.preflight(ctx, conn); err != nil {
		return nil, s.wrap(ctx, err, "%s", doing)
	}
	if err := r.create(ctx, conn); err != nil {
		err = s.wrap(ctx, err, "%s", doing)
		return nil, errors.Join(err, r.Abort())
	}
	return r, nil
}

func (s *Source) maintenanceName() string {
	if s.cfg.Maintenance != "" {
		return s.cfg.Maintenance
	}
	return "postgres"
}

// preflight finds out what would make the restore fail, before anything is made.
func (r *restore) preflight(ctx context.Context, conn *session) error {
	var version string
	var mayCreate bool
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user`).
		Scan(&version, &mayCreate)
	if err != nil {
		return err
	}
	doing := fmt.Sprintf("prepare the restore of database %q", r.options.Target)
	if !mayCreate {
		return r.src.errorf(problem{what: "the role may not create databases", hint: "run ALTER ROLE " + ident(r.src.where.base.User) + " CREATEDB"}, "%s", doing)
	}
	if p, ok := versionFits(version, r.options.Info); !ok {
		return r.src.errorf(p, "%s", doing)
	}
	need := max(majorOf(version), majorOf(r.options.Info.ToolVersion))
	if r.options.Info.Format == source.FormatPlain {
		r.psql, err = r.src.plainTool(ctx, need, r.options.RestoreChoices, doing)
	} else {
		r.pgRestore, err = r.src.findTool(ctx, "pg_restore", need)
	}
	if err != nil {
		return err
	}
	if p, ok := speaksTo(r.pgRestore, version); !ok {
		return r.src.errorf(p, "%s", doing)
	}
	if err := r.src.checkNeeds(ctx, conn, r.options, doing); err != nil {
		return err
	}
	return r.checkTarget(ctx, conn)
}

// checkTarget records which database is replaced, and whether that may be.
func (r *restore) checkTarget(ctx context.Context, conn *session) error {
	var mine bool
	err := conn.QueryRow(ctx, `SELECT oid, pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = $1`, r.options.Target).
		Scan(&r.prepared.Replaces, &mine)
	doing := fmt.Sprintf("prepare the restore of database %q", r.options.Target)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case !r.options.Replace:
		return r.src.errorf(problem{source.ErrTargetExists.Error(), "choose another name, or ask for it to be replaced", []error{source.ErrTargetExists}}, "%s", doing)
	case !mine:
		return r.src.errorf(problem{what: "the role does not own the database to be replaced", hint: "use its owner or a superuser"}, "%s", doing)
	}
	r.prepared.Undo = undoName(r.options.Target, r.attempt)
	return nil
}

// create makes the new database, like the one that was backed up, else like the one it replaces. What an earlier call of
// this same attempt left is dropped first.
func (r *restore) create(ctx context.Context, conn *session) error {
	if _, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+ident(r.prepared.Database)+` WITH (FORCE)`); err != nil {
		return err
	}
	encoding, locale := r.options.Info.Encoding, r.options.Info.Locale
	if locale == (source.Locale{}) && r.prepared.Replaces != 0 {
		err := conn.QueryRow(ctx, `SELECT pg_encoding_to_char(encoding), coalesce(to_jsonb(d) ->> 'datlocprovider', ''), datcollate, datctype,
			coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', '') FROM pg_database d WHERE oid = $1`, r.prepared.Replaces).
			Scan(&encoding, &locale.Provider, &locale.Collate, &locale.Ctype, &locale.Name)
		if err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, createStatement(r.prepared.Database, encoding, locale)); err != nil {
		p := explain(err)
		if strings.Contains(p.what, "locale") || strings.Contains(p.what, "encoding") {
			p.hint = hintEncoding
		}
		return r.src.errorf(p, "create database %q", r.prepared.Database)
	}
	if err := conn.QueryRow(ctx, `SELECT oid FROM pg_database WHERE datname = $1`, r.prepared.Database).Scan(&r.prepared.ID); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, timelineQuery).Scan(&r.timeline); err != nil {
		return err
	}
	names := bareSchemas(r.options)
	if len(names) == 0 {
		return nil
	}
	inside, err := r.src.primaryAt(ctx, r.attempt, r.at, r.prepared.Database)
	if err != nil {
		return err
	}
	defer inside.close()
	_, err = inside.PgConn().Exec(ctx, makeSchemas(names)).ReadAll()
	return err
}

func createStatement(name, encoding string, l source.Locale) string {
	var b strings.Builder
	b.WriteString("CREATE DATABASE " + ident(name) + " TEMPLATE template0")
	for _, option := range []struct{ key, value string }{
		{"ENCODING", encoding}, {"LC_COLLATE", l.Collate}, {"LC_CTYPE", l.Ctype},
		{"LOCALE_PROVIDER", map[string]string{"i": "icu", "b": "builtin"}[l.Provider]},
		{map[string]string{"i": "ICU_LOCALE", "b": "BUILTIN_LOCALE"}[l.Provider], l.Name},
	} {
		if option.key != "" && option.value != "" {
			b.WriteString(" " + option.key + " " + literal(option.value))
		}
	}
	return b.String()
}

// Read implements source.Restore.
func (r *restore) Read(ctx context.Context, part string, from io.Reader) error {
	err := r.progress.begin(part)
	switch {
	case r.over:
		err = errors.New("this restore has ended")
	case err != nil:
	case part == source.PartDatabase:
		err = r.readScript(ctx, from)
	case part == source.PartGlobals:
		_, err = io.Copy(io.Discard, from) // only its end tells that it is whole
	default:
		err = r.readAny(ctx, part, from)
	}
	r.progress.end(part, err)
	if err != nil {
		return r.src.wrap(ctx, err, "restore %s into database %q", part, r.prepared.Database)
	}
	return nil
}

// readAny reads a part that fills the database, in the format of the backup.
func (r *restore) readAny(ctx context.Context, part string, from io.Reader) error {
	var err error
	if r.options.Info.Format == source.FormatPlain {
		err = r.readPlain(ctx, from)
	} else {
		err = r.readData(ctx, part, from)
	}
	if err != nil || !r.options.NoEventTriggers || (part != source.PartPost && r.options.Info.Streams > 0) {
		return err
	}
	return r.dropEventTriggers(ctx)
}

// dropEventTriggers drops those that came with the backup. pg_restore makes them last of all, so that none has fired.
func (r *restore) dropEventTriggers(ctx context.Context) error {
	conn, err := r.src.primaryAt(ctx, r.attempt, r.at, r.prepared.Database)
	if err != nil {
		return err
	}
	defer conn.close()
	_, err = conn.Exec(ctx, `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT evtname FROM pg_event_trigger e WHERE NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_event_trigger'::regclass AND objid = e.oid AND deptype = 'e')
		LOOP EXECUTE format('DROP EVENT TRIGGER %I', name); END LOOP; END $$`)
	return err
}

func (r *restore) readScript(ctx context.Context, from io.Reader) error {
	script, err := decodeScript(from)
	if err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	conn, err := r.src.maintainAt(ctx, r.attempt, r.at)
	if err != nil {
		return err
	}
	defer conn.close()
	if r.options.NoOwner {
		script.Owner = ""
	}
	if r.options.NoPrivileges {
		script.Default, script.Rights = true, nil
	}
	if err := script.apply(ctx, conn, r.prepared.Database); err != nil {
		return err
	}
	e := expect(script, r.options.RestoreChoices)
	r.expected = &e
	return nil
}
