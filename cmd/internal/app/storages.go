package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// storageRecord is what the group keeps of a storage that was added, under storages/<name> in the state cache: from then
// on a root without that very owner object is an error, never an empty storage.
type storageRecord struct {
	Format int    `json:"format"`
	ID     string `json:"id"` // of the owner object
}

const storageFormat = 1

func storageKey(name string) gms.Key { return gms.Key{Component: "storages", Key: name} }

// addStorages checks that each configured storage is the one that the group knows, and adds those that it does not know.
// It returns their ids by name. One that the group knows and that does not answer is no error: its guard asks again before
// each call, and what is wrong with one storage does not stop the work in the others.
func addStorages(ctx context.Context, g *gms.Group, all map[string]storage.Storage, log *slog.Logger) (map[string]string, error) {
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		id, err := addStorage(ctx, g, name, all[name])
		switch {
		case err == nil:
		case id != "" && !misplaced(err) && ctx.Err() == nil:
			log.Warn("app: a storage does not answer; it is asked again when it is needed", "storage", name, "error", err)
		default:
			return ids, fmt.Errorf("storage %s: %w", name, err)
		}
		ids[name] = id
	}
	return ids, nil
}

// misplaced tells whether err says that what is there is not the storage that is meant.
func misplaced(err error) bool {
	return errors.Is(err, storage.ErrForeign) || errors.Is(err, storage.ErrNoOwner) || errors.Is(err, storage.ErrOther) || errors.Is(err, storage.ErrPermanent)
}

// isAhead tells whether err says that what is there has seen a higher number than the group has given out.
func isAhead(err error) bool {
	return errors.Is(err, storage.ErrAhead) || errors.Is(err, ledger.ErrAhead)
}

// addStorage returns the id under which the group knows the storage, also with an error, when it knows one.
func addStorage(ctx context.Context, g *gms.Group, name string, s storage.Storage) (id string, err error) {
	for {
		e, err := g.Cache().Get(ctx, storageKey(name))
		if err == nil {
			return checkStorage(ctx, g, s, e.Value)
		}
		if !errors.Is(err, gms.ErrNotFound) {
			return "", err
		}
		owner, err := storage.Adopt(ctx, s, storage.Adoption{Cluster: g.ClusterID(), High: g.Epoch()})
		if err != nil {
			return "", storageHint(err)
		}
		_, err = g.Cache().Commit(ctx, gms.Txn{
			Conditions: []gms.Condition{gms.VersionIs(storageKey(name), 0)},
			Puts:       []gms.Put{putOf(storageKey(name), storageRecord{Format: storageFormat, ID: owner.Storage})},
		})
		if !errors.Is(err, gms.ErrConflict) {
			return owner.Storage, err
		}
	}
}

// checkStorage compares what is there with what the group recorded when the storage was added.
func checkStorage(ctx context.Context, g *gms.Group, s storage.Storage, value []byte) (id string, err error) {
	var r storageRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return "", fmt.Errorf("read the group's record of it: %w", err)
	}
	_, err = storage.OwnedAs(s, g.ClusterID(), r.ID).Check(ctx)
	return r.ID, storageHint(err)
}

// lookWithin bounds the look at one storage.
const lookWithin = 20 * time.Second

// checkOwners looks at the storages of this node, once it works. What is wrong is logged when it is new, and shown until
// it is well again.
func (a *App) checkOwners(ctx context.Context) {
	a.mu.Lock()
	w, before := a.work, a.strange
	a.mu.Unlock()
	if w == nil {
		return
	}
	found := lookAtStorages(ctx, w.stores())
	ahead, err := w.numbers.look(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.log.Debug("app: the group's numbers were not compared with those that storages have seen", "error", err)
	}
	wrong := make(map[string]error)
	for name, err := range ahead {
		if wrong[name] = err; name != "" && found[name] == nil {
			found[name] = err
		}
	}
	for name, err := range found {
		if misplaced(err) {
			wrong[name] = err
		}
	}
	err = all(wrong)
	if err != nil && (before == nil || before.Error() != err.Error()) {
		a.log.Error("app: a storage or the ledger is not as the group knows it: nothing is begun there", "error", err, "hint", HintOf(err, ""))
	}
	a.mu.Lock()
	a.strange = err
	a.shelves = shelvesOf(found, a.shelves, time.Now())
	a.mu.Unlock()
	if a.cfg.Role != configs.RoleCore {
		return
	}
	if err := a.tellAbilities(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("app: the others do not know what this node can do", "error", err)
	}
}

// strangeStorages is what the last look has found.
func (a *App) strangeStorages() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.strange
}

// lookAtStorages asks each storage whether it still is the one that the group knows; nil for one that is. The guards refuse
// all calls from then on when it is not.
func lookAtStorages(ctx context.Context, all map[string]storage.Storage) map[string]error {
	found := make(map[string]error)
	for name, s := range all {
		guard, ok := storage.As[*storage.Guard](s)
		if !ok {
			continue
		}
		one, cancel := context.WithTimeout(ctx, lookWithin)
		_, err := guard.Check(one)
		cancel()
		found[name] = storageHint(err)
	}
	return found
}

// shelfStrange is the state of a storage that is not the group's: it is none of this node's.
const shelfStrange = "strange"

// shelvesOf is what people are shown of the storages; one that is as it was keeps its Since.
func shelvesOf(found map[string]error, before map[string]api.StorageState, now time.Time) map[string]api.StorageState {
	out := make(map[string]api.StorageState)
	for name, err := range found {
		s := api.StorageState{Name: name, State: "ready"}
		if err != nil {
			s.State, s.Problem, s.Hint = "away", err.Error(), HintOf(err, "")
		}
		if misplaced(err) || isAhead(err) {
			s.State = shelfStrange
		}
		if s.Since = before[name].Since; before[name].State != s.State || s.Since == nil {
			s.Since = optional(now.UTC().Truncate(time.Second))
		}
		out[name] = s
	}
	return out
}

func storageHint(err error) error {
	switch {
	case errors.Is(err, storage.ErrForeign):
		return hint(err, "choose another path: what lies there belongs to another group; if that is no more, see fencepost storage adopt")
	case errors.Is(err, storage.ErrNoOwner):
		return hint(err, "is it mounted? the group has used it before, so an empty folder is not taken for it")
	case errors.Is(err, storage.ErrAhead):
		return hint(err, ledgerdb.Rebase)
	case errors.Is(err, storage.ErrOther):
		return hint(err, "a folder that is not shared by all nodes is a storage of its own on each: give it a name of its own")
	}
	return err
}
