package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// CheckStorage implements admin.Storages.
func (j jobs) CheckStorage(ctx context.Context, name string, r api.CheckStorage) ([]api.Finding, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	found, err := w.worker.CheckStorage(ctx, name, r.Fix)
	list := []api.Finding{}
	for _, f := range found {
		list = append(list, api.Finding{Storage: f.Storage, Kind: f.Kind, Backup: f.Backup, Token: f.Token, Object: f.Object,
			Problem: f.Problem, Fixable: f.Fixable, Fixed: f.Fixed})
	}
	return list, err
}

// RebuildCatalog implements admin.Storages.
func (j jobs) RebuildCatalog(ctx context.Context, r api.RebuildCatalog) ([]api.Backup, error) {
	w, err := j.now()
	if err != nil {
		return nil, err
	}
	made, err := w.worker.RebuildCatalog(ctx, r.Storages)
	list := []api.Backup{}
	for _, b := range made {
		list = append(list, backupOf(b))
		j.a.markCame(ctx, b.ID)
	}
	return list, err
}
