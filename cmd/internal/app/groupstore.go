package app

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/gms"
)

// keptComponent is the component of the state cache under which accounts, the audit trail and what else belongs to the group
// and to no backup are kept.
const keptComponent = "kept"

// groupStore is the state cache as a kept.Store.
type groupStore struct{ a *App }

func keptKey(key string) gms.Key { return gms.Key{Component: keptComponent, Key: key} }

func recordOf(e gms.Entry) kept.Record {
	return kept.Record{Key: e.Key.Key, Value: e.Value, Version: e.Version}
}

// joined is why nothing can be kept yet.
func (s groupStore) joined() error {
	if _, run := s.a.group.Self(); run == "" {
		return notJoined(s.a.stateNow())
	}
	return nil
}

func notJoined(state string) error {
	return &api.Error{Code: api.CodeUnavailable, Message: "this node has not joined its group yet (it is " + state + ")", Hint: "see `fencepost status`"}
}

// Get implements kept.Store.
func (s groupStore) Get(ctx context.Context, key string) (kept.Record, error) {
	if err := s.joined(); err != nil {
		return kept.Record{}, err
	}
	e, err := s.a.group.Cache().Get(ctx, keptKey(key))
	if errors.Is(err, gms.ErrNotFound) {
		return kept.Record{Key: key}, nil
	}
	return recordOf(e), err
}

// Local implements kept.Store.
func (s groupStore) Local(key string) kept.Record {
	e, err := s.a.group.Cache().GetLocal(keptKey(key))
	if err != nil { // there is none
		return kept.Record{Key: key}
	}
	return recordOf(e)
}

// localBelow are the records whose keys begin with prefix, as this node knows them now.
func (s groupStore) localBelow(prefix string) []kept.Record {
	var list []kept.Record
	for _, e := range s.a.group.Cache().ListLocal(keptComponent, "", prefix) {
		list = append(list, recordOf(e))
	}
	return list
}

// List implements kept.Store.
func (s groupStore) List(ctx context.Context, prefix string) ([]kept.Record, error) {
	if err := s.joined(); err != nil {
		return nil, err
	}
	entries, err := s.a.group.Cache().List(ctx, keptComponent, "", prefix)
	if err != nil {
		return nil, err
	}
	list := make([]kept.Record, len(entries))
	for i, e := range entries {
		list[i] = recordOf(e)
	}
	return list, nil
}

// Commit implements kept.Store.
func (s groupStore) Commit(ctx context.Context, changes ...kept.Change) error {
	if err := s.joined(); err != nil {
		return err
	}
	var t gms.Txn
	for _, c := range changes {
		key := keptKey(c.Key)
		t.Conditions = append(t.Conditions, gms.VersionIs(key, c.Version))
		if c.Gone {
			t.Deletes = append(t.Deletes, key)
		} else {
			t.Puts = append(t.Puts, gms.Put{Key: key, Value: c.Value, Protocol: c.Protocol})
		}
	}
	_, err := s.a.group.Cache().Commit(ctx, t)
	if errors.Is(err, gms.ErrConflict) {
		return kept.ErrConflict
	}
	return err
}

// putOf is a record of the state cache, as JSON, that no program reads which does not understand all of it.
func putOf(key gms.Key, row any) gms.Put {
	c := kept.Put(key.Key, row, 0)
	return gms.Put{Key: key, Value: c.Value, Protocol: c.Protocol}
}
