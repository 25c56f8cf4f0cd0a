package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// tombstoneFor is how long a tombstone stays: longer than any upload session lives, so that no late owner can commit
// after it.
const tombstoneFor = 8 * 24 * time.Hour

// Sweep removes what cannot count any more (PROTOCOL.md 28): under each backup that has an entry, the data of every
// token below the entry's, and of gone ones the entry's too, and tombstones of such tokens that are older than eight
// days; and in each storage uploads that were begun that long ago. It needs no claim: tokens of entries only grow, so
// what it removes is garbage for good. Backups without an entry are not touched. The component sweep does it storage by
// storage (Housekeeper); it may be called at any time. In an append-only storage it removes nothing but unfinished uploads.
func (w *Worker) Sweep(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.conf().Catalog.Storages)) {
		errs = append(errs, w.sweepStorage(ctx, name))
	}
	return errors.Join(errs...)
}

// sweepStorage sweeps one storage.
func (w *Worker) sweepStorage(ctx context.Context, name string) error {
	var entries []ledger.Backup
	for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupCompleted, ledger.BackupGone} {
		list, err := w.cfg.Ledger.Backups(ctx, ledger.BackupFilter{State: s})
		if err != nil {
			return fmt.Errorf("sweep storages: %w", err)
		}
		entries = append(entries, list...)
	}
	st := w.conf().Catalog.Storages[name]
	var errs []error
	for _, b := range entries {
		if err := w.sweepBackup(ctx, st, b); err != nil {
			errs = append(errs, fmt.Errorf("sweep backup %s: %w", b.ID, &storageError{name: name, err: err}))
			break // the storage is away: the next sweep goes on
		}
	}
	if err := w.sweepUploads(ctx, st); err != nil {
		errs = append(errs, fmt.Errorf("sweep uploads: %w", &storageError{name: name, err: err}))
	}
	return errors.Join(errs...)
}

// sweepUploads removes what uploads of dead processes have left where no listing shows it.
func (w *Worker) sweepUploads(ctx context.Context, st storage.Storage) error {
	j, ok := storage.As[storage.Janitor](st)
	if !ok {
		return nil
	}
	n, err := j.AbortUploads(ctx, w.cfg.Now().Add(-tombstoneFor))
	if n > 0 {
		w.cfg.Logger.InfoContext(ctx, "removed unfinished uploads", "uploads", n)
	}
	return err
}

func (w *Worker) sweepBackup(ctx context.Context, st storage.Storage, b ledger.Backup) error {
	bound := b.Token
	if b.State == ledger.BackupGone {
		bound++
	}
	tomb := func(token uint64) Manifest {
		return w.cfg.Signer.sign(Tombstone(b.ID, token, "swept: a later attempt counts", w.cfg.Now().UTC()))
	}
	switch {
	case bound == 0:
		return nil
	case storage.Keeps(ctx, st):
		return voidManifests(ctx, st, b.ID, bound-1, tomb)
	}
	if err := revertBelow(ctx, st, b.ID, bound, tomb); err != nil {
		return err
	}
	found, err := attemptsOf(ctx, st, b.ID)
	if err != nil {
		return err
	}
	for token := range found {
		if token >= bound {
			continue
		}
		m, err := readManifest(ctx, st, b.ID, token)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if m.Manifest.Void && w.cfg.Now().Sub(m.Manifest.Created) > tombstoneFor {
			if err := st.Delete(ctx, ManifestPath(b.ID, token)); err != nil {
				return fmt.Errorf("delete tombstone: %w", err)
			}
		}
	}
	return nil
}
