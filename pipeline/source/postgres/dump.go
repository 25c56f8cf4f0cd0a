package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	pgDump   tool
	script   []byte // PartDatabase
	skipOurs bool   // the database has a schema that only a restore in place uses
	info     source.Info
	close    sync.Once
}

// Dump implements source.Source. Missing rights and programs are found here, before the first byte.
func (s *Source) Dump(ctx context.Context, a source.Attempt) (source.Dump, error) {
	if err := checkAttempt(a); err != nil {
		return nil, fmt.Errorf("dump database %q: %w", s.Database(), err)
	}
	sess, err := s.connect(ctx, a, s.Database())
	if err != nil {
		return nil, err
	}
	d := &dump{src: s, attempt: a, sess: sess}
	if err := d.prepare(ctx); err != nil {
		sess.close()
		return nil, s.wrap(ctx, err, "prepare the dump of database %q", s.Database())
	}
	return d, nil
}

func (d *dump) prepare(ctx context.Context) error {
	var err error
	if d.info, err = d.src.describe(ctx, d.sess); err != nil {
		return err
	}
	if d.pgDump, err = d.src.findTool(ctx, "pg_dump", majorOf(d.info.ServerVersion)); err != nil {
		return err
	}
	d.info.ToolVersion = d.pgDump.version
	if err := d.src.checkRights(ctx, d.sess); err != nil {
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
	script, err := captureScript(ctx, d.sess)
	if err != nil {
		return err
	}
	d.info.Counts = script.Counts
	if d.info.Roles, err = texts(ctx, d.sess, rolesQuery); err != nil {
		return err
	}
	if err := d.checkLocks(ctx); err != nil {
		return err
	}
	if err := d.sess.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'fencepost') AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'fencepost' AND `+notOurs+`)`).Scan(&d.skipOurs); err != nil {
		return err
	}
	d.script, err = script.encode()
	return err
}

// Parts implements source.Dump.
func (d *dump) Parts() []string { return []string{source.PartData, source.PartDatabase} }

// Info implements source.Dump.
func (d *dump) Info() source.Info { return d.info }

// Close implements source.Dump.
func (d *dump) Close() error {
	d.close.Do(d.sess.close)
	return nil
}

// Write implements source.Dump.
func (d *dump) Write(ctx context.Context, part string, w io.Writer) error {
	switch part {
	case source.PartData:
		return d.writeData(ctx, w)
	case source.PartDatabase:
		if _, err := w.Write(d.script); err != nil {
			return fmt.Errorf("write %s: %w", part, err)
		}
		return nil
	}
	return fmt.Errorf("dump database %q: there is no part %q", d.src.Database(), part)
}

// writeData runs pg_dump and passes on what it writes.
func (d *dump) writeData(ctx context.Context, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return d.src.wrap(ctx, err, "dump database %q", d.src.Database())
	}
	r, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("dump database %q: make a pipe: %w", d.src.Database(), err)
	}
	defer func() { _ = r.Close() }()
	child, err := startChild(command{
		path: d.pgDump.path, env: d.src.where.environ(), stdout: out,
		args: d.args(),
	}, d.src.cfg.Grace)
	_ = out.Close() // the child has its own
	if err != nil {
		return fmt.Errorf("dump database %q: %w", d.src.Database(), err)
	}
	head := &headWriter{w: w}
	copyErr := d.pump(ctx, child, head, r)
	err = d.src.judge(ctx, child, head, copyErr)
	if err == nil {
		return nil
	}
	return d.afterFailure(ctx, err)
}

func (d *dump) args() []string {
	args := []string{"--format=custom", "--compress=0", "--no-password", "--snapshot=" + d.snapshot, "--exclude-table=fencepost.attempt",
		"--dbname=" + d.src.where.conninfo(d.sess.at, d.src.Database(), tag(d.attempt))}
	if d.skipOurs {
		args = append(args, "--exclude-schema=fencepost")
	}
	return args
}

// checkLocks refuses a dump that would fill the server's table of locks, which would hurt others too.
func (d *dump) checkLocks(ctx context.Context) error {
	table, err := readLockTable(ctx, d.sess)
	if err != nil {
		return err
	}
	if p, ok := table.lacks(dumpLocks(d.info.Counts)); !ok {
		return d.src.errorf(p, "prepare the dump of database %q", d.src.Database())
	}
	return nil
}

// pump copies until the program's output ends, and returns when the program is gone. It ends the program when ctx ends
// or w fails. The error is that of w (or of the pipe).
func (d *dump) pump(ctx context.Context, child *child, w io.Writer, r io.Reader) error {
	release := terminateWith(ctx, child)
	defer release()
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, copyBuffer))
	if err != nil {
		child.terminate()
	}
	_ = child.wait() // judged by the caller
	return err
}

const copyBuffer = 256 << 10

// terminateWith ends the child when ctx ends. The function that it returns waits until that can no longer happen.
func terminateWith(ctx context.Context, child *child) (release func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		child.terminate()
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}

// judge decides whether a dump is whole: nothing but exit code 0, no warning of left-out content, an archive's first
// bytes, and a writer that took all of it.
func (s *Source) judge(ctx context.Context, child *child, head *headWriter, copyErr error) error {
	doing := fmt.Sprintf("dump database %q", s.Database())
	status := child.wait()
	text := child.stderr.text()
	switch warnings := child.stderr.warnings(); {
	case ctx.Err() != nil:
		return s.wrap(ctx, ctx.Err(), "%s", doing)
	case head.err != nil:
		return fmt.Errorf("%s: write %s: %w", doing, source.PartData, head.err)
	case status != nil:
		return s.errorf(explainOutput(child.name, text, status.Error()), "%s", doing)
	case copyErr != nil:
		return fmt.Errorf("%s: read from %s: %w", doing, child.name, errors.Join(source.ErrIncomplete, copyErr))
	case len(warnings) > 0:
		return s.errorf(problem{"something may be left out: " + strings.Join(warnings, "; "), hintRights, []error{source.ErrIncomplete}}, "%s", doing)
	case string(head.first) != archiveMagic:
		return s.errorf(problem{child.name + " wrote no archive", hintLost, []error{source.ErrIncomplete}}, "%s", doing)
	}
	return nil
}

// afterFailure ends what the program may have left on the server: a query that waits for a lock does not notice that its
// client was killed. When the server cannot be reached for that, the error says so too.
func (d *dump) afterFailure(ctx context.Context, err error) error {
	clean, cancel := detached(ctx)
	defer cancel()
	if left := d.src.endOwn(clean, d.attempt, d.sess.PgConn().PID()); left != nil {
		d.src.log.WarnContext(clean, "sessions of a failed dump may be left on the server", "task", d.attempt.Task, "token", d.attempt.Token, "error", left)
		if errors.Is(left, source.ErrUnavailable) && ctx.Err() == nil {
			return fmt.Errorf("%w (%w)", err, source.ErrUnavailable)
		}
	}
	return err
}

// archiveMagic opens every archive of pg_dump's custom format.
const archiveMagic = "PGDMP"

// headWriter remembers the first bytes and the error of the writer behind it.
type headWriter struct {
	w     io.Writer
	first []byte
	err   error
}

// Write passes p on.
func (h *headWriter) Write(p []byte) (int, error) {
	if missing := len(archiveMagic) - len(h.first); missing > 0 {
		h.first = append(h.first, p[:min(missing, len(p))]...)
	}
	n, err := h.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	h.err = err
	return n, err
}

// describe reads what a manifest says about the server and the database.
func (s *Source) describe(ctx context.Context, conn *session) (source.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	info := source.Info{Kind: "postgres", Format: "custom", Database: s.Database(), Extensions: map[string]string{}}
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_encoding_to_char(encoding), pg_database_size(oid),
			coalesce(to_jsonb(d) ->> 'datlocprovider', ''), datcollate, datctype, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', '')
		FROM pg_database d WHERE datname = current_database()`).
		Scan(&info.ServerVersion, &info.Encoding, &info.EstimateBytes, &info.Locale.Provider, &info.Locale.Collate, &info.Locale.Ctype, &info.Locale.Name)
	if err != nil {
		return info, err
	}
	info.ServerVersion, _, _ = strings.Cut(info.ServerVersion, " ") // "15.18 (Debian 15.18-1)"
	// Reading the identifier is a right that can be taken away; the backup is good without it.
	err = conn.QueryRow(ctx, `SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
		THEN (SELECT system_identifier::text FROM pg_control_system()) ELSE '' END`).Scan(&info.SystemID)
	if err != nil {
		return info, err
	}
	rows, err := conn.Query(ctx, `SELECT extname, extversion FROM pg_extension`)
	if err != nil {
		return info, err
	}
	return info, eachPair(rows, func(name, version string) { info.Extensions[name] = version })
}
