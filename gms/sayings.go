package gms

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// sayings are commands that take effect in the order in which they were added: a withdrawal must not overtake its
// suspicion. Each is repeated until it is committed or the term ends.
type sayings struct {
	added chan struct{} // capacity 1

	mu   sync.Mutex
	list []*wire.Command
}

func newSayings() *sayings { return &sayings{added: make(chan struct{}, 1)} }

// add never blocks.
func (s *sayings) add(c *wire.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, c)
	select {
	case s.added <- struct{}{}:
	default:
	}
}

func (s *sayings) take() []*wire.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// run commits until ctx ends.
func (s *sayings) run(ctx context.Context, commit func(*wire.Command) error) {
	for {
		for _, c := range s.take() {
			for commit(c) != nil {
				if !pause(ctx, nil, 20*time.Millisecond) {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.added:
		}
	}
}
