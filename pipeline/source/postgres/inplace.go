package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fencepost/fencepost/pipeline/source"
)

// inPlace is one attempt to restore into a database that exists, in one transaction of a psql that lives until the end.
type inPlace struct {
	src       *Source
	attempt   source.Attempt
	options   source.RestoreOptions
	pgRestore tool
	at        address // where the target is
	psql      *psql
	prepared  source.Prepared
	expected  *expected // by the backup's script; nil until it was read
	progress  *progress // parts that were read whole, and psql has run all of them but the COMMIT
	reading   sync.Mutex
	restrict  []byte // key that ends psql's restriction by the script that was read last
	checked   bool
	over      bool // committed or aborted
}

// restoreInPlace begins the transaction: when it returns, it holds the attempt's row.
func (s *Source) restoreInPlace(ctx context.Context, a source.Attempt, o source.RestoreOptions) (source.Restore, error) {
	r := &inPlace{src: s, attempt: a, options: o, progress: newProgress(o.Info), prepared: source.Prepared{Target: o.Target, InPlace: true}}
	if err := errors.Join(checkAttempt(a), checkTarget(o.Target, s.maintenanceName()), checkJobs(o.Info.Streams), inPlaceFits(o)); err != nil {
		return nil, fmt.Errorf("%s: %w", r.doing(), err)
	}
	conn, err := s.inItself(ctx, a, o.Target)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	r.at = conn.at
	client, err := r.preflight(ctx, conn)
	if err != nil {
		return nil, s.wrap(ctx, err, "%s", r.doing())
	}
	if err := r.begin(ctx, conn, client); err != nil {
		return nil, errors.Join(s.wrap(ctx, err, "%s", r.doing()), r.Abort())
	}
	return r, nil
}

// inItself opens a session in the database that is restored in place.
func (s *Source) inItself(ctx context.Context, a source.Attempt, target string) (*session, error) {
	conn, err := s.primary(ctx, a, target)
	if errors.Is(err, errNoDatabase) {
		return nil, s.errorf(problem{"the database does not exist", "create it first, or restore into a new one: not in place", []error{errNoDatabase}},
			"restore in place into database %q", target)
	}
	return conn, err
}

// inPlaceFits refuses what cannot be done in one transaction of ours.
func inPlaceFits(o source.RestoreOptions) error {
	switch {
	case o.Info.Format == source.FormatPlain:
		return errors.New("a plain script can only be restored into a new database")
	case o.NoEventTriggers:
		return errors.New("event triggers can only be left out of a new database")
	case o.Jobs > 1:
		return errors.New("one transaction cannot be spread over several jobs: restore into a new database, or with one job")
	case o.Info.Streams > 0 && o.Replace:
		return errors.New("a backup of several streams cannot replace what is in a database: restore into a new database, or into an empty one")
	}
	return nil
}

func (r *inPlace) doing() string {
	return fmt.Sprintf("restore in place into database %q", r.options.Target)
}

