package storage

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// appendOnly is a storage from which nothing is removed. Made by AppendOnly.
type appendOnly struct {
	Storage
	log  *slog.Logger
	once sync.Once
}

// AppendOnly wraps s, whose credentials may not delete: Delete is ErrPermanent and does not reach s. Objects can still be
// replaced, as tombstones replace manifests. Keeps finds the wrapper.
func AppendOnly(s Storage, log *slog.Logger) Storage { return &appendOnly{Storage: s, log: log} }

// Unwrap implements Wrapper.
func (a *appendOnly) Unwrap() Storage { return a.Storage }

// Delete implements Storage.
func (a *appendOnly) Delete(_ context.Context, name string) error {
	return fmt.Errorf("delete %s: the storage is append-only: %w", name, ErrPermanent)
}

// Keeps tells whether nothing can be removed from s. Whoever wanted to asks first, and leaves it be: the first time that is
// logged.
func Keeps(ctx context.Context, s Storage) bool {
	a, ok := As[*appendOnly](s)
	if ok {
		a.once.Do(func() {
			a.log.InfoContext(ctx, "the storage is append-only: what does not count any more stays there until the server removes it by a rule of its own")
		})
	}
	return ok
}
