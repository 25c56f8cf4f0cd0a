package kept

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrConflict says that a record had another version than the change expected. Nothing was changed.
var ErrConflict = errors.New("the record was changed meanwhile")

// ErrProtocol says that a record has something in it that came with a later protocol than the group writes. Nothing was changed.
var ErrProtocol = errors.New("it is of a later version than the group writes")

// Record is what is kept under a key; without one Version is 0.
type Record struct {
	Key     string
	Value   []byte
	Version uint64
}

// Change replaces, makes or deletes a record that has a version. Made by Put, Again and Delete.
type Change struct {
	Key      string
	Value    []byte
	Version  uint64 // that it has now; 0: none
	Gone     bool   // it is deleted
	Protocol uint32 // that whoever reads it has to know; 0: any
}

// Delete removes a record of that version.
func Delete(r Record) Change { return Change{Key: r.Key, Version: r.Version, Gone: true} }

// Store keeps records; see the package. Methods block until ctx ends at most, but for Local.
type Store interface {
	Get(ctx context.Context, key string) (Record, error)
	// Local is what this node knows of a key now.
	Local(key string) Record
	// List gives the records whose keys begin with prefix, in order of key.
	List(ctx context.Context, prefix string) ([]Record, error)
	Commit(ctx context.Context, changes ...Change) error
}

// mostTries bounds how often Update begins again: each time somebody else has got ahead. From the second time on it waits
// before, for a time that is drawn and grows to longestPause, so that two who meet do not meet again.
const (
	mostTries    = 32
	longestPause = 50 * time.Millisecond
)

// Update changes one record by a decision that may be made several times: decide gets it as it is, and gives the changes
// that belong together. No changes is a decision too. When somebody else was faster each time the error is ErrConflict.
func Update(ctx context.Context, s Store, key string, decide func(Record) ([]Change, error)) error {
	for try := range mostTries {
		if err := pause(ctx, try); err != nil {
			return err
		}
		r, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		changes, err := decide(r)
		if err != nil || len(changes) == 0 {
			return err
		}
		err = s.Commit(ctx, changes...)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("change %s: %w, %d times", key, ErrConflict, mostTries)
}

// pause waits before a try.
func pause(ctx context.Context, try int) error {
	if try < 2 {
		return nil
	}
	timer := time.NewTimer(rand.N(min(longestPause, time.Millisecond<<try)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