// preflight finds out what would make the restore fail, before anything is made. It returns the psql to use.
func (r *inPlace) preflight(ctx context.Context, conn *session) (client tool, err error) {
	var version string
	var mayMake bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), oid, has_database_privilege(oid, 'CREATE') FROM pg_database WHERE datname = current_database()`).
		Scan(&version, &r.prepared.ID, &mayMake)
	if err != nil {
		return client, err
	}
	if p, ok := versionFits(version, r.options.Info); !ok {
		return client, r.src.errorf(p, "%s", r.doing())
	}
	if !mayMake {
		return client, r.src.errorf(problem{what: "the role may not create schemas in the database", hint: "use its owner or a superuser"}, "%s", r.doing())
	}
	need := max(majorOf(version), majorOf(r.options.Info.ToolVersion))
	if r.pgRestore, err = r.src.findTool(ctx, "pg_restore", need); err != nil {
		return client, err
	}
	if p, ok := speaksTo(r.pgRestore, version); !ok {
		return client, r.src.errorf(p, "%s", r.doing())
	}
	if client, err = r.src.findTool(ctx, "psql", r.pgRestore.major()); err != nil {
		return client, err
	}
	if err := r.src.checkNeeds(ctx, conn, r.options, r.doing()); err != nil {
		return client, err
	}
	return client, r.checkRoom(ctx, conn)
}

// checkRoom refuses a target that is not empty without leave to replace, and a transaction too big for the server.
func (r *inPlace) checkRoom(ctx context.Context, conn *session) error {
	have, err := countObjects(ctx, conn, countQuery)
	if err != nil {
		return err
	}
	needed := buildLocks(r.options.Info.Counts)
	if r.options.Replace {
		needed += buildLocks(have)
	} else if kind := holds(have); kind != "" {
		return r.src.errorf(problem{fmt.Sprintf("%s and holds %d %s", source.ErrTargetExists, have[kind], kind),
			"ask for it to be replaced, or restore into a new database", []error{source.ErrTargetExists}}, "%s", r.doing())
	}
	table, err := readLockTable(ctx, conn)
	if err != nil {
		return err
	}
	if p, ok := table.lacks(needed); !ok {
		p.hint += "; or restore into a new database, which needs no such transaction"
		return r.src.errorf(p, "%s", r.doing())
	}
	return nil
}

// holds names a kind of object that a database has some of; "" for an empty one.
func holds(counts map[string]int64) string {
	for _, kind := range sortedKeys(counts) {
		if kind != "extensions" && counts[kind] > 0 {
			return kind
		}
	}
	return ""
}

// begin is the transaction's beginning. Its first statement takes the attempt's row. COMMIT is impossible until the key
// table has the token: the foreign key is looked at by COMMIT, and the only statement that puts the token there is the
// one that sets the row to done.
const beginSQL = `BEGIN;
%[1]s;
SELECT token FROM fencepost.attempt WHERE task = %[2]s AND token = %[3]d AND NOT done FOR UPDATE;
CREATE TEMPORARY TABLE fencepost_key (token bigint PRIMARY KEY) ON COMMIT DROP;
CREATE TEMPORARY TABLE fencepost_lock (token bigint CONSTRAINT "only fencepost may commit this" REFERENCES pg_temp.fencepost_key DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP;
`

// lockSQL is what makes COMMIT impossible.
func lockSQL(token uint64) string {
	if mutant == "commit" {
		return ""
	}
	return fmt.Sprintf("INSERT INTO pg_temp.fencepost_lock VALUES (%d);\n", token)
}

// releaseSQL ends the transaction.
const releaseSQL = `WITH mine AS (UPDATE fencepost.attempt SET done = true WHERE task = %[1]s AND token = %[2]d AND NOT done RETURNING token)
	INSERT INTO pg_temp.fencepost_key SELECT token FROM mine;
COMMIT;
`

func (r *inPlace) begin(ctx context.Context, conn *session, client tool) error {
	own := `SELECT pid FROM pg_stat_activity WHERE application_name = $1` // of an earlier call of this same attempt
	if err := endSessions(ctx, conn, own, tag(r.attempt)); err != nil {
		return err
	}
	if err := announce(ctx, conn, r.attempt); err != nil {
		return err
	}
	var err error
	if r.psql, err = r.src.startPsql(client, conn.at, r.options.Target, tag(r.attempt)); err != nil {
		return err
	}
	held, err := r.ask(ctx, fmt.Sprintf(beginSQL, resetSession, literal(r.attempt.Task), r.attempt.Token)+lockSQL(r.attempt.Token)+makeSchemas(bareSchemas(r.options)),
		fmt.Sprintf(`SELECT count(*) FROM fencepost.attempt WHERE task = %s AND token = %d`, literal(r.attempt.Task), r.attempt.Token))
	if err == nil && held != "1" {
		err = r.superseded()
	}
	return err
}

func (r *inPlace) superseded() error {
	return r.src.errorf(problem{source.ErrSuperseded.Error(), "see which attempt of the task went on", []error{source.ErrSuperseded}}, "%s", r.doing())
}

// ask has psql run SQL and answer; psql's own words explain a failure.
func (r *inPlace) ask(ctx context.Context, sql, expression string) (string, error) {
	text, err := r.psql.ask(ctx, sql, expression)
	if errors.Is(err, errPsqlEnded) && ctx.Err() == nil {
		err = r.src.errorf(r.psql.why(), "%s", r.doing())
	}
	return text, err
}

// Read implements source.Restore. There is one psql: parts of one stage wait for each other.
func (r *inPlace) Read(ctx context.Context, part string, from io.Reader) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	err := r.progress.begin(part)
	switch {
	case r.over:
		err = errors.New("this restore has ended")
	case err != nil:
	case part == source.PartDatabase:
		err = r.readScript(ctx, from)
	case part == source.PartGlobals, r.options.SchemaOnly && r.options.Info.Streams > 0 && source.IsStream(part):
		_, err = io.Copy(io.Discard, from) // only its end tells that it is whole
	default:
		err = r.readData(ctx, part, from)
	}
	r.progress.end(part, err)
	if err != nil {
		return r.src.wrap(ctx, err, "%s", r.doing())
	}
	return nil
}

// readScript takes only the counts from a script: the database itself stays as it is.
func (r *inPlace) readScript(ctx context.Context, from io.Reader) error {
	s, err := decodeScript(from)
	if err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	e := expect(s, r.options.RestoreChoices)
	r.expected = &e
	return nil
}

// Check implements source.Restore. Inside the transaction the target must hold at least what the backup held; it may
// hold more, which was made since.
func (r *inPlace) Check(ctx context.Context) (source.Prepared, error) {
	if !r.progress.filled() || r.over {
		return source.Prepared{}, fmt.Errorf("%s: %w", r.doing(), source.ErrIncomplete)
	}
	got, err := r.ask(ctx, "", `SELECT coalesce(jsonb_object_agg(kind, n), '{}') FROM (`+countQuery+`) AS counted (kind, n)`)
	if err != nil {
		r.progress.fail()
		return source.Prepared{}, r.src.wrap(ctx, err, "%s", r.doing())
	}
	var counts map[string]int64
	if err := json.NewDecoder(bytes.NewReader([]byte(got))).Decode(&counts); err != nil {
		return source.Prepared{}, fmt.Errorf("%s: count what is there: %w", r.doing(), err)
	}
	if r.expected != nil {
		for kind, n := range counts {
			counts[kind] = min(n, r.expected.counts[kind]) // more is fine
		}
		if p, ok := r.expected.compare(counts); !ok {
			r.progress.fail()
			return source.Prepared{}, r.src.errorf(p, "%s", r.doing())
		}
	}
	r.checked = true
	return r.prepared, nil
}
