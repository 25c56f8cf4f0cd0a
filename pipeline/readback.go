package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
)

// readback reads the parts of one backup out of one storage.
type readback struct {
	processors processor.Registry
	from       picked
	// hooks, all may be nil, called from the goroutine that reads a part: before the first stored and the first raw byte of
	// it, and with the number of stored bytes, and of raw ones
	onStored, onRaw func() error
	count, countRaw func(n int)
	// diagnose reads an object to its end although a processor failed on it, to tell a changed object from a wrong key.
	diagnose bool
}

// consume takes one part to its end. Its reader fails before its end when the part is not what the manifest says.
type consume func(ctx context.Context, part string, r io.Reader) error

// all reads every part, stage by stage, at most jobs at once (0: a whole stage).
func (b readback) all(ctx context.Context, jobs int, take consume) error {
	objects := map[string]Object{}
	var parts []string
	for _, o := range b.from.manifest.Objects {
		objects[o.Name] = o
		parts = append(parts, o.Name)
	}
	for _, stage := range source.Stages(parts) {
		err := together(ctx, stage, jobs, func(ctx context.Context, part string) error {
			if err := b.part(ctx, objects[part], take); err != nil {
				return fmt.Errorf("restore part %s from storage %s: %w", part, b.from.name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// part streams one part: download, stored hash, inverse processors, raw hash, take. The taker sees the end of input
// only when both hashes and lengths fit.
func (b readback) part(ctx context.Context, o Object, take consume) (err error) {
	m := b.from.manifest
	obj, _, err := b.from.store.Get(ctx, ObjectPath(m.Backup, m.Token, o.Name))
	if err != nil {
		return &storageError{name: b.from.name, err: err}
	}
	defer func() { err = errors.Join(err, obj.Close()) }()
	stop := context.AfterFunc(ctx, func() { obj.Close() }) // a read that hangs ends with the task
	defer stop()
	object := newChecked(obj, "stored object", o.StoredBytes, o.StoredSHA256, b.onStored, b.count)
	plain, err := b.processors.UnwrapAll(m.Processors, object)
	if err != nil {
		if b.diagnose {
			if bad := object.finish(); bad != nil {
				return bad
			}
		}
		return err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	raw := newChecked(&ended{ctx: ctx, r: plain, under: object, diagnose: b.diagnose}, "content", o.RawBytes, o.RawSHA256, b.onRaw, b.countRaw)
	if err := take(ctx, o.Name, raw); err != nil {
		return firstOf(ctx, raw, err)
	}
	if err := raw.finish(); err != nil {
		return firstOf(ctx, raw, err)
	}
	return nil
}

// firstOf prefers the reason over its consequence: the context's cause, then what the reader ended with, then err.
func firstOf(ctx context.Context, raw *checked, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if raw.err != nil && raw.err != io.EOF {
		return raw.err
	}
	return err
}

// ended is the end of the inverse processors: before their end of input is passed on, the object under them must have
// been read to its end, with the right hash, too.
type ended struct {
	ctx      context.Context // bounds Read, which has no place for it
	r        io.Reader
	under    *checked
	diagnose bool
}

func (e *ended) Read(p []byte) (int, error) {
	if err := context.Cause(e.ctx); err != nil {
		return 0, err
	}
	n, err := e.r.Read(p)
	if err == io.EOF {
		if bad := e.under.finish(); bad != nil {
			return 0, bad
		}
		return n, err
	}
	if err != nil && e.diagnose {
		_ = e.under.finish() // the answer stays in under.err
	}
	if err != nil && e.under.err != nil && e.under.err != io.EOF {
		err = e.under.err // why the object could not be read, rather than what a processor made of it
	}
	return n, err
}
