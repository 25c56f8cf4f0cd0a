package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// CheckStorage compares what lies in a storage with its manifests and with the ledger, object by object; contents are not
// read. With fix it removes what no manifest and no entry counts, of attempts that nobody is at work on any more: a tombstone
// first, so that a late owner is refused, then the data; and tombstones that have had their time. It needs no claim, like
// Sweep. Findings are complete when the error is nil.
func (w *Worker) CheckStorage(ctx context.Context, name string, fix bool) ([]Finding, error) {
	cat := w.conf().Catalog
	st := cat.Storages[name]
	if st == nil {
		return nil, unknown("storage", "storage", name, cat.Storages)
	}
	inv, err := cat.look(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("check storage: %w", err)
	}
	k, err := w.catalogued(ctx)
	if err != nil {
		return nil, err
	}
	findings := diagnose(name, inv, k, w.cfg.Now())
	if storage.Keeps(ctx, st) {
		return keeping(findings), nil
	}
	if !fix {
		return findings, nil
	}
	var errs []error
	for i, f := range findings {
		if !f.Fixable {
			continue
		}
		if err := w.fix(ctx, st, f); err != nil {
			errs = append(errs, fmt.Errorf("fix backup %s, token %d: %w", f.Backup, f.Token, &storageError{name: name, err: err}))
			continue
		}
		findings[i].Fixed = true
	}
	return findings, errors.Join(errs...)
}

// fix removes what a finding is about.
func (w *Worker) fix(ctx context.Context, st storage.Storage, f Finding) error {
	if f.Kind == FoundTombstone {
		return st.Delete(ctx, ManifestPath(f.Backup, f.Token))
	}
	real, err := entomb(ctx, st, w.cfg.Signer.sign(Tombstone(f.Backup, f.Token, "never committed; removed by a check of the storage", w.cfg.Now().UTC())))
	switch {
	case err != nil:
		return err
	case real != nil:
		return errors.New("it was committed meanwhile")
	}
	return removeData(ctx, st, f.Backup, f.Token)
}

// RebuildCatalog finds whole backups in the named storages (all of the catalog when none is named) that the ledger does not
// know, and has it know them. Only manifests that are trusted count. It returns the entries that it made.
func (w *Worker) RebuildCatalog(ctx context.Context, names []string) ([]ledger.Backup, error) {
	cat := w.conf().Catalog
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(cat.Storages))
	}
	all := map[string]inventory{}
	for _, name := range names {
		if cat.Storages[name] == nil {
			return nil, unknown("storage", "storage", name, cat.Storages)
		}
		inv, err := cat.look(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("rebuild the catalog: %w", err)
		}
		all[name] = inv
	}
	k, err := w.catalogued(ctx)
	if err != nil {
		return nil, err
	}
	var made []ledger.Backup
	for _, b := range rebuilt(all, k) {
		if w.cfg.Marked != nil {
			b.Mark, _ = w.cfg.Marked(b.ID)
		}
		switch err := w.cfg.Ledger.ImportBackup(ctx, b); {
		case err == nil:
			made = append(made, b)
		case !errors.Is(err, ledger.ErrExists):
			return made, err
		}
	}
	return made, nil
}

// catalogued reads all that the ledger knows.
func (w *Worker) catalogued(ctx context.Context) (catalogued, error) {
	k := catalogued{entries: map[string]ledger.Backup{}}
	for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupCompleted, ledger.BackupDeleting, ledger.BackupGone} {
		list, err := w.cfg.Ledger.Backups(ctx, ledger.BackupFilter{State: s})
		if err != nil {
			return k, fmt.Errorf("read the ledger: %w", err)
		}
		for _, b := range list {
			k.entries[b.ID] = b
		}
	}
	var err error
	if k.active, err = w.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true}); err != nil {
		return k, fmt.Errorf("read the ledger: %w", err)
	}
	return k, nil
}

// look is the inventory of a storage that still is the very one: its owner is asked for now, whatever was seen before.
func (c Catalog) look(ctx context.Context, name string) (inv inventory, err error) {
	st := c.Storages[name]
	if g, ok := storage.As[*storage.Guard](st); ok {
		_, err = g.Check(ctx)
	}
	if err == nil {
		inv, err = c.inventory(ctx, st)
	}
	if err != nil {
		return inv, &lookError{storageError{name: name, err: err}}
	}
	return inv, nil
}

// lookError is a storage that could not be looked through.
type lookError struct{ storageError }

// Hint is what a person can do.
func (e *lookError) Hint() string {
	return "fencepost storage test " + e.name + " --config FILE tries it, on that node and without the daemon"
}

// inventory lists a storage and reads its manifests.
func (c Catalog) inventory(ctx context.Context, st storage.Storage) (inventory, error) {
	inv := inventory{attempts: map[string]map[uint64]*found{}}
	for info, err := range st.List(ctx, "") {
		if err != nil {
			return inv, err
		}
		backup, token, part, ok := ParsePath(info.Name)
		if archived(info.Name) {
			continue
		}
		if !ok {
			inv.strays = append(inv.strays, info.Name)
			continue
		}
		if inv.attempts[backup] == nil {
			inv.attempts[backup] = map[uint64]*found{}
		}
		f := inv.attempts[backup][token]
		if f == nil {
			f = &found{parts: map[string]int64{}}
			inv.attempts[backup][token] = f
		}
		if part != manifestName {
			f.parts[part] = info.Size
			continue
		}
		switch m, err := readManifest(ctx, st, backup, token); {
		case errors.Is(err, storage.ErrNotFound): // removed meanwhile
		case errors.Is(err, errManifest):
			f.broken = err
		case err != nil:
			return inv, err
		default:
			f.manifest = &m.Manifest
			if !m.Manifest.Void {
				if f.foreign = c.trusts(ctx, m.Manifest); f.foreign != nil && !errors.Is(f.foreign, ErrForeign) {
					return inv, f.foreign
				}
			}
		}
	}
	return inv, nil
}
