package home

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrRunRecovery: the generation has failed. Close the seat, throw away what was read in it and join the next one. The
	// error is a *RunRecoveryError and holds the first cause, the same for everybody.
	ErrRunRecovery = errors.New("the environment has failed, run recovery")
	// ErrNotSealed: no generation may be opened now: none was sealed since the machine started, or one is being cleaned.
	ErrNotSealed = errors.New("the environment is not sealed")
	// ErrBusy: another process holds the warden lock of this home. Nothing was changed.
	ErrBusy = errors.New("another process keeps the environment")
	// ErrFull: every seat is taken.
	ErrFull = errors.New("every seat is taken")
	// ErrNotProven: somebody is or may be still inside, so that nothing is cleaned and nothing sealed.
	ErrNotProven = errors.New("not proven that nobody is inside")
	// ErrNeedsOperator: recovery was begun MaxAttempts times and never ended. It stops, and keeps the evidence, until
	// Keeper.Pardon.
	ErrNeedsOperator = errors.New("recovery failed too often and needs an operator")
	// ErrNoRoom: the disk of the home is full. Nothing was opened; the same call can be made again when there is room.
	ErrNoRoom = errors.New("the disk of the home is full")
	// ErrNetworkFS: the directory is on a network file system, whose locks and mappings prove nothing.
	ErrNetworkFS = errors.New("the environment is on a network file system")
	// ErrLeft: the seat was closed before.
	ErrLeft = errors.New("the seat was left")
	// ErrReplaced: a lock file is not the one that was locked, so that two could hold what looks like one lock.
	ErrReplaced = errors.New("a lock file was replaced")
)

// RunRecoveryError is ErrRunRecovery with what is known of the failure.
type RunRecoveryError struct {
	Generation uint64 // that has failed
	Cause      string // the first cause that anybody gave
}

// Error says what failed and why.
func (e *RunRecoveryError) Error() string {
	return fmt.Sprintf("%v: generation %d: %s", ErrRunRecovery, e.Generation, e.Cause)
}

// Is makes errors.Is(err, ErrRunRecovery) true.
func (e *RunRecoveryError) Is(target error) bool { return target == ErrRunRecovery }

var errHeld = errors.New("the lock is held")
