package locks

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// desk is a lock service in memory; broken, it gives a lock to all who ask.
type desk struct {
	mu     sync.Mutex
	locks  map[string]chan struct{}
	open   int
	broken bool
}

var errTaken = errors.New("taken")

func (d *desk) Client(context.Context) (Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	return deskClient{d}, nil
}

func (d *desk) lock(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks[name] == nil {
		d.locks[name] = make(chan struct{}, 1)
	}
	return d.locks[name]
}

type deskClient struct{ d *desk }

func (c deskClient) TryLock(_ context.Context, name string) (Unlock, error) {
	l := c.d.lock(name)
	select {
	case l <- struct{}{}:
		return func(context.Context) error { <-l; return nil }, nil
	default:
		return nil, errTaken
	}
}

func (c deskClient) Lock(_ context.Context, name string) (Unlock, error) {
	if c.d.broken {
		return func(context.Context) error { return nil }, nil
	}
	l := c.d.lock(name)
	l <- struct{}{}
	return func(context.Context) error { <-l; return nil }, nil
}

func (c deskClient) Close() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.open--
	return nil
}

func TestWorkloads(t *testing.T) {
	for name, load := range map[string]func(context.Context, Service, int, int) (Result, error){"free": Free, "contended": Contended} {
		d := &desk{locks: map[string]chan struct{}{}}
		r, err := load(t.Context(), d, 7, 1000)
		if err != nil || len(r.Each) != 1000 || r.Took <= 0 || d.open != 0 {
			t.Errorf("%s: %d pairs in %s, %d sessions left open, %v", name, len(r.Each), r.Took, d.open, err)
		}
		for lock, held := range d.locks {
			if len(held) != 0 {
				t.Errorf("%s: %s was left locked", name, lock)
			}
		}
	}
}

func TestWorkloadEndsAtAnError(t *testing.T) {
	d := &desk{locks: map[string]chan struct{}{}}
	d.lock("free-0") <- struct{}{} // somebody else's
	if _, err := Free(t.Context(), d, 2, 1<<40); !errors.Is(err, errTaken) || d.open != 0 {
		t.Errorf("%v, %d sessions left open", err, d.open)
	}
}

func TestTwoHoldersAreSeen(t *testing.T) {
	d := &desk{locks: map[string]chan struct{}{}, broken: true}
	if _, err := Contended(t.Context(), d, 8, 1<<40); !errors.Is(err, ErrTwoHolders) {
		t.Error(err)
	}
}
