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
	id      string    // of the owner object; empty: any
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

// OwnedAs is Owned for the one storage of that id (Owner.Storage): every other one of the cluster's, such as a folder of
// the same path on another disk, is ErrOther.
func OwnedAs(s Storage, cluster, id string) *Guard {
	g := Owned(s, cluster)
	g.id = id
	return g
}

// ask reads the owner object and compares it with what it has to be.
func (g *Guard) ask(ctx context.Context) (Owner, error) {
	o, err := CheckOwner(ctx, g.Storage, g.cluster)
	if err == nil && g.id != "" && o.Storage != g.id {
		err = fmt.Errorf("check owner: %w: it is %s, want %s", ErrOther, o.Storage, g.id)
	}
	return o, err
}

// Unwrap implements Wrapper.
func (g *Guard) Unwrap() Storage { return g.Storage }

// Check asks for the owner now, whatever is remembered, and remembers the answer: after ErrNoOwner, ErrForeign or
// ErrOther calls are refused until a later check succeeds. An answer that could not be had (network) changes nothing.
func (g *Guard) Check(ctx context.Context) (Owner, error) {
	known, err := g.take(ctx)
	if err != nil {
		return Owner{}, err
	}
	o, err := g.ask(ctx)
	switch {
	case err == nil:
		known = true
	case errors.Is(err, ErrNoOwner), errors.Is(err, ErrForeign), errors.Is(err, ErrOther):
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
		_, err = g.ask(ctx)
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
