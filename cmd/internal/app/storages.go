package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/fencepost/fencepost/gms"
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
func addStorages(ctx context.Context, g *gms.Group, all map[string]storage.Storage) error {
	for name, s := range all {
		if err := addStorage(ctx, g, name, s); err != nil {
			return fmt.Errorf("storage %s: %w", name, err)
		}
	}
	return nil
}

func addStorage(ctx context.Context, g *gms.Group, name string, s storage.Storage) error {
	for {
		e, err := g.Cache().Get(ctx, storageKey(name))
		if err == nil {
			return checkStorage(ctx, g, s, e.Value)
		}
		if !errors.Is(err, gms.ErrNotFound) {
			return err
		}
		owner, err := storage.Adopt(ctx, s, storage.Adoption{Cluster: g.ClusterID(), High: g.Epoch()})
		if err != nil {
			return storageHint(err)
		}
		value, err := json.Marshal(storageRecord{Format: storageFormat, ID: owner.Storage})
		if err != nil {
			return err
		}
		_, err = g.Cache().Commit(ctx, gms.Txn{
			Conditions: []gms.Condition{gms.VersionIs(storageKey(name), 0)},
			Puts:       []gms.Put{{Key: storageKey(name), Value: value}},
		})
		if !errors.Is(err, gms.ErrConflict) {
			return err
		}
	}
}

// checkStorage compares what is there with what the group recorded when the storage was added.
func checkStorage(ctx context.Context, g *gms.Group, s storage.Storage, value []byte) error {
	var r storageRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("read the group's record of it: %w", err)
	}
	owner, err := storage.CheckOwner(ctx, s, g.ClusterID())
	if err != nil {
		return storageHint(err)
	}
	if owner.Storage != r.ID {
		return hint(errors.New("it is not the one that the group knows under this name"),
			"a folder that is not shared by all nodes is a storage of its own on each: give it a name of its own")
	}
	return nil
}

func storageHint(err error) error {
	switch {
	case errors.Is(err, storage.ErrForeign):
		return hint(err, "choose another path: what lies there belongs to another group")
	case errors.Is(err, storage.ErrNoOwner):
		return hint(err, "is it mounted? the group has used it before, so an empty folder is not taken for it")
	}
	return err
}

// raiser keeps the highest number of each storage's owner object above every token that is used, so that a group which
// is made anew begins above them. It writes once for many tokens.
type raiser struct {
	cluster  func() string
	storages map[string]storage.Storage

	mu     sync.Mutex
	raised uint64
}

// raiseAhead is how far above the present token the owner objects are raised: one write for a million grants.
const raiseAhead = 1 << 20

func (r *raiser) raise(ctx context.Context, token uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token <= r.raised {
		return nil
	}
	var errs []error
	for name, s := range r.storages {
		if _, err := storage.RaiseHigh(ctx, s, r.cluster(), token+raiseAhead); err != nil {
			errs = append(errs, fmt.Errorf("storage %s: %w", name, err))
		}
	}
	if len(errs) == 0 {
		r.raised = token + raiseAhead
	}
	if len(errs) < len(r.storages) {
		return nil // one that is away does not stop the work in the others
	}
	return errors.Join(errs...)
}
