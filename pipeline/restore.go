package pipeline

import (
	"context"
	"errors"
	"fmt"

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
	catalog := a.cfg.Catalog
	if t.Foreign {
		catalog.Trust = nil
	}
	from, err := pick(ctx, catalog, t.Backup, t.Storages)
	if err != nil {
		return err
	}
	if err := catalog.opens(ctx, from); err != nil {
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
		Target: t.Target, Replace: t.Replace, KeepOld: a.cfg.KeepOld, Info: from.manifest.Source, RestoreChoices: a.choices(from.manifest.Source),
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

// choices are those of the task, with the node's number of sessions where the task does not say and there can be several.
func (a *attempt) choices(backup source.Info) source.RestoreChoices {
	c := a.row().Choices
	if c.Jobs == 0 && !c.InPlace && backup.Format != source.FormatPlain {
		c.Jobs = a.cfg.RestoreJobs
	}
	return c
}

// fill streams every part of the manifest into the new database; those of one stage at the same time.
func (a *attempt) fill(ctx context.Context, r source.Restore, from picked) error {
	a.estimate.Store(from.manifest.StoredBytes())
	back := readback{
		processors: a.cfg.Catalog.Processors, from: from,
		onStored: func() error { return a.stage(ctx, ledger.Deprocessing) },
		onRaw:    func() error { return a.stage(ctx, ledger.Restoring) },
		count:    func(n int) { a.read.Add(int64(n)) },
		countRaw: func(n int) { a.processed.Add(int64(n)) },
	}
	jobs := a.choices(from.manifest.Source).Jobs
	if a.row().Choices.InPlace {
		jobs = 1 // it has one session: the others would only hold their downloads open
	}
	return back.all(ctx, jobs, r.Read)
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
