package app

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// times is when this node saw things happen, by its own clock: positions order events, and people want to know how long
// ago. What happened before this node looked is dated to when it first looked.
type times struct {
	mu   sync.Mutex
	seen map[string]time.Time // of a run's joining
}

func newTimes() *times { return &times{seen: make(map[string]time.Time)} }

func joined(run string) string { return "join " + run }

func (t *times) of(key string) *time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return optional(t.seen[key])
}

// watch looks after each entry of the log until ctx ends. Only what is still shown is kept.
func (t *times) watch(ctx context.Context, g *gms.Group) {
	for {
		changed := g.Cache().Changed()
		t.look(g, time.Now().UTC())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (t *times) look(g *gms.Group, now time.Time) {
	shown := make(map[string]bool)
	for _, m := range g.View().Members {
		shown[joined(m.Run)] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.seen {
		if !shown[key] {
			delete(t.seen, key)
		}
	}
	for key := range shown {
		if _, ok := t.seen[key]; !ok {
			t.seen[key] = now
		}
	}
}
