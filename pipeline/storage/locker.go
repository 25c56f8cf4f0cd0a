package storage

import (
	"context"
	"time"
)

// A Locker is a storage that can keep objects from being removed for a time. It is an optional ability: As finds it.
type Locker interface {
	// LockedUntil returns until when an object cannot be removed: zero when it is not locked, or not there.
	LockedUntil(ctx context.Context, name string) (time.Time, error)
}

// LockedUntil asks s until when an object is locked; one that locks nothing says never.
func LockedUntil(ctx context.Context, s Storage, name string) (time.Time, error) {
	if l, ok := As[Locker](s); ok {
		return l.LockedUntil(ctx, name)
	}
	return time.Time{}, nil
}

// LockedUntil implements Locker, whatever is below: it asks for the owner first.
func (g *Guard) LockedUntil(ctx context.Context, name string) (time.Time, error) {
	l, ok := As[Locker](g.Storage)
	if !ok {
		return time.Time{}, nil
	}
	if err := g.ensure(ctx); err != nil {
		return time.Time{}, err
	}
	return l.LockedUntil(ctx, name)
}
