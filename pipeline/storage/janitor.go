package storage

import (
	"context"
	"time"
)

// A Janitor is a storage in which a process that dies in the middle of a Put can leave something that no listing shows.
// It is an optional ability: As finds it.
type Janitor interface {
	// AbortUploads removes what Puts that began before that time have left, and returns how much of it. A Put that
	// began before and still runs fails, so the time must lie further back than any Put takes. It may be called at any
	// time and from several nodes.
	AbortUploads(ctx context.Context, before time.Time) (int, error)
}

// AbortUploads implements Janitor, whatever is below: it asks for the owner first, and does nothing in a storage that
// leaves nothing behind.
func (g *Guard) AbortUploads(ctx context.Context, before time.Time) (int, error) {
	j, ok := As[Janitor](g.Storage)
	if !ok {
		return 0, nil
	}
	if _, err := g.Check(ctx); err != nil {
		return 0, err
	}
	return j.AbortUploads(ctx, before)
}
