package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// retainUntil is the header of an object's lock. Credentials without the right to read retentions do not get it.
const retainUntil = "X-Amz-Object-Lock-Retain-Until-Date"

// LockedUntil implements storage.Locker: what the bucket says of the object, else what Options.Lock has made of it. Without
// Options.Lock nothing is asked, and nothing is locked by this program.
func (s *Storage) LockedUntil(ctx context.Context, name string) (time.Time, error) {
	if err := storage.ValidName(name); err != nil {
		return time.Time{}, fmt.Errorf("ask for the lock: %w", err)
	}
	if s.lock.Mode == "" || name == storage.OwnerName {
		return time.Time{}, nil
	}
	o, err := s.head(ctx, s.key(name))
	switch {
	case absent(err):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, s.fail(ctx, err, "ask for the lock of %s", name)
	}
	if until, err := time.Parse(time.RFC3339, o.Metadata.Get(retainUntil)); err == nil {
		return until.UTC(), nil
	}
	return o.LastModified.UTC().AddDate(0, 0, s.lock.Days), nil
}
