package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// was finds what a change is about to change, for the record of it; nil: there is no such thing yet. A change whose answer
// tells what was before, or that makes something new, has none.
type was func(r *http.Request, want any) (any, error)

// over is r with what it changes.
func (r Route) over(w was) Route {
	r.was = w
	return r
}

type wasKey struct{}

// lookBefore notes what a change is about to change. What cannot be found out stands in no change's way.
func lookBefore(ctx context.Context, r *http.Request, want any) {
	if look, ok := ctx.Value(wasKey{}).(was); ok {
		if v, err := look(r, want); err == nil && v != nil {
			found(ctx, v)
		}
	}
}

// oneOf is the first of a list that is the one that is meant.
func oneOf[A any](list []A, err error, meant func(A) bool) (any, error) {
	i := slices.IndexFunc(list, meant)
	if err != nil || i < 0 {
		return nil, err
	}
	return list[i], nil
}

func (h *handler) wasTask(r *http.Request, _ any) (any, error) {
	return h.Tasks.Task(r.Context(), r.PathValue("id"))
}

func (h *handler) wasBackup(r *http.Request, _ any) (any, error) {
	return h.Backups.Backup(r.Context(), r.PathValue("id"))
}

func (h *handler) wasSchedule(r *http.Request, _ any) (any, error) {
	list, err := h.Recurring.Schedules(r.Context())
	return oneOf(list, err, func(s api.Schedule) bool { return s.Name == r.PathValue("name") })
}

func (h *handler) wasPrune(r *http.Request, _ any) (any, error) {
	return h.Recurring.Prune(r.Context(), r.PathValue("database"))
}

func (h *handler) wasComponent(r *http.Request, _ any) (any, error) {
	list, err := h.Autonomous.Components(r.Context())
	return oneOf(list, err, func(c api.Component) bool { return c.Name == r.PathValue("name") })
}

func (h *handler) wasItem(r *http.Request, want any) (any, error) {
	id := r.PathValue("id")
	if put, ok := want.(api.PutItem); ok {
		id = put.ID
	}
	return h.Autonomous.Item(r.Context(), api.ItemQuery{}, id)
}

func (h *handler) wasClaim(r *http.Request, want any) (any, error) {
	list, err := h.Autonomous.Claims(r.Context())
	name, _ := want.(api.ClaimName)
	return oneOf(list, err, func(c api.Claim) bool { return c.Component == name.Component && c.Item == name.Item })
}

func (h *handler) wasRecovery(r *http.Request, want any) (any, error) {
	list, err := h.Recoveries.Recoveries(r.Context())
	name, ok := want.(api.RecoveryName)
	if drop, is := want.(api.DropRecovery); is && !ok {
		name = drop.RecoveryName
	}
	return oneOf(list, err, func(x api.Recovery) bool { return x.Component == name.Component && x.Run == name.Run })
}

func (h *handler) wasFence(r *http.Request, want any) (any, error) {
	list, err := h.Recoveries.Fences(r.Context())
	name, _ := want.(api.LowerFence)
	return oneOf(list, err, func(x api.Fence) bool { return x.Component == name.Component && x.Node == name.Node })
}

func (h *handler) wasDrain(r *http.Request, want any) (any, error) {
	name, _ := want.(api.NodeName)
	return h.Drains.Drain(r.Context(), name.Node)
}

func (h *handler) wasMember(r *http.Request, want any) (any, error) {
	name, _ := want.(api.NodeName)
	v, err := h.Members.View(r.Context())
	return oneOf(v.Members, err, func(m api.Member) bool { return m.Node == name.Node })
}

func (h *handler) wasUpgrade(r *http.Request, _ any) (any, error) {
	return h.Members.Upgrade(r.Context())
}

func (h *handler) wasKeyring(r *http.Request, _ any) (any, error) {
	return h.Keyring.Keyring(r.Context())
}

func (h *handler) wasLedger(r *http.Request, _ any) (any, error) {
	return h.Ledgers.Ledger(r.Context())
}

// wasState is what a state would change.
func (h *handler) wasState(r *http.Request, want any) (any, error) {
	state, _ := want.(api.RestoreGroup)
	return h.GroupStates.PlanRestoreGroup(r.Context(), state)
}

func (h *handler) wasDatabase(r *http.Request, _ any) (any, error) {
	list, err := h.Settings.Databases(r.Context())
	return oneOf(list, err, func(d api.Database) bool { return d.Name == r.PathValue("name") })
}

// mostInFull is how many changes of settings a record holds with what was before.
const mostInFull = 3

// inShort is what the record of a change holds of a thing: what the change may have changed of it. The whole of a thing may be
// longer than what is recorded.
func inShort(v any) any {
	switch v := v.(type) {
	case api.Backup:
		return map[string]any{"id": v.ID, "database": v.Database, "state": v.State, "pinned": v.Pinned, "accepted": v.Accepted, "note": v.Note}
	case api.Task:
		short := map[string]any{"id": v.ID, "type": v.Type, "state": v.State, "database": v.Database, "backup": v.Backup, "cancel_requested": v.CancelRequested}
		for name, text := range map[string]string{"target": v.Target, "undo": v.Undo} {
			if text != "" {
				short[name] = text
			}
		}
		return short
	case api.AppliedSettings:
		if len(v.Changes) > mostInFull {
			return map[string]any{"version": v.Version, "changed": changesInWords(v.Changes)}
		}
	case api.Schedule:
		return map[string]any{"name": v.Name, "database": v.Database, "disabled": v.Disabled}
	case api.Prune:
		return map[string]any{"database": v.Database, "stops": v.Stops}
	case api.Component:
		return map[string]any{"name": v.Name, "paused": v.Paused}
	case api.Item:
		return map[string]any{"id": v.ID, "type": v.Type, "round_trip": v.RoundTrip, "events": len(v.Events), "quarantined": v.Quarantined}
	case api.Recovery:
		v.Steps = nil
		return v
	case api.Drain:
		return map[string]any{"node": v.Node, "state": v.State, "by": v.By, "claims": v.Claims}
	case api.Member:
		return map[string]any{"node": v.Node, "run": v.Run, "state": v.State, "role": v.Role}
	case api.Upgrade:
		return map[string]any{"protocol": v.Protocol, "next": v.Next}
	case api.Keyring:
		prints, used := []string{}, ""
		for _, k := range v.Keys {
			prints = append(prints, k.Fingerprint)
			if k.InUse {
				used = k.Fingerprint
			}
		}
		return map[string]any{"version": v.Version, "fingerprints": prints, "in_use": used}
	case api.Ledger:
		return map[string]any{"kind": v.Kind, "id": v.ID, "generation": v.Generation, "frozen": v.Frozen}
	case api.RestoredGroup:
		return map[string]any{"done": v.Done, "new": len(v.Entered), "same": v.Same, "against": len(v.Against), "storages": len(v.Storages), "backups": v.Backups, "marks": v.Marks, "left": len(v.Left)}
	case api.Kit:
		return map[string]any{"id": v.ID, "made": v.Made, "by": v.By, "storages": len(v.Places)}
	case api.Database:
		return map[string]any{"name": v.Name, "server": v.Server, "gone": v.Gone}
	}
	return v
}
