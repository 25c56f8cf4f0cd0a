package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/fencepost/fencepost/pipeline/source"
)

// pg_restore makes indexes and constraints in several sessions only from a file in which it can seek. What that needs is
// small (definitions, no rows), and is kept in a file in memory: the whole of PartPost, or the beginning of an archive, in
// which all definitions come before the first row.

// maxInMemory bounds what is kept for that, in bytes.
const maxInMemory = 64 << 20

// jobs is how many sessions restore at the same time.
func jobs(o source.RestoreOptions) int {
	if o.Jobs == 0 {
		return max(1, o.Info.Streams)
	}
	return o.Jobs
}

// head is the beginning of an archive, in memory.
type head struct {
	file  *os.File
	whole bool      // it is all of the archive, which ended well
	rest  io.Reader // all of the archive, from its first byte
}

// readHead reads up to s.inMemory bytes; nil, without an error, when the system cannot keep them.
func (s *Source) readHead(ctx context.Context, from io.Reader) (*head, error) {
	file, err := memoryFile()
	if err != nil {
		s.log.InfoContext(ctx, "indexes are made one by one", "reason", err.Error())
		return nil, nil
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{io.LimitReader(from, s.inMemory)}, make([]byte, copyBuffer))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	h := &head{file: file, rest: io.NewSectionReader(file, 0, n)}
	if n == s.inMemory {
		h.rest = io.MultiReader(h.rest, from)
		return h, nil
	}
	h.whole = true
	return h, nil
}

func (h *head) close() {
	if h != nil {
		_ = h.file.Close()
	}
}

// readArchive restores one archive that holds all, in several sessions as far as that goes.
func (r *restore) readArchive(ctx context.Context, from io.Reader) error {
	if jobs(r.options) == 1 {
		return r.feedArchive(ctx, from, restoreArgs(r.options, true))
	}
	h, err := r.src.readHead(ctx, from)
	if err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	defer h.close()
	switch {
	case h == nil:
		return r.feedArchive(ctx, from, restoreArgs(r.options, true))
	case h.whole:
		return r.runParallel(ctx, h, restoreArgs(r.options, true))
	case !r.listed(ctx, h):
		r.src.log.InfoContext(ctx, "indexes are made one by one", "reason", "the backup's definitions are too long to be kept in memory")
		return r.feedArchive(ctx, h.rest, restoreArgs(r.options, true))
	}
	if err := r.feedArchive(ctx, h.rest, append(restoreArgs(r.options, true), "--section=pre-data", "--section=data")); err != nil {
		return err
	}
	return r.runParallel(ctx, h, append(restoreArgs(r.options, false), "--section=post-data"))
}

// readPost restores what comes after the rows, in several sessions.
func (r *restore) readPost(ctx context.Context, from io.Reader) error {
	args := restoreArgs(r.options, false)
	if jobs(r.options) == 1 {
		return r.feedArchive(ctx, from, args)
	}
	h, err := r.src.readHead(ctx, from)
	if err != nil {
		return r.src.badStream(ctx, err, r.doing())
	}
	defer h.close()
	switch {
	case h == nil:
		return r.feedArchive(ctx, from, args)
	case !h.whole:
		return r.feedArchive(ctx, h.rest, args)
	}
	return r.runParallel(ctx, h, args)
}

// listed tells whether the definitions of an archive are in memory whole: pg_restore lists them without looking at rows.
func (r *restore) listed(ctx context.Context, h *head) bool {
	child, err := startChild(command{
		path: r.pgRestore.path, env: r.src.where.environ(), extra: h.file, args: []string{"--list", "--file=" + os.DevNull, inheritedFile},
	}, r.src.cfg.Grace)
	if err != nil {
		return false
	}
	defer terminateWith(ctx, child)()
	return child.wait() == nil
}

// runParallel has pg_restore read a file in memory, in several sessions.
func (r *restore) runParallel(ctx context.Context, h *head, args []string) error {
	start := make([]byte, len(archiveMagic))
	if n, _ := h.file.ReadAt(start, 0); !bytes.Equal(start[:n], []byte(archiveMagic)) {
		return r.src.badStream(ctx, fmt.Errorf("it is no archive of pg_dump (it begins with %q)", start[:n]), r.doing())
	}
	child, err := startChild(command{
		path: r.pgRestore.path, env: r.src.where.environ(), extra: h.file,
		args: append(args, "--format=custom", "--exit-on-error", "--no-password", "--jobs="+strconv.Itoa(jobs(r.options)),
			"--dbname="+r.src.where.writing().conninfo(r.at, r.prepared.Database, tag(r.attempt)), inheritedFile),
	}, r.src.cfg.Grace)
	if err != nil {
		return err
	}
	release := terminateWith(ctx, child)
	_ = child.wait() // judged below
	release()
	if err := r.src.judgeRestore(ctx, child, r.doing()); err != nil {
		r.src.afterFailedRestore(ctx, r.attempt, r.at)
		return err
	}
	return nil
}
