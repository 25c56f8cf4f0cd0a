package cli

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) PlanRestoreGroup(context.Context, api.RestoreGroup) (api.RestoredGroup, error) {
	return api.RestoredGroup{Group: "shop", Cluster: "c1", Entered: []string{"storage disk"}, Against: []string{}, Storages: []string{"disk"}, Waiting: []string{}, Left: []string{}}, nil
}

func (f *fake) RestoreGroup(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error) {
	out, err := f.PlanRestoreGroup(ctx, r)
	out.Done, out.Backups = true, 1
	return out, err
}

func (f *fake) NoteKit(_ context.Context, k api.Kit) (api.Kit, error) { return k, nil }
