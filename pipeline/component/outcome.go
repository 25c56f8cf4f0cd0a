package component

import (
	"errors"
	"time"
)

// ExitCode is what a command that ran one tick ends with.
type ExitCode int

// Exit codes.
const (
	ExitDone       ExitCode = 0 // done, or nothing to do
	ExitFailed     ExitCode = 1 // some item failed
	ExitCannotRun  ExitCode = 2 // a lock, the index or the store could not be used
	ExitBusy       ExitCode = 3 // the component runs here already, is paused, or others hold the poll lock
	ExitLeaseLost  ExitCode = 4 // this node's run does not stand, or was closed: results were dropped
	ExitNotStopped ExitCode = 5 // some work is not proven to have stopped
)

// Compat maps the code to the three that older schedulers know: busy, lost and not stopped are "could not run".
func (c ExitCode) Compat() ExitCode { return min(c, ExitCannotRun) }

// Counts say what became of items.
type Counts struct {
	Queried     int // answered by the index
	Claimed     int // claims that were given
	Busy        int // items that others hold
	Unknown     int // claims without an answer
	Done        int // success stored
	Failed      int // failure stored
	Stale       int // not wanted any more under the claim: ErrStaleItem
	Unpreserved int // as if it had never been
	Lost        int // dropped: the claim was lost
	NotStored   int // the store could not be used for the item
	NotStopped  int // not proven to have ended; still claimed
	Kept        int // ended, and left to recovery: ErrKeep
}

func (c *Counts) add(o Counts) {
	c.Queried += o.Queried
	c.Claimed += o.Claimed
	c.Busy += o.Busy
	c.Unknown += o.Unknown
	c.Done += o.Done
	c.Failed += o.Failed
	c.Stale += o.Stale
	c.Unpreserved += o.Unpreserved
	c.Lost += o.Lost
	c.NotStored += o.NotStored
	c.NotStopped += o.NotStopped
	c.Kept += o.Kept
}

// Tick is what one run did.
type Tick struct {
	Counts
	Report   Report        // of all children
	PollHeld time.Duration // how long it held the poll lock
	Full     bool          // it claimed all that it had room for: there may be more to do
	Next     time.Time     // when the first item that is not ready yet will be, if the index told; zero = unknown
	// Err is why nothing, or not all, was tried: ErrBusy, ErrPaused, ErrLost, ErrStopped, ErrNotStopped, or a failure of a
	// lock, the index or the store.
	Err error
}

// Code is the exit code of a command that ran this tick. When several fit, the first of: not stopped, lost, could not
// run, failed, busy.
func (t Tick) Code() ExitCode {
	switch {
	case t.NotStopped > 0 || errors.Is(t.Err, ErrNotStopped):
		return ExitNotStopped
	case t.Lost > 0 || errors.Is(t.Err, ErrLost):
		return ExitLeaseLost
	case t.Err != nil && !errors.Is(t.Err, ErrBusy) && !errors.Is(t.Err, ErrPaused), t.NotStored > 0, t.Kept > 0:
		return ExitCannotRun
	case t.Failed > 0:
		return ExitFailed
	case t.Err != nil:
		return ExitBusy
	default:
		return ExitDone
	}
}
