package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Reasons for which an attempt ends; they are causes of its context or results of its chain.
var (
	errStopping = component.ErrStopping
	errCorrupt  = errors.New("object is not what the manifest says")
	errManifest = errors.New("manifest cannot be used")
	errEmpty    = errors.New("dump is empty")
	errExpired  = errors.New("restore was not begun in time")
)

// cancelError is the cause of a task's context when a person asked for the end.
type cancelError struct{ by string }

func (e *cancelError) Error() string { return "cancelled by " + e.by }

// storageError is a failure of one storage.
type storageError struct {
	name string
	err  error
}

func (e *storageError) Error() string { return fmt.Sprintf("storage %s: %v", e.name, e.err) }
func (e *storageError) Unwrap() error { return e.err }

// fenced tells whether err means that a successor has the task, or that it has ended.
func fenced(err error) bool {
	return errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrFinal) || errors.Is(err, source.ErrSuperseded)
}

// passing tells whether err may be gone at the next attempt.
func passing(err error) bool {
	if errors.Is(err, source.ErrUnavailable) || errors.Is(err, ErrUnavailable) || errors.Is(err, ledger.ErrUnavailable) {
		return true
	}
	var s *storageError
	if !errors.As(err, &s) {
		return false
	}
	if errors.Is(err, storage.ErrFull) {
		return true
	}
	for _, lasting := range []error{storage.ErrPermanent, storage.ErrExists, storage.ErrNotFound, errCorrupt, ErrForeign} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// unavailable marks an error of a ledger, storage or target that a recovery meets as ErrUnavailable where it is one.
func unavailable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnavailable) || fenced(err):
		return fmt.Errorf("%s: %w", what, err)
	case passing(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// sentence is err on one line, for a row of the ledger.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
