package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

// readData has pg_restore write the archive as SQL, and psql run it, all but the COMMIT.
func (r *inPlace) readData(ctx context.Context, part string, from io.Reader) (err error) {
	if err := readMagic(from); err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	defer func() {
		if err != nil {
			r.psql.kill()
			r.src.afterFailedRestore(ctx, r.attempt, r.at)
		}
	}()
	writer, stdin, sql, err := r.startRestore(part == source.PartData && r.options.Info.Streams == 0 || part == source.PartPre)
	if err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	defer terminateWith(ctx, r.psql.child)() // a write to a psql that waits for a lock ends with ctx
	defer r.pushing(ctx)()
	if len(r.restrict) > 0 { // the next script restricts psql again, which only an unrestricted one lets it
		_, _ = io.WriteString(r.psql.in, `\unrestrict `+string(r.restrict)+"\n") // a psql that is gone is noticed below
	}
	held := &holdBack{w: r.psql.in}
	pumped := make(chan error, 1)
	go func() { // ends with pg_restore's output
		var err error
		r.restrict, err = pump(held, sql)
		if err != nil {
			writer.kill()
		}
		pumped <- err
	}()
	err = r.src.feed(ctx, writer, stdin, io.MultiReader(strings.NewReader(archiveMagic), from), r.doing())
	if bad := <-pumped; bad != nil && ctx.Err() == nil {
		return r.whyPumpFailed(bad) // pg_restore was killed for it
	}
	if err != nil {
		return err
	}
	rest, err := beforeCommit(held.held)
	if err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	_, err = r.ask(ctx, string(rest), "1")
	return err
}

// startRestore starts pg_restore, which turns an archive into SQL.
func (r *inPlace) startRestore(strict bool) (writer *child, stdin, sql *os.File, err error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	sql, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), stdin.Close()
		return nil, nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	args := []string{"--format=custom", "--exit-on-error", "--single-transaction", "--file=-"}
	if r.options.Replace {
		args = append(args, "--clean", "--if-exists")
	}
	writer, err = startChild(command{
		path: r.pgRestore.path, env: r.src.where.environ(), stdin: in, stdout: out, args: append(args, restoreArgs(r.options, strict)...),
	}, r.src.cfg.Grace)
	_, _ = in.Close(), out.Close() // the child has its own
	if err != nil {
		_, _ = stdin.Close(), sql.Close()
		return nil, nil, nil, err
	}
	return writer, stdin, sql, nil
}

var errUnrestricted = errors.New("pg_restore is too old: its script does not protect from commands that a backup may carry for psql")

// pump passes a script on to psql, and returns the key of its restriction. An error of psql's input is errPsqlEnded.
func pump(to *holdBack, sql *os.File) (key []byte, err error) {
	defer func() { _ = sql.Close() }()
	from := bufio.NewReaderSize(sql, copyBuffer)
	head, _ := from.Peek(1024) // a short one is judged as what it is
	if key = restriction(head); key == nil && len(head) > 0 {
		return nil, errUnrestricted
	}
	key = bytes.Clone(key)
	for {
		if _, err := from.Peek(1); err != nil {
			return key, nil // the end; pg_restore's exit code tells whether it was the right one
		}
		chunk, _ := from.Peek(from.Buffered())
		if _, err := to.Write(chunk); err != nil {
			return key, errPsqlEnded
		}
		_, _ = from.Discard(len(chunk))
	}
}

func (r *inPlace) whyPumpFailed(err error) error {
	if !errors.Is(err, errPsqlEnded) {
		return r.src.errorf(problem{err.Error(), "update the PostgreSQL client programs", nil}, "%s", r.doing())
	}
	r.psql.kill()
	return r.src.errorf(r.psql.why(), "%s", r.doing())
}
