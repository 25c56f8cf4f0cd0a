package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Guard is a storage that is used only while it is known to be the cluster's own. Made by Owned.
type Guard struct {
	Storage
	cluster string
	checked chan bool // one slot; holds whether the owner was found right, taken while it is being asked
}

// Owned wraps s so that no call reaches it before CheckOwner has found cluster as the owner; until then every call
// asks and fails with ErrNoOwner, ErrForeign or why it could not ask. Success is remembered; a listing that found
// nothing is believed only after asking again. Deleting the owner object is refused; other calls on it pass.
func Owned(s Storage, cluster string) *Guard {
	g := &Guard{Storage: s, cluster: cluster, checked: make(chan bool, 1)}
	g.checked <- false
	return g
}

// Unwrap implements Wrapper.
func (g *Guard) Unwrap() Storage { return g.Storage }

// Check asks for the owner now, whatever is remembered, and remembers the answer: after ErrNoOwner or ErrForeign calls
// are refused until a later check succeeds. An answer that could not be had (network) changes nothing.
func (g *Guard) Check(ctx context.Context) (Owner, error) {
	known, err := g.take(ctx)
	if err != nil {
		return Owner{}, err
	}
	o, err := CheckOwner(ctx, g.Storage, g.cluster)
	switch {
	case err == nil:
		known = true
	case errors.Is(err, ErrNoOwner), errors.Is(err, ErrForeign):
		known = false
	}
	g.checked <- known
	return o, err
}

// ensure asks unless success is remembered. Callers that come meanwhile wait for the answer.
func (g *Guard) ensure(ctx context.Context) error {
	known, err := g.take(ctx)
	if err != nil {
		return err
	}
	if !known {
		_, err = CheckOwner(ctx, g.Storage, g.cluster)
	}
	g.checked <- err == nil
	return err
}

func (g *Guard) take(ctx context.Context) (bool, error) {
	select {
	case known := <-g.checked:
		return known, nil
	case <-ctx.Done():
		return false, fmt.Errorf("wait for the owner check: %w", context.Cause(ctx))
	}
}

// Put implements Storage.
func (g *Guard) Put(ctx context.Context, name string, r io.Reader, c Condition) (Info, error) {
	if name != OwnerName {
		if err := g.ensure(ctx); err != nil {
			return Info{}, err
		}
	}
	return g.Storage.Put(ctx, name, r, c)
}

// Get implements Storage.
func (g *Guard) Get(ctx context.Context, name string) (io.ReadCloser, Info, error) {
	if name != OwnerName {
		if err := g.ensure(ctx); err != nil {
			return nil, Info{}, err
		}
	}
	return g.Storage.Get(ctx, name)
}

// Stat implements Storage.
func (g *Guard) Stat(ctx context.Context, name string) (Info, error) {
	if name != OwnerName {
		if err := g.ensure(ctx); err != nil {
			return Info{}, err
		}
	}
	return g.Storage.Stat(ctx, name)
}

// List implements Storage.
func (g *Guard) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := g.ensure(ctx); err != nil {
			yield(Info{}, err)
			return
		}
		empty := true
		for info, err := range g.Storage.List(ctx, prefix) {
			empty = false
			if !yield(info, err) {
				return
			}
		}
		if !empty {
			return
		}
		if _, err := g.Check(ctx); err != nil {
			yield(Info{}, fmt.Errorf("list found nothing: %w", err))
		}
	}
}

// Delete implements Storage.
func (g *Guard) Delete(ctx context.Context, name string) error {
	if name == OwnerName {
		return fmt.Errorf("delete %s: the owner object stays while the storage is in use: %w", name, ErrPermanent)
	}
	if err := g.ensure(ctx); err != nil {
		return err
	}
	return g.Storage.Delete(ctx, name)
}
