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

// picked is a valid manifest and the storage that it was found in.
type picked struct {
	name     string
	store    storage.Storage
	manifest Manifest
}

// pick finds the valid manifest of a backup with the highest token in the named storages (all of the catalog when none
// is named); of equal ones that in the storage named first. A storage that cannot be read is passed over; only when
// nothing is found elsewhere is it an error.
func pick(ctx context.Context, c Catalog, backup string, names []string) (picked, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.Storages))
	}
	var best picked
	var errs []error
	for _, name := range names {
		st := c.Storages[name]
		if st == nil {
			errs = append(errs, fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable))
			continue
		}
		m, err := newestValid(ctx, st, backup)
		switch {
		case err != nil:
			errs = append(errs, &storageError{name: name, err: err})
		case m != nil && (best.store == nil || m.Token > best.manifest.Token):
			best = picked{name: name, store: st, manifest: *m}
		}
	}
	if best.store != nil {
		return best, nil
	}
	if len(errs) > 0 {
		return picked{}, fmt.Errorf("find backup %s: %w", backup, errors.Join(errs...))
	}
	return picked{}, fmt.Errorf("find backup %s in storages %v: no valid manifest: %w", backup, names, ledger.ErrNotFound)
}

// newestValid returns the manifest with the highest token that is not void; nil when there is none.
func newestValid(ctx context.Context, st storage.Storage, backup string) (*Manifest, error) {
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return nil, err
	}
	tokens := slices.Sorted(maps.Keys(found))
	for _, token := range slices.Backward(tokens) {
		if !slices.Contains(found[token], manifestName) {
			continue
		}
		m, err := readManifest(ctx, st, backup, token)
		if err != nil {
			return nil, err
		}
		if !m.Manifest.Void {
			return &m.Manifest, nil
		}
	}
	return nil, nil
}
