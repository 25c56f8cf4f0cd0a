package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Storages and ledgers remember the highest number of the group that they have seen, so that a group which is made anew
// begins above it, and one that was rolled back is known by having given out less. A storage is told of numbers long before
// they are given out, so that it is written to once for many; how far, the group knows first: what a storage has seen and
// the group has not announced is another's.

// numbersKey keeps what was announced.
func numbersKey() gms.Key { return gms.Key{Component: "numbers", Key: "high"} }

const numbersFormat = 1

// numbersRecord is the highest number that storages may have been told of.
type numbersRecord struct {
	Format int    `json:"format"`
	High   uint64 `json:"high"`
}

// counter is what a raiser asks its group.
type counter interface {
	// Known is the highest number that was given out or announced, confirmed after the call began.
	Known(ctx context.Context) (uint64, error)
	// Announce has the group know a higher one, and returns it: at least want, and above all announced before.
	Announce(ctx context.Context, want uint64) (uint64, error)
}

// groupCounter implements counter.
type groupCounter struct{ g *gms.Group }

func (c groupCounter) Known(ctx context.Context) (uint64, error) {
	n, err := c.g.Numbers(ctx)
	if err != nil {
		return 0, err
	}
	r, _, err := c.announced(ctx)
	return max(n.High(), r.High), err
}

func (c groupCounter) Announce(ctx context.Context, want uint64) (uint64, error) {
	for {
		r, version, err := c.announced(ctx)
		if err != nil {
			return 0, err
		}
		want = max(want, r.High+1)
		_, err = c.g.Cache().Commit(ctx, gms.Txn{
			Conditions: []gms.Condition{gms.VersionIs(numbersKey(), version)},
			Puts:       []gms.Put{putOf(numbersKey(), numbersRecord{Format: numbersFormat, High: want})},
		})
		if !isConflict(err) {
			return want, err
		}
	}
}

func (c groupCounter) announced(ctx context.Context) (r numbersRecord, version uint64, err error) {
	e, err := c.g.Cache().Get(ctx, numbersKey())
	if errors.Is(err, gms.ErrNotFound) {
		return r, 0, nil
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, 0, fmt.Errorf("read the highest number that was announced: %w", err)
	}
	return r, e.Version, nil
}

// raiser keeps the highest number of each storage's owner object above every token that is used, and lets none be used while
// something has seen a higher number than the group has given out.
type raiser struct {
	cluster  func() string
	counter  counter
	storages func() map[string]storage.Storage
	ledger   func(ctx context.Context) error // storage.ErrAhead's counterpart; nil: it cannot be ahead

	mu     sync.Mutex
	raised map[string]uint64 // by storage
	ahead  map[string]error  // by storage, "" for the ledger
}

// raiseAhead is how far above the present token the owner objects are raised: one write for a million grants.
const raiseAhead = 1 << 20

// raise is called with each token before anything is done under it. The first one of a process always raises: a group that
// is rolled back to before it is known by that. One storage that is away does not stop the work in the others.
func (r *raiser) raise(ctx context.Context, token uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []string
	shelves := r.storages()
	for name := range shelves {
		if r.raised[name] < token || r.ahead[name] != nil {
			due = append(due, name)
		}
	}
	if len(due) == 0 && len(r.ahead) == 0 {
		return nil
	}
	away, err := r.compare(ctx, shelves, due)
	if err != nil {
		return err
	}
	if len(r.ahead) > 0 {
		return all(r.ahead)
	}
	if len(away) == len(due) {
		if len(due) == len(shelves) {
			return all(away)
		}
		return nil
	}
	high, err := r.counter.Announce(ctx, token+raiseAhead)
	if err != nil {
		return fmt.Errorf("announce the number %d: %w", token, err)
	}
	for _, name := range due {
		if away[name] != nil {
			continue
		}
		if _, err := storage.RaiseHigh(ctx, shelves[name], r.cluster(), high); err != nil {
			away[name] = err
			continue
		}
		if r.raised == nil {
			r.raised = make(map[string]uint64)
		}
		r.raised[name] = high
	}
	if len(away) == len(shelves) {
		return all(away)
	}
	return nil
}

// look compares again, and returns what is ahead, by storage, "" for the ledger.
func (r *raiser) look(ctx context.Context) (map[string]error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shelves := r.storages()
	_, err := r.compare(ctx, shelves, slices.Collect(maps.Keys(shelves)))
	return maps.Clone(r.ahead), err
}

// compare notes which of some storages, and whether the ledger, have seen a higher number than the group has given out. It
// returns those that do not answer, which stay as they were: nothing can be done there anyway. r.mu is held.
func (r *raiser) compare(ctx context.Context, shelves map[string]storage.Storage, names []string) (away map[string]error, err error) {
	away, owners := make(map[string]error), make(map[string]storage.Owner)
	for _, name := range names {
		one, cancel := context.WithTimeout(ctx, lookWithin)
		owner, err := storage.CheckOwner(one, shelves[name], r.cluster())
		cancel()
		if err != nil {
			away[name] = err
			continue
		}
		owners[name] = owner
	}
	known, err := r.counter.Known(ctx) // after they were read: what the group says covers them
	if err != nil {
		return away, fmt.Errorf("ask the group for its numbers: %w", err)
	}
	ahead := maps.Clone(r.ahead)
	if ahead == nil {
		ahead = make(map[string]error)
	}
	maps.DeleteFunc(ahead, func(name string, _ error) bool { return name != "" && shelves[name] == nil }) // it is none of the node's any more
	maps.DeleteFunc(r.raised, func(name string, _ uint64) bool { return shelves[name] == nil })
	for name, owner := range owners {
		delete(ahead, name)
		if err := storage.CheckHigh(owner, known); err != nil {
			ahead[name] = storageHint(err)
		}
	}
	if r.ledger != nil {
		delete(ahead, "")
		if err := r.ledger(ctx); isAhead(err) {
			ahead[""] = err
		}
	}
	r.ahead = ahead
	return away, nil
}

// all are the errors of storages, and of the ledger, in the order of their names.
func all(by map[string]error) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(by)) {
		err := by[name]
		if name != "" {
			err = fmt.Errorf("storage %s: %w", name, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Rebase implements admin.Operator.
func (p people) Rebase(ctx context.Context, want api.Rebase) (api.Numbers, error) {
	p.a.log.Warn("app: an operator has the group's numbers raised", "above", want.Above, "why", want.Why)
	before, err := p.a.group.Numbers(ctx)
	if err != nil {
		return api.Numbers{}, err
	}
	n, err := p.a.group.Rebase(ctx, want.Above, want.Why)
	if err != nil {
		return api.Numbers{}, err
	}
	p.a.checkOwners(ctx)
	p.a.wakeRunners()
	return api.Numbers{Base: n.Base, Position: n.Position, Token: n.Token, Before: before.High()}, nil
}

// ledgerAhead is the check of a ledger that can be ahead; nil for one that lives in the group's own log.
func ledgerAhead(led any) func(context.Context) error {
	if db, ok := led.(*ledgerdb.Ledger); ok {
		return db.CheckAhead
	}
	return nil
}
