package embeddedtest

import (
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

// OpenRun implements ledgertest.Group.
func (s *Store) OpenRun(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run] = true
}

// CloseRun implements ledgertest.Group.
func (s *Store) CloseRun(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run] = false
}

// Claim implements ledgertest.Group.
func (s *Store) Claim(component, item, run string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{component, item}
	if g, ok := s.claims[key]; ok {
		return 0, fmt.Errorf("claim %s/%s of run %s: %w", component, item, g.run, ledgertest.ErrHeld)
	}
	if !s.runs[run] {
		return 0, fmt.Errorf("claim %s/%s: run %s is not open", component, item, run)
	}
	s.token++
	s.claims[key] = grant{run: run, token: s.token}
	return s.token, nil
}

// Adopt implements ledgertest.Group.
func (s *Store) Adopt(component, item, run string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{component, item}
	g, ok := s.claims[key]
	if !ok {
		return 0, fmt.Errorf("adopt %s/%s: nobody held it", component, item)
	}
	if s.runs[g.run] {
		return 0, fmt.Errorf("adopt %s/%s of run %s: %w", component, item, g.run, ledgertest.ErrHeld)
	}
	s.token++
	s.claims[key] = grant{run: run, token: s.token}
	return s.token, nil
}

// Release ends a claim that run holds with that token, as Complete and Abandon of a locker do; false when it does not,
// or run is closed (its claim is an orphan then).
func (s *Store) Release(component, item, run string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{component, item}
	if !s.runs[run] || s.claims[key] != (grant{run: run, token: token}) {
		return false
	}
	delete(s.claims, key)
	return true
}

// Claims tells how many claims there are, orphans included.
func (s *Store) Claims() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims)
}

// RaiseFence implements ledgertest.Group.
func (s *Store) RaiseFence(component, node, dead, holder string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token++
	s.fences[[3]string{component, node, dead}] = grant{run: holder, token: s.token}
	return s.token
}

// LowerFence takes a fence away.
func (s *Store) LowerFence(component, node, dead string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.fences, [3]string{component, node, dead})
}
