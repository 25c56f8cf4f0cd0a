package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
// nothing is found elsewhere is it an error. A manifest that the catalog does not trust is passed over likewise.
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
		m, err := newestValid(ctx, st, backup, c.trusts)
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
	return picked{}, &notStored{backup: backup, names: names}
}

// notStored: none of some storages holds a whole backup of an id. It is ledger.ErrNotFound.
type notStored struct {
	backup string
	names  []string
}

func (e *notStored) Error() string {
	return fmt.Sprintf("no whole backup %q lies in storage %s", e.backup, strings.Join(e.names, ", "))
}

func (e *notStored) Unwrap() error { return ledger.ErrNotFound }

// Hint is what a person can do.
func (e *notStored) Hint() string { return "list what lies there to find its id" }

// newestValid returns the manifest with the highest token that is not void and that is trusted; nil when there is none. If
// there are only others, it says why they are not trusted.
func newestValid(ctx context.Context, st storage.Storage, backup string, trusts func(context.Context, Manifest) error) (*Manifest, error) {
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return nil, err
	}
	tokens := slices.Sorted(maps.Keys(found))
	var foreign error
	for _, token := range slices.Backward(tokens) {
		if !slices.Contains(found[token], manifestName) {
			continue
		}
		m, err := readManifest(ctx, st, backup, token)
		if err != nil {
			return nil, err
		}
		if m.Manifest.Void {
			continue
		}
		err = trusts(ctx, m.Manifest)
		if err == nil {
			return &m.Manifest, nil
		}
		if foreign == nil || !errors.Is(err, ErrForeign) {
			foreign = err
		}
	}
	return nil, foreign
}
