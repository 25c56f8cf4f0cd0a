package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// lockedError is the refusal to delete what a storage keeps from being removed.
type lockedError struct {
	backup, storage string
	until           time.Time
}

func (e *lockedError) Error() string {
	return fmt.Sprintf("backup %s is locked in storage %s until %s", e.backup, e.storage, e.until.UTC().Format(time.RFC3339))
}

// Hint is what a person can do.
func (e *lockedError) Hint() string {
	return "delete it after that: the storage's lock is there to forbid it"
}

// Unwrap implements errors.
func (e *lockedError) Unwrap() error { return ledger.ErrRefused }

// locked finds the storage that keeps a backup from being removed the longest, after now; nil when none does. The manifest was
// made last, so its lock is the last to end. The other error is that of a storage that could not be asked.
func (c Catalog) locked(ctx context.Context, b ledger.Backup, now time.Time) (longest *lockedError, err error) {
	for _, one := range b.Copies {
		st := c.Storages[one.Storage]
		if st == nil {
			continue
		}
		until, err := storage.LockedUntil(ctx, st, ManifestPath(b.ID, b.Token))
		if err != nil {
			return nil, &storageError{name: one.Storage, err: err}
		}
		if until.After(now) && (longest == nil || until.After(longest.until)) {
			longest = &lockedError{b.ID, one.Storage, until}
		}
	}
	return longest, nil
}
