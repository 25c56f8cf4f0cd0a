package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/pipeline/source"
)

// readData restores one part that fills the database.
func (r *restore) readData(ctx context.Context, part string, from io.Reader) error {
	switch {
	case r.options.Info.Streams == 0:
		return r.readArchive(ctx, from)
	case part == source.PartPre:
		return r.feedArchive(ctx, from, restoreArgs(r.options, true))
	case part == source.PartPost:
		return r.readPost(ctx, from)
	case r.options.SchemaOnly:
		return r.skip(ctx, from)
	}
	return r.feedArchive(ctx, from, restoreArgs(r.options, false)) // what was chosen may be in another stream
}

// skip reads a part that is not wanted: only its end tells whether the backup is whole.
func (r *restore) skip(ctx context.Context, from io.Reader) error {
	if _, err := io.Copy(io.Discard, from); err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	return nil
}

// feedArchive feeds an archive to pg_restore. While from can still fail, pg_restore's input stays open: an input that ends
// early would be taken for the whole.
func (r *restore) feedArchive(ctx context.Context, from io.Reader, args []string) error {
	if err := readMagic(from); err != nil {
		return r.failure.first(r.src.badStream(ctx, err, r.doing()))
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = stdin.Close() }()
	child, err := startChild(command{
		path: r.pgRestore.path, env: r.src.where.environ(), stdin: in,
		args: append(args, "--format=custom", "--exit-on-error", "--no-password",
			"--dbname="+r.src.where.writing().conninfo(r.at, r.prepared.Database, tag(r.attempt))),
	}, r.src.cfg.Grace)
	_ = in.Close() // the child has its own
	if err != nil {
		return err
	}
	err = r.src.feed(ctx, child, stdin, io.MultiReader(strings.NewReader(archiveMagic), from), r.doing())
	if err != nil {
		err = r.failure.first(err) // before the sessions of other streams are ended, which then fail as well
		r.src.afterFailedRestore(ctx, r.attempt, r.at)
	}
	return err
}

// failure keeps the first of the errors of streams that are read at the same time.
type failure struct {
	mu  sync.Mutex
	err error
}

// first is err, or what had failed before it.
func (f *failure) first(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		return err
	}
	return fmt.Errorf("another part has failed: %w", f.err)
}

// readMagic reads the first bytes of an archive.
func readMagic(from io.Reader) error {
	head := make([]byte, len(archiveMagic))
	n, err := io.ReadFull(from, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(head[:n]) != archiveMagic {
		return fmt.Errorf("it is no archive of pg_dump (it begins with %q)", head[:n])
	}
	return nil
}

func (r *restore) doing() string { return fmt.Sprintf("restore into database %q", r.prepared.Database) }

// afterFailedRestore ends what a killed program may have left on the server.
func (s *Source) afterFailedRestore(ctx context.Context, a source.Attempt, at address) {
	clean, cancel := detached(ctx)
	defer cancel()
	if left := s.endOwn(clean, a, at); left != nil {
		s.log.WarnContext(clean, "sessions of a failed restore may be left on the server", "task", a.Task, "token", a.Token, "error", left)
	}
}

// feed copies from into the program and judges how that ended. It returns when the program is gone.
func (s *Source) feed(ctx context.Context, child *child, stdin *os.File, from io.Reader, doing string) error {
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
		return s.badStream(ctx, reader.err, doing)
	}
	return s.judgeRestore(ctx, child, doing)
}

// judgeRestore says how a pg_restore ended that has read all it was given.
func (s *Source) judgeRestore(ctx context.Context, child *child, doing string) error {
	status := child.wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status != nil:
		return s.errorf(explainOutput(child.name, child.stderr.text(), status.Error()), "%s", doing)
	}
	if text := child.stderr.text(); strings.TrimSpace(text) != "" {
		s.log.WarnContext(ctx, child.name+" warned", "doing", doing, "output", s.where.secrets.clean(text))
	}
	return nil
}

// badStream says that the backup's bytes, not the server, are the reason.
func (s *Source) badStream(ctx context.Context, err error, doing string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.errorf(problem{"the backup cannot be read whole: " + err.Error(), "", []error{source.ErrIncomplete, err}}, "%s", doing)
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
