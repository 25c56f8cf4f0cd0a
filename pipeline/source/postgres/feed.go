package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

// readData feeds the archive to pg_restore. While from can still fail, pg_restore's input stays open: an input that ends
// early would be taken for the whole.
func (r *restore) readData(ctx context.Context, from io.Reader) error {
	head := make([]byte, len(archiveMagic))
	if n, err := io.ReadFull(from, head); err != nil || string(head) != archiveMagic {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("it is no archive of pg_dump (it begins with %q)", head[:n])
		}
		return r.badStream(ctx, err)
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = stdin.Close() }()
	child, err := startChild(command{
		path: r.pgRestore.path, env: r.src.where.environ(), stdin: in,
		args: []string{"--format=custom", "--exit-on-error", "--no-password",
			"--dbname=" + r.src.where.conninfo(r.at, r.prepared.Database, tag(r.attempt))},
	}, r.src.cfg.Grace)
	_ = in.Close() // the child has its own
	if err != nil {
		return err
	}
	err = r.feed(ctx, child, stdin, io.MultiReader(strings.NewReader(archiveMagic), from))
	if err != nil {
		clean, cancel := detached(ctx)
		defer cancel()
		if left := r.src.endOwn(clean, r.attempt); left != nil {
			r.src.log.WarnContext(clean, "sessions of a failed restore may be left on the server", "task", r.attempt.Task, "token", r.attempt.Token, "error", left)
		}
	}
	return err
}

// feed copies from into the program and judges how that ended. It returns when the program is gone.
func (r *restore) feed(ctx context.Context, child *child, stdin *os.File, from io.Reader) error {
	release := terminateWith(ctx, child)
	defer release()
	reader := &errReader{r: from}
	_, copyErr := io.CopyBuffer(struct{ io.Writer }{stdin}, reader, make([]byte, copyBuffer))
	if reader.err == nil {
		_ = stdin.Close() // the end of the input, or the program has closed its side
		if child.wait() == nil && copyErr != nil {
			_, _ = io.Copy(io.Discard, reader) // it needs no more, but only the end tells whether the whole was good
		}
	}
	if reader.err != nil {
		child.kill() // before its input ends
		return r.badStream(ctx, reader.err)
	}
	status := child.wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status != nil:
		return r.src.errorf(explainOutput(child.name, child.stderr.text(), status.Error()), "restore into database %q", r.prepared.Database)
	}
	if text := child.stderr.text(); strings.TrimSpace(text) != "" {
		r.src.log.WarnContext(ctx, "pg_restore warned", "database", r.prepared.Database, "output", r.src.where.secrets.clean(text))
	}
	return nil
}

// badStream says that the backup's bytes, not the server, are the reason.
func (r *restore) badStream(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.src.errorf(problem{"the backup cannot be read whole: " + err.Error(), "", []error{source.ErrIncomplete, err}},
		"restore into database %q", r.prepared.Database)
}

// errReader remembers the error of the reader behind it, but for its end.
type errReader struct {
	r   io.Reader
	err error
}

// Read reads on.
func (e *errReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}
