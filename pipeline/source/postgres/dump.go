package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// dump is one snapshot and what can be streamed from it.
type dump struct {
	src      *Source
	attempt  source.Attempt
	sess     *session // holds the snapshot
	snapshot string
	filters  filters
	pgDump   tool
	globals  tool           // pg_dumpall; none: there is no PartGlobals
	script   []byte         // PartDatabase
	streams  [][]sizedTable // tables of the further streams
	skipOurs bool           // the database has a schema that only a restore in place uses
	info     source.Info
	told     sync.Map // pids of those who wait, and were told of
	close    sync.Once
}

var (
	_ source.Chooser    = (*Source)(nil)
	_ source.Identifier = (*Source)(nil)
)

// Dump implements source.Source. Missing rights and programs are found here, before the first byte.
func (s *Source) Dump(ctx context.Context, a source.Attempt) (source.Dump, error) {
	return s.DumpWith(ctx, a, source.DumpOptions{})
}

// DumpWith implements source.Chooser.
func (s *Source) DumpWith(ctx context.Context, a source.Attempt, o source.DumpOptions) (source.Dump, error) {
	f, err := parseFilters(s.asConfigured(o))
	if err := errors.Join(checkAttempt(a), err); err != nil {
		return nil, fmt.Errorf("dump database %q: %w", s.Database(), err)
	}
	sess, state, err := s.connectForDump(ctx, a)
	if err != nil {
		return nil, err
	}
	d := &dump{src: s, attempt: a, sess: sess, filters: f}
	if err := d.prepare(ctx, state); err != nil {
		sess.close()
		return nil, s.wrap(ctx, err, "prepare the dump of database %q", s.Database())
	}
	return d, nil
}

// asConfigured fills in what a request leaves to the configuration.
func (s *Source) asConfigured(o source.DumpOptions) source.DumpOptions {
	if o.Jobs == 0 && o.Format != source.FormatPlain {
		o.Jobs = s.cfg.Jobs
	}
	if !o.NoGlobals && !o.RolePasswords {
		o.NoGlobals, o.RolePasswords = s.cfg.Globals == GlobalsNone, s.cfg.Globals == GlobalsPasswords
	}
	return o
}

func (d *dump) prepare(ctx context.Context, state standbyState) error {
	var err error
	if d.info, err = d.src.describe(ctx, d.sess); err != nil {
		return err
	}
	d.info.Format, d.info.Options = d.filters.format(), d.filters.options
	d.tellStandby(ctx, state)
	if err := d.findTools(ctx); err != nil {
		return err
	}
	if err := d.src.checkRights(ctx, d.sess, d.filters); err != nil {
		return err
	}
	if _, err := d.sess.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return err
	}
	// The statement starts before its snapshot is taken: all that was committed before as_of is in the dump.
	err = d.sess.QueryRow(ctx, `SELECT pg_export_snapshot(), statement_timestamp()`).Scan(&d.snapshot, &d.info.AsOf)
	if err != nil {
		return err
	}
	if err := d.filters.check(ctx, d.sess); err != nil {
		return err
	}
	return d.capture(ctx)
}

func (d *dump) findTools(ctx context.Context) (err error) {
	need := majorOf(d.info.ServerVersion)
	if d.pgDump, err = d.src.findTool(ctx, "pg_dump", need); err != nil {
		return err
	}
	d.info.ToolVersion = d.pgDump.version
	return d.findGlobals(ctx, need)
}

// capture reads from the snapshot what is not in the archive, and what it will need.
func (d *dump) capture(ctx context.Context) error {
	script, err := captureScript(ctx, d.sess, d.filters)
	if err != nil {
		return err
	}
	if d.script, err = script.encode(); err != nil {
		return err
	}
	d.info.Counts = script.Counts
	if d.info.Schemas, err = listed(ctx, d.sess, schemasQuery, d.filters.sqlArgs()...); err != nil {
		return err
	}
	if objects := script.Counts["large objects"]; objects > 0 && d.info.Format == source.FormatPlain {
		return d.src.errorf(problem{what: fmt.Sprintf("a plain dump cannot be restored whole or not at all with its %d large objects", objects),
			hint: "use the format custom, or leave large objects out"}, "prepare the dump of database %q", d.src.Database())
	}
	if !d.filters.partial() { // else nobody knows who is needed
		if d.info.Roles, err = listed(ctx, d.sess, rolesQuery); err != nil {
			return err
		}
	}
	err = d.sess.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'fencepost' AND NOT (`+notOurs+`))`).Scan(&d.skipOurs)
	if err != nil {
		return err
	}
	table, err := readLockTable(ctx, d.sess)
	if err != nil {
		return err
	}
	if p, ok := table.lacks(dumpLocks(d.info.Counts)); !ok {
		return d.src.errorf(p, "prepare the dump of database %q", d.src.Database())
	}
	return d.divideRows(ctx)
}

// Parts implements source.Dump.
func (d *dump) Parts() []string {
	parts := []string{source.PartData}
	if d.info.Streams > 0 {
		parts = []string{source.PartPre, source.PartPost} // both are short: the sooner they have their locks, the better
		for n := range d.info.Streams {
			parts = append(parts, streamName(n+1))
		}
	}
	parts = append(parts, source.PartDatabase)
	if d.hasGlobals() {
		parts = append(parts, source.PartGlobals)
	}
	return parts
}

// Info implements source.Dump.
func (d *dump) Info() source.Info { return d.info }

// Close implements source.Dump.
func (d *dump) Close() error {
	d.close.Do(d.sess.close)
	return nil
}

// identityQuery reads the identifier of the server, which is a right that can be taken away; a backup is good without it.
const identityQuery = `SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
	THEN (SELECT system_identifier::text FROM pg_control_system()) ELSE '' END`

// Identity implements source.Identifier.
func (s *Source) Identity(ctx context.Context) (string, error) {
	conn, err := s.inMaintenance(ctx, func(database string) (*session, error) { // a standby is of the same identity
		return s.connect(ctx, source.Attempt{Task: "identity", Token: 1}, database)
	})
	if err != nil {
		return "", err
	}
	defer conn.close()
	var id string
	err = conn.QueryRow(ctx, identityQuery).Scan(&id)
	return id, s.wrap(ctx, err, "ask the server of database %q who it is", s.Database())
}

// describe reads what a manifest says about the server and the database.
func (s *Source) describe(ctx context.Context, conn *session) (source.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	info := source.Info{Kind: "postgres", Database: s.Database(), Extensions: map[string]string{}}
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_encoding_to_char(encoding), pg_database_size(oid),
			coalesce(to_jsonb(d) ->> 'datlocprovider', ''), datcollate, datctype, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', '')
		FROM pg_database d WHERE datname = current_database()`).
		Scan(&info.ServerVersion, &info.Encoding, &info.EstimateBytes, &info.Locale.Provider, &info.Locale.Collate, &info.Locale.Ctype, &info.Locale.Name)
	if err != nil {
		return info, err
	}
	info.ServerVersion, _, _ = strings.Cut(info.ServerVersion, " ") // "15.18 (Debian 15.18-1)"
	if err := conn.QueryRow(ctx, identityQuery).Scan(&info.SystemID); err != nil {
		return info, err
	}
	rows, err := conn.Query(ctx, `SELECT extname, extversion FROM pg_extension`)
	if err != nil {
		return info, err
	}
	return info, eachPair(rows, func(name, version string) { info.Extensions[name] = version })
}
