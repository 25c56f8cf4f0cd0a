package components

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/protocol"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
)

// LedgerComponent is the component of the state cache under which an embedded ledger keeps its rows.
const LedgerComponent = "ledger"

// Store is the state cache of a group as an embedded ledger sees it: its conditions are checked at the entry of the log that
// would make the write. While the group keeps its ledger elsewhere, or moves it, all but Watch is ErrLedgerElsewhere: a host
// that has not heard of it writes nothing that nobody would read.
func Store(g *gms.Group) embedded.Store { return cacheStore{g: g, bound: true} }

// BareStore is Store for whoever moves the ledger: it reads and writes whatever the group says of it.
func BareStore(g *gms.Group) embedded.Store { return cacheStore{g: g} }

type cacheStore struct {
	g     *gms.Group
	bound bool // the group's lineage is looked at, and is a condition of each commit
}

func ledgerKey(key string) gms.Key { return gms.Key{Component: LedgerComponent, Key: key} }

func itemOf(e gms.Entry) embedded.Item {
	return embedded.Item{Key: e.Key.Key, Value: e.Value, Version: e.Version}
}

func (s cacheStore) Get(ctx context.Context, key string) (embedded.Item, error) {
	if _, err := s.lineage(ctx, false); err != nil {
		return embedded.Item{}, err
	}
	e, err := s.g.Cache().Get(ctx, ledgerKey(key))
	if errors.Is(err, gms.ErrNotFound) {
		return embedded.Item{Key: key}, nil
	}
	return itemOf(e), err
}

func (s cacheStore) List(ctx context.Context, prefix string) ([]embedded.Item, error) {
	if _, err := s.lineage(ctx, false); err != nil {
		return nil, err
	}
	list, err := s.g.Cache().List(ctx, LedgerComponent, "", prefix)
	if err != nil {
		return nil, err
	}
	items := make([]embedded.Item, len(list))
	for i, e := range list {
		items[i] = itemOf(e)
	}
	return items, nil
}

func (s cacheStore) Commit(ctx context.Context, t embedded.Txn) error {
	for asked := false; ; asked = true {
		version, err := s.lineage(ctx, asked)
		if err != nil {
			return err
		}
		again, err := s.commit(ctx, t, version)
		if !again || asked {
			return err
		}
	}
}

// lineage is the version of the group's record of its ledger, as this node knows it or as the group says when it is asked.
func (s cacheStore) lineage(ctx context.Context, ask bool) (version uint64, err error) {
	if !s.bound {
		return 0, nil
	}
	l, version, err := LocalLineage(s.g)
	if ask {
		l, version, err = ReadLineage(ctx, s.g)
	}
	if err != nil {
		return 0, err
	}
	return version, l.elsewhere()
}

// commit makes a transaction if the lineage still is of that version; again: it is not.
func (s cacheStore) commit(ctx context.Context, t embedded.Txn, version uint64) (again bool, err error) {
	txn := gms.Txn{}
	if s.bound {
		txn.Conditions = append(txn.Conditions, gms.VersionIs(lineageKey(), version))
	}
	own := len(txn.Conditions)
	for _, c := range t.Conditions {
		condition, err := conditionOf(c)
		if err != nil {
			return false, err
		}
		txn.Conditions = append(txn.Conditions, condition)
	}
	for _, p := range t.Puts {
		txn.Puts = append(txn.Puts, gms.Put{Key: ledgerKey(p.Key), Value: p.Value, Protocol: protocol.Needs(p.Row)})
	}
	for _, k := range t.Deletes {
		txn.Deletes = append(txn.Deletes, ledgerKey(k))
	}
	_, err = s.g.Cache().Commit(ctx, txn)
	var failed *gms.ConditionError
	switch {
	case errors.Is(err, gms.ErrTooLarge):
		return false, fmt.Errorf("%w: %w", embedded.ErrFull, err)
	case errors.As(err, &failed) && failed.Index < own:
		return true, fmt.Errorf("%w: %w", ErrLedgerElsewhere, err)
	case errors.As(err, &failed):
		return false, &embedded.ConditionError{Condition: t.Conditions[failed.Index-own]}
	case errors.Is(err, gms.ErrRunClosed):
		// The transaction was sent by a run that is closed. A guarded write of that run is fenced; any other may be
		// made again by the next run.
		_, self := s.g.Self()
		for _, c := range t.Conditions {
			if c.Kind == embedded.RunOpen && c.Run != self {
				return false, &embedded.ConditionError{Condition: c}
			}
		}
	}
	return false, err
}

func conditionOf(c embedded.Condition) (gms.Condition, error) {
	switch c.Kind {
	case embedded.VersionIs:
		return gms.VersionIs(ledgerKey(c.Key), c.Version), nil
	case embedded.RunOpen:
		return gms.RunOpen(c.Run), nil
	case embedded.ClaimHeld:
		return gms.ClaimHeld(c.Component, c.Item, c.Run, c.Token), nil
	case embedded.FenceHeld:
		return gms.FenceHeld(c.Component, c.Node, c.Run, c.Token), nil
	}
	return gms.Condition{}, fmt.Errorf("ledger condition %s is not known to the state cache", c)
}

// Watch looks at the newest version below prefix whenever the ledger is written to; it reads memory only.
func (s cacheStore) Watch(ctx context.Context, prefix string) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() { // ends with ctx
		var seen fingerprint
		for {
			changed := s.g.Cache().Written(LedgerComponent)
			if now := s.fingerprint(prefix); now != seen {
				seen = now
				select {
				case hints <- struct{}{}:
				default:
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	return hints
}

// fingerprint changes whenever an entry is put or deleted.
type fingerprint struct {
	entries int
	newest  uint64
}

func (s cacheStore) fingerprint(prefix string) fingerprint {
	var f fingerprint
	for _, e := range s.g.Cache().ListLocal(LedgerComponent, "", prefix) {
		f.entries++
		f.newest = max(f.newest, e.Version)
	}
	return f
}
