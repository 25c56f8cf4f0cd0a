package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// GroupStates has the group take over what a lost one has kept of itself. Who asks has read it, and answers for it.
type GroupStates interface {
	// PlanRestoreGroup tells what RestoreGroup would do; nothing is changed.
	PlanRestoreGroup(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error)
	// RestoreGroup may take as long as reading all storages. The same again does what was left; CodeConflict when the group
	// has settings of its own and r.Over is false: nothing is changed then.
	RestoreGroup(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error)
	// NoteKit keeps what the newest kit leads to.
	NoteKit(ctx context.Context, k api.Kit) (api.Kit, error)
}

func (h *handler) ofGroupStates() []Route {
	named := func(do func(context.Context, api.RestoreGroup) (api.RestoredGroup, error)) func(*http.Request, api.RestoreGroup) (api.RestoredGroup, error) {
		return func(r *http.Request, want api.RestoreGroup) (api.RestoredGroup, error) {
			if err := missing("from", want.From, "object", want.Object, "cluster", want.Cluster, "secrets", string(want.Secrets)); err != nil {
				return api.RestoredGroup{}, err
			}
			return do(r.Context(), want)
		}
	}
	return []Route{
		post(h, api.RoleAdmin, api.PathKit, "kit.note", "Have the group know that a kit was made, to warn when it is out of date.", func(r *http.Request, want api.Kit) (api.Kit, error) {
			return h.GroupStates.NoteKit(r.Context(), want)
		}),
		ask(h, api.RoleAdmin, api.PathGroupRestorePlan, "group.plan", "What taking over the state of a lost group would do; nothing is changed.", named(func(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error) {
			return h.GroupStates.PlanRestoreGroup(ctx, r)
		})),
		post(h, api.RoleAdmin, api.PathGroupRestore, "group.restore", "Have the group take over the state of a lost one: settings, users, pins.", named(func(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error) {
			return h.GroupStates.RestoreGroup(ctx, r)
		})).taking(storageWork).over(h.wasState),
	}
}
