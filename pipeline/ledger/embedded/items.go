package embedded

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

const itemPrefix = "item/"

// Items are the items of autonomous components, kept beside the tasks. Each item is one value, with a bounded number of
// events; its writes are guarded by the claim where they take effect. What has not changed since it was listed last is not
// decoded again: an index that is asked at each poll lists them all.
type Items struct {
	l    *Ledger
	self func() string

	mu     sync.Mutex
	listed map[string]listed // by key; it is replaced, never changed
}

// listed is an item as it was decoded, with its version.
type listed struct {
	kept    component.Kept
	version uint64
}

var _ component.Items = (*Items)(nil)

// NewItems makes the items of a ledger's Store. self is this node's present run, under which it claims.
func NewItems(l *Ledger, self func() string) *Items { return &Items{l: l, self: self} }

func itemKey(id string) string { return itemPrefix + url.PathEscape(id) }

func (s *Items) read(ctx context.Context, id string) (component.Kept, uint64, error) {
	it, err := s.l.store.Get(ctx, itemKey(id))
	if err != nil {
		return component.Kept{}, 0, unavailable("read item "+id, err)
	}
	if it.Version == 0 {
		return component.Kept{}, 0, fmt.Errorf("read item %s: %w", id, ledger.ErrNotFound)
	}
	k, err := decode[component.Kept](it)
	k.Item.Version = it.Version
	return k, it.Version, err
}

// write replaces an item by what rule makes of it; claim is checked where it takes effect.
func (s *Items) write(ctx context.Context, what, id string, claim *component.Claim, rule func(component.Kept) (component.Kept, error)) (next component.Kept, err error) {
	err = s.l.change(ctx, what+" "+id, func() (Txn, error) {
		stored, version, err := s.read(ctx, id)
		if err != nil {
			return Txn{}, err
		}
		if next, err = rule(stored); err != nil {
			return Txn{}, err
		}
		put, err := encode(itemKey(id), next)
		txn := Txn{Conditions: []Condition{{Kind: VersionIs, Key: put.Key, Version: version}}, Puts: []Put{put}}
		if claim != nil {
			g := ledger.Guard{Run: s.self(), Component: claim.Component, Item: claim.Item, Token: claim.Token}
			txn.Conditions = append(conditions(g), txn.Conditions...)
		}
		return txn, err
	})
	return next, err
}

func fencedIf(fenced bool, c component.Claim) error {
	if fenced {
		return fmt.Errorf("%s with token %d: %w", component.ItemLock(c.Component, c.Item, c.RoundTrip), c.Token, ledger.ErrFenced)
	}
	return nil
}

// Begin implements component.Store.
func (s *Items) Begin(ctx context.Context, c component.Claim, at time.Time) (component.Item, error) {
	next, err := s.write(ctx, "begin on item", c.Item, &c, func(k component.Kept) (component.Kept, error) {
		next, fenced := k.AfterBegin(c, at)
		return next, fencedIf(fenced, c)
	})
	return next.Seen(c.Component), err
}

// Finish implements component.Store.
func (s *Items) Finish(ctx context.Context, c component.Claim, r component.Result) error {
	_, err := s.write(ctx, "finish item", c.Item, &c, func(k component.Kept) (component.Kept, error) {
		next, fenced := k.AfterFinish(c, r)
		return next, fencedIf(fenced, c)
	})
	return err
}

// Query implements component.Index.
func (s *Items) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	all, err := s.All(ctx, q.Component, "")
	if err != nil {
		return nil, err
	}
	return component.Answer(all, q), nil
}

// Put implements component.Items.
func (s *Items) Put(ctx context.Context, it component.Item, change bool) (component.Item, error) {
	if err := component.CheckItem(it); err != nil {
		return component.Item{}, err
	}
	now := s.l.now().UTC()
	if it.ChangedAt.IsZero() {
		it.ChangedAt = now
	}
	put, err := encode(itemKey(it.ID), component.Kept{Item: it})
	if err != nil {
		return component.Item{}, err
	}
	var after component.Kept
	err = s.l.change(ctx, "put item "+it.ID, func() (Txn, error) {
		stored, err := s.l.store.Get(ctx, put.Key)
		if err != nil {
			return Txn{}, unavailable("read item "+it.ID, err)
		}
		after = component.Kept{Item: it}
		p := put
		if stored.Version != 0 {
			if after, err = decode[component.Kept](stored); err != nil || !change {
				return Txn{}, err
			}
			after = after.AfterPut(it)
			if p, err = encode(put.Key, after); err != nil {
				return Txn{}, err
			}
		}
		return Txn{Conditions: []Condition{{Kind: VersionIs, Key: p.Key, Version: stored.Version}}, Puts: []Put{p}}, nil
	})
	return after.Seen(""), err
}

// Edit implements component.Items.
func (s *Items) Edit(ctx context.Context, id string, edit func(component.Item) (component.Item, error)) (component.Item, error) {
	next, err := s.write(ctx, "edit item", id, nil, func(k component.Kept) (component.Kept, error) {
		it, err := edit(k.Seen(""))
		if err == nil {
			err = component.CheckItem(component.Item{ID: k.Item.ID, Type: k.Item.Type, Data: it.Data})
		}
		k.Item.Data = it.Data
		k.Edits++
		return k, err
	})
	return next.Seen(""), err
}

// Get implements component.Items.
func (s *Items) Get(ctx context.Context, name, id string) (component.Item, error) {
	k, _, err := s.read(ctx, id)
	return k.Seen(name), err
}

// All implements component.Items.
func (s *Items) All(ctx context.Context, name, itemType string) ([]component.Item, error) {
	list, err := s.l.store.List(ctx, itemPrefix)
	if err != nil {
		return nil, unavailable("list items", err)
	}
	s.mu.Lock()
	before := s.listed
	s.mu.Unlock()
	now := make(map[string]listed, len(list))
	var out []component.Item
	for _, it := range list {
		l, ok := before[it.Key]
		if !ok || l.version != it.Version {
			k, err := decode[component.Kept](it)
			if err != nil {
				return nil, err
			}
			k.Item.Version = it.Version
			l = listed{k, it.Version}
		}
		now[it.Key] = l
		if itemType == "" || l.kept.Item.Type == itemType {
			out = append(out, l.kept.Seen(name))
		}
	}
	s.mu.Lock()
	s.listed = now
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b component.Item) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Drop implements component.Items.
func (s *Items) Drop(ctx context.Context, id string) error {
	return s.l.change(ctx, "drop item "+id, func() (Txn, error) { return Txn{Deletes: []string{itemKey(id)}}, nil })
}

// Append implements component.Items.
func (s *Items) Append(ctx context.Context, id string, e component.Event) error {
	if err := component.CheckEvent(e); err != nil {
		return err
	}
	_, err := s.write(ctx, "append to item", id, nil, func(k component.Kept) (component.Kept, error) {
		e.Token = 0
		k.Item.Events = component.Bounded(append(slices.Clone(k.Item.Events), e))
		return k, nil
	})
	return err
}

// Forget implements component.Items.
func (s *Items) Forget(ctx context.Context, id, eventType string) (n int, err error) {
	_, err = s.write(ctx, "forget of item", id, nil, func(k component.Kept) (component.Kept, error) {
		var next component.Kept
		next, n = k.AfterForget(eventType)
		return next, nil
	})
	return n, err
}
