package embeddedtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

// Store implements embedded.Store and ledgertest.Group in memory. Make it with NewStore. Safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	items    map[string]embedded.Item
	version  uint64
	token    uint64
	runs     map[string]bool
	claims   map[[2]string]grant // component, item
	fences   map[[3]string]grant // component, node, dead run
	watchers map[chan struct{}]string
	down     bool
	lose     int
	hook     func(context.Context, embedded.Txn)
	room     int // bytes of all values; 0 = no bound
}

// grant is a held claim or fence.
type grant struct {
	run   string
	token uint64
}

var (
	_ embedded.Store   = (*Store)(nil)
	_ ledgertest.Group = (*Store)(nil)
)

// NewStore returns an empty Store. Its tokens begin above 1,000.
func NewStore() *Store {
	return &Store{
		items: map[string]embedded.Item{}, runs: map[string]bool{}, claims: map[[2]string]grant{},
		fences: map[[3]string]grant{}, watchers: map[chan struct{}]string{}, token: 1000,
	}
}

// SetDown makes every call fail with ledger.ErrUnavailable, having changed nothing, until it is set back.
func (s *Store) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// LoseAnswers lets the next n commits take effect and answer ledger.ErrUnavailable.
func (s *Store) LoseAnswers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = n
}

// BeforeCommit sets a hook that each Commit calls, without a lock held, before it is applied; nil takes it away.
func (s *Store) BeforeCommit(hook func(context.Context, embedded.Txn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Get implements embedded.Store.
func (s *Store) Get(ctx context.Context, key string) (embedded.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return embedded.Item{}, err
	}
	it, ok := s.items[key]
	if !ok {
		return embedded.Item{Key: key}, nil
	}
	return it, nil
}

// List implements embedded.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]embedded.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	var out []embedded.Item
	for key, it := range s.items {
		if strings.HasPrefix(key, prefix) {
			out = append(out, it)
		}
	}
	slices.SortFunc(out, func(a, b embedded.Item) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Commit implements embedded.Store.
func (s *Store) Commit(ctx context.Context, t embedded.Txn) error {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook(ctx, t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return err
	}
	for _, c := range t.Conditions {
		if !s.holds(c) {
			return &embedded.ConditionError{Condition: c}
		}
	}
	for _, p := range t.Puts {
		if len(p.Value) > embedded.MaxValue {
			return fmt.Errorf("commit %s: %d bytes, at most %d fit", p.Key, len(p.Value), embedded.MaxValue)
		}
	}
	if !s.fits(t) {
		return fmt.Errorf("commit: %w", embedded.ErrFull)
	}
	s.apply(t)
	if s.lose > 0 {
		s.lose--
		return fmt.Errorf("commit: answer lost: %w", ledger.ErrUnavailable)
	}
	return nil
}

// SetRoom bounds the bytes of all values; 0 takes the bound away.
func (s *Store) SetRoom(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = bytes
}

// fits tells whether t leaves the values within their bound, or at least makes them no more. s.mu is held.
func (s *Store) fits(t embedded.Txn) bool {
	size, grows := 0, 0
	for _, it := range s.items {
		size += len(it.Value)
	}
	for _, p := range t.Puts {
		grows += len(p.Value) - len(s.items[p.Key].Value)
	}
	for _, key := range t.Deletes {
		grows -= len(s.items[key].Value)
	}
	return s.room == 0 || grows <= 0 || size+grows <= s.room
}

// apply carries t out. s.mu is held.
func (s *Store) apply(t embedded.Txn) {
	if len(t.Puts) == 0 && len(t.Deletes) == 0 {
		return
	}
	s.version++
	for _, p := range t.Puts {
		s.items[p.Key] = embedded.Item{Key: p.Key, Value: slices.Clone(p.Value), Version: s.version}
	}
	for _, key := range t.Deletes {
		delete(s.items, key)
	}
	for ch, prefix := range s.watchers {
		touched := slices.ContainsFunc(t.Puts, func(p embedded.Put) bool { return strings.HasPrefix(p.Key, prefix) }) ||
			slices.ContainsFunc(t.Deletes, func(k string) bool { return strings.HasPrefix(k, prefix) })
		if touched {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// holds checks one condition. s.mu is held.
func (s *Store) holds(c embedded.Condition) bool {
	switch c.Kind {
	case embedded.VersionIs:
		return s.items[c.Key].Version == c.Version
	case embedded.RunOpen:
		return s.runs[c.Run]
	case embedded.ClaimHeld:
		g, ok := s.claims[[2]string{c.Component, c.Item}]
		return ok && s.runs[g.run] && g == grant{run: c.Run, token: c.Token}
	case embedded.FenceHeld:
		g, ok := s.fences[[3]string{c.Component, c.Node, c.Run}]
		return ok && s.runs[g.run] && g.token == c.Token
	}
	return false
}

// reach answers for the faults. s.mu is held.
func (s *Store) reach(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reach store: %w", err)
	}
	if s.down {
		return fmt.Errorf("reach store: %w", ledger.ErrUnavailable)
	}
	return nil
}

// Watch implements embedded.Store.
func (s *Store) Watch(ctx context.Context, prefix string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[ch] = prefix
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
	})
	return ch
}
