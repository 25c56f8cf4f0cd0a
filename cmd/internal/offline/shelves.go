package offline

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Shelves are the storages of a configuration that can be reached from here, looked at as one.
type Shelves struct {
	Away    []ShelfAway // those that cannot
	config  *configs.Config
	open    []*Shelf
	catalog pipeline.Catalog
}

// ShelfAway is a storage that cannot be looked at just now.
type ShelfAway struct {
	Storage string `json:"storage"`
	Problem string `json:"problem"`
}

// OpenShelves opens the named storages, which must be there, or all that are when none is named. o.Storage counts for nothing.
// The caller closes it.
func OpenShelves(ctx context.Context, o ShelfOptions, names []string) (*Shelves, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	s := &Shelves{config: c, catalog: pipeline.Catalog{Storages: map[string]storage.Storage{}}}
	all := names
	for _, section := range c.Storages {
		if len(names) == 0 && section.Kind != "mem" { // which is in a node's memory
			all = append(all, section.Name)
		}
	}
	var away []error
	for _, name := range all {
		o.Storage = name
		shelf, err := OpenShelf(o)
		if err == nil {
			s.open = append(s.open, shelf)
			err = shelf.there(ctx)
		}
		if err != nil {
			away = append(away, err)
			s.Away = append(s.Away, ShelfAway{name, err.Error()})
			continue
		}
		s.catalog.Processors, s.catalog.Trust = shelf.catalog.Processors, shelf.catalog.Trust
		s.catalog.Storages[name] = shelf.catalog.Storages[name]
	}
	switch {
	case len(all) == 0:
		err = errors.New(o.Config + " names no storage that outlives its node")
	case len(s.catalog.Storages) == 0 || len(names) > 0 && len(away) > 0:
		err = errors.Join(away...)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes them.
func (s *Shelves) Close() error {
	var errs []error
	for _, shelf := range slices.Backward(s.open) {
		errs = append(errs, shelf.Close())
	}
	return errors.Join(errs...)
}

// list are the whole backups in the storages that are there.
func (s *Shelves) list(ctx context.Context) ([]ShelvedBackup, error) {
	list, _, err := pipeline.Shelved(ctx, s.catalog, nil)
	return list, err
}

// globals reads what a backup holds of its whole server.
func (s *Shelves) globals(ctx context.Context, backup string) (string, error) {
	return readGlobals(ctx, s.catalog, backup)
}
