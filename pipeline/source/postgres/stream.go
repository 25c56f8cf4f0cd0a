package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Write implements source.Dump.
func (d *dump) Write(ctx context.Context, part string, w io.Writer) error {
	if d.info.Streams > 0 {
		if p, ok := d.streamProduct(part); ok {
			return d.run(ctx, p, w)
		}
	}
	switch part {
	case source.PartData:
		return d.run(ctx, d.dataProduct(), w)
	case source.PartDatabase:
		if _, err := w.Write(d.script); err != nil {
			return fmt.Errorf("write %s: %w", part, err)
		}
		return nil
	case source.PartGlobals:
		if d.hasGlobals() {
			return d.run(ctx, d.globalsProduct(), w)
		}
	}
	return fmt.Errorf("dump database %q: there is no part %q", d.src.Database(), part)
}

// product is what a program writes, and how to know that it is whole.
type product struct {
	part       string
	program    tool
	args       []string
	head, tail string // what it begins with; what is among its last bytes
	noun       string // what it is, in an error
}

// archiveMagic opens every archive of pg_dump's custom format.
const archiveMagic = "PGDMP"

// archiveProduct is what all archives of a dump have in common.
func (d *dump) archiveProduct(part string) product {
	return product{part: part, program: d.pgDump, head: archiveMagic, noun: "archive", args: append(d.commonArgs(), "--format=custom", "--compress=0")}
}

func (d *dump) commonArgs() []string {
	args := []string{"--no-password", "--snapshot=" + d.snapshot, "--exclude-table=fencepost.attempt",
		"--dbname=" + d.src.where.conninfo(d.sess.at, d.src.Database(), tag(d.attempt))}
	if d.skipOurs {
		args = append(args, "--exclude-schema=fencepost")
	}
	if d.info.Standby != nil {
		args = append(args, "--no-unlogged-table-data")
	}
	return args
}

// dataProduct is the one archive, or script, that holds all.
func (d *dump) dataProduct() product {
	p := d.archiveProduct(source.PartData)
	if d.info.Format == source.FormatPlain {
		p = product{part: source.PartData, program: d.pgDump, head: "--\n--", tail: "\n" + plainEnd, noun: "whole plain dump",
			args: append(d.commonArgs(), "--format=plain")}
	}
	p.args = append(p.args, d.filters.args()...)
	return p
}

// run runs a program and passes on what it writes.
func (d *dump) run(ctx context.Context, p product, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return d.src.wrap(ctx, err, "dump database %q", d.src.Database())
	}
	r, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("dump database %q: make a pipe: %w", d.src.Database(), err)
	}
	defer func() { _ = r.Close() }()
	child, err := startChild(command{path: p.program.path, env: d.src.where.environ(), stdout: out, args: p.args}, d.src.cfg.Grace)
	_ = out.Close() // the child has its own
	if err != nil {
		return fmt.Errorf("dump database %q: %w", d.src.Database(), err)
	}
	seen := &witness{w: w}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := d.yielding(ctx, end)
	copyErr := d.pump(running, child, seen, r)
	stop()
	if err = context.Cause(running); err == nil || ctx.Err() != nil {
		err = d.src.judge(ctx, child, p, seen, copyErr)
	}
	if err == nil {
		return nil
	}
	return d.afterFailure(ctx, err)
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

// judge decides whether a part is whole: nothing but exit code 0, no warning of left-out content, the first (and last)
// bytes that it must have, and a writer that took all of it.
func (s *Source) judge(ctx context.Context, child *child, p product, seen *witness, copyErr error) error {
	doing := fmt.Sprintf("dump database %q", s.Database())
	status := child.wait()
	text := child.stderr.text()
	switch warnings := child.stderr.warnings(); {
	case ctx.Err() != nil:
		return s.wrap(ctx, ctx.Err(), "%s", doing)
	case seen.err != nil:
		return fmt.Errorf("%s: write %s: %w", doing, p.part, seen.err)
	case status != nil:
		return s.errorf(explainOutput(child.name, text, status.Error()), "%s", doing)
	case copyErr != nil:
		return fmt.Errorf("%s: read from %s: %w", doing, child.name, errors.Join(source.ErrIncomplete, copyErr))
	case len(warnings) > 0:
		return s.errorf(problem{"something may be left out: " + strings.Join(warnings, "; "), hintRights, []error{source.ErrIncomplete}}, "%s", doing)
	case !seen.saw(p):
		return s.errorf(problem{child.name + " wrote no " + p.noun, hintLost, []error{source.ErrIncomplete}}, "%s", doing)
	}
	return nil
}

// afterFailure ends what the program may have left on the server: a query that waits for a lock does not notice that its
// client was killed. When the server cannot be reached for that, the error says so too.
func (d *dump) afterFailure(ctx context.Context, err error) error {
	// Whether the server is back already says nothing: what ended the session may be over at the next attempt.
	switch ended := errors.Is(err, errEnded); {
	case ended && d.info.Standby != nil: // a session that waits for us to read is ended without a word
		err = fmt.Errorf("%w: replay on the standby may have cancelled the dump (%w)", err, source.ErrUnavailable)
	case ended:
		err = fmt.Errorf("%w (%w)", err, source.ErrUnavailable)
	}
	clean, cancel := detached(ctx)
	defer cancel()
	if left := d.endStreams(clean); left != nil {
		d.src.log.WarnContext(clean, "sessions of a failed dump may be left on the server", "task", d.attempt.Task, "token", d.attempt.Token, "error", left)
		if errors.Is(left, source.ErrUnavailable) && !errors.Is(err, source.ErrUnavailable) && ctx.Err() == nil {
			return fmt.Errorf("%w (%w)", err, source.ErrUnavailable)
		}
	}
	return err
}

// endStreams ends the sessions of the dump's programs, on the server that is dumped.
func (d *dump) endStreams(ctx context.Context) error {
	conn, err := d.src.connectAt(ctx, d.attempt, d.sess.at, d.src.Database())
	if err != nil {
		return d.src.endOwn(ctx, d.attempt, d.sess.at, d.sess.PgConn().PID()) // the database may be gone, or its connections used up
	}
	defer conn.close()
	return d.src.endOwnBy(ctx, conn, d.attempt, d.sess.PgConn().PID())
}

// witnessed is how many bytes of the beginning and of the end of a part are looked at.
const witnessed = 512

// witness remembers the first and last bytes, and the error, of the writer behind it.
type witness struct {
	w           io.Writer
	first, last []byte
	err         error
}

// Write passes p on.
func (s *witness) Write(p []byte) (int, error) {
	s.first = append(s.first, p[:min(witnessed-len(s.first), len(p))]...)
	s.last = append(s.last, p[max(0, len(p)-witnessed):]...)
	s.last = s.last[max(0, len(s.last)-witnessed):]
	n, err := s.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	s.err = err
	return n, err
}

func (s *witness) saw(p product) bool {
	return bytes.HasPrefix(s.first, []byte(p.head)) && bytes.Contains(s.last, []byte(p.tail))
}
