package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// restore runs the restore chain into a new database and swaps it in, or restores in place. It returns nil only when the ledger says
// completed. keep outlives a cancel by a person: from Commit on everything is done under it, since the swap must not be
// left half known.
func (a *attempt) restore(ctx, keep context.Context) (err error) {
	t := a.row()
	if elapsed(t.StartBy, a.cfg.Now()) {
		return errExpired
	}
	src, ok := a.cfg.Catalog.Sources[t.Database]
	if !ok {
		return fmt.Errorf("database %q is not configured on this node: %w", t.Database, ErrUnavailable)
	}
	if err := a.save(ctx, nil, func(t *ledger.Task) { t.State, t.Error, t.Hint = ledger.Downloading, "", "" }); err != nil {
		return err
	}
	from, err := pick(ctx, a.cfg.Catalog, t.Backup, t.Storages)
	if err != nil {
		return err
	}
	if err := a.opens(ctx, from); err != nil {
		return err
	}
	// What an earlier Abort could not drop goes now. One in place may have committed without having been heard of.
	outcome, err := src.Settle(ctx, a.source(), known(ledger.Task{Target: t.Target, Choices: t.Choices}))
	if err != nil {
		return fmt.Errorf("settle earlier attempts: %w", err)
	}
	if outcome == source.Committed {
		return a.save(keep, nil, func(t *ledger.Task) { t.State = ledger.Completed })
	}
	r, err := src.Restore(ctx, a.source(), source.RestoreOptions{
		Target: t.Target, Replace: t.Replace, KeepOld: a.cfg.KeepOld, Info: from.manifest.Source, RestoreChoices: t.Choices,
	})
	if err != nil {
		return fmt.Errorf("prepare restore into %s: %w", t.Target, err)
	}
	defer func() {
		if abortErr := r.Abort(); abortErr != nil && err != nil {
			err = fmt.Errorf("%w (and the new database was not dropped: %w)", err, abortErr)
		}
	}()
	if err := a.fill(ctx, r, from); err != nil {
		return err
	}
	return a.swap(ctx, keep, r)
}

// fill streams every part of the manifest into the new database.
func (a *attempt) fill(ctx context.Context, r source.Restore, from picked) error {
	a.estimate.Store(from.manifest.StoredBytes())
	for _, o := range from.manifest.Objects {
		if err := a.part(ctx, r, from, o); err != nil {
			return fmt.Errorf("restore part %s from storage %s: %w", o.Name, from.name, err)
		}
	}
	return nil
}

// part streams one part: download, stored hash, inverse processors, raw hash, source. The source sees the end of input
// only when both hashes and lengths fit.
func (a *attempt) part(ctx context.Context, r source.Restore, from picked, o Object) (err error) {
	obj, _, err := from.store.Get(ctx, ObjectPath(from.manifest.Backup, from.manifest.Token, o.Name))
	if err != nil {
		return &storageError{name: from.name, err: err}
	}
	defer func() { err = errors.Join(err, obj.Close()) }()
	stop := context.AfterFunc(ctx, func() { obj.Close() }) // a read that hangs ends with the task
	defer stop()
	object := newChecked(obj, "stored object", o.StoredBytes, o.StoredSHA256,
		func() error { return a.stage(ctx, ledger.Deprocessing) },
		func(n int) { a.read.Add(int64(n)) })
	plain, err := a.cfg.Catalog.Processors.UnwrapAll(from.manifest.Processors, object)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	raw := newChecked(&ended{ctx: ctx, r: plain, under: object}, "content", o.RawBytes, o.RawSHA256,
		func() error { return a.stage(ctx, ledger.Restoring) }, nil)
	if err := r.Read(ctx, o.Name, raw); err != nil {
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
	ctx   context.Context // bounds Read, which has no place for it
	r     io.Reader
	under *checked
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
	} else if err != nil && e.under.err != nil && e.under.err != io.EOF {
		err = e.under.err // why the object could not be read, rather than what a processor made of it
	}
	return n, err
}

// swap checks what was filled, records it in the ledger under the token, and commits.
func (a *attempt) swap(ctx, keep context.Context, r source.Restore) error {
	prepared, err := r.Check(ctx)
	if err != nil {
		return fmt.Errorf("check the new database: %w", err)
	}
	if err := a.save(ctx, nil, func(t *ledger.Task) { t.State, t.Prepared = ledger.Restoring, prepared }); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := r.Commit(keep); err != nil {
		a.unclear = !errors.Is(err, source.ErrTargetExists) && (fenced(err) || passing(err) || keep.Err() != nil)
		return fmt.Errorf("swap the new database in: %w", err)
	}
	a.unclear = true // until the ledger knows
	return a.save(keep, nil, func(t *ledger.Task) { t.State = ledger.Completed })
}
