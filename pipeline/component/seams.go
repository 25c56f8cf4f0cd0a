package component

import (
	"context"
	"errors"
	"time"
)

// Errors a caller branches on. From stores and indexes come, beside these, ledger.ErrFenced and ledger.ErrUnavailable.
var (
	// ErrBusy is an answer of Locks and Claims: somebody holds it.
	ErrBusy = errors.New("held by another")
	// ErrStaleItem: under the claim the item turned out not to be wanted any more; the index had lagged.
	ErrStaleItem = errors.New("item is not wanted any more")
	// ErrLost: the run that held the claim was closed, or the claim has moved; the result was dropped.
	ErrLost = errors.New("claim was lost, the result is dropped")
	// ErrTimeLimit is the cause with which work ends that took longer than Config.Limit.
	ErrTimeLimit = errors.New("time limit reached")
	// ErrStopping is the cause with which work ends at Stop.
	ErrStopping = errors.New("component is stopping")
	// ErrNotStopped: work was told to end, was killed, and still is not proven to have ended. Its claim is kept.
	ErrNotStopped = errors.New("work is not proven to have stopped")
	// ErrKeep is an answer of Work.Wait: nothing runs any more, but what the work left behind is for recovery to settle.
	// Nothing is stored and the claim is not given back; it ends with the run.
	ErrKeep = errors.New("claim is kept for recovery")
	// ErrPaused: an operator has paused the component.
	ErrPaused = errors.New("component is paused")
	// ErrStopped: the runner has been stopped.
	ErrStopped = errors.New("component runner is stopped")
)

// Unlock gives a lock back. It may block until ctx ends; that the lock is held by another by now is no error. A lock
// that could not be given back ends with the run that held it, a poll lock also after its own limit.
type Unlock func(ctx context.Context) error

// Locks are those of the group. Methods may block until ctx ends and are safe for concurrent use. A lock ends with the
// run that holds it. It excludes everybody, the same run included.
type Locks interface {
	// LockPoll waits, first come first served, for PollLock(component). When ctx ends first the answer is its error,
	// and the lock is not held.
	LockPoll(ctx context.Context, component string) (Unlock, error)
	// LockRun takes RunLock(component, this node, seat), or answers ErrBusy at once.
	LockRun(ctx context.Context, component string, seat int) (Unlock, error)
}

// Claim is the right to work on one item.
type Claim struct {
	Component string // whose work it is
	Item      string // the item's id
	RoundTrip int    // the item's, as it was claimed
	Token     uint64 // larger than that of every earlier claim on the item
}

// Claims gives and ends claims. Methods may block until ctx ends and are safe for concurrent use.
type Claims interface {
	// TryClaim takes ItemLock(component, item, roundTrip) for the node's present run, or answers ErrBusy at once when
	// anybody holds the item, in whatever round trip, this run included. Any other error means unknown: the claim may
	// be held, and the implementation gives it back.
	TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error)
	// EndClaim ends a claim: the item is done, or it is for whoever comes next. That the claim has moved is no error.
	EndClaim(ctx context.Context, c Claim, done bool) error
}

// Gate says whether this node's run stands. Methods are safe for concurrent use.
type Gate interface {
	// Standing returns a context derived from ctx that ends, with a cause, when the node's present run is closed. An
	// error means that nothing new may be started now. It must not block.
	Standing(ctx context.Context) (context.Context, error)
	// AwaitHeld blocks while the group is out of reach (the lease of the run is in doubt) until it is held again or
	// ctx, one derived from Standing's, ends; the error is then ctx's.
	AwaitHeld(ctx context.Context) error
	// AwaitUnfenced blocks while a fence stands on the component for this node, or until ctx ends.
	AwaitUnfenced(ctx context.Context, component string) error
}

// Query asks an index for work.
type Query struct {
	Component string    // whose records are meant
	Triggers  []Trigger // items that any of them wants
	At        time.Time // items with Record.NotBefore after it may be left out, and quarantined ones
	Limit     int       // at most so many, in the order of Order
}

// Index finds items. It may lag: what it says is checked again under the claim.
type Index interface {
	// Query answers with at most q.Limit items; it may block until ctx ends. ledger.ErrUnavailable when it cannot say now.
	Query(ctx context.Context, q Query) ([]Item, error)
}

// Result is what is written when work has ended.
type Result struct {
	Event  Event  // Type "" = none: Config.NoEvent
	Report Report // as the worker gave it
	Record Record // replaces that of the item and the component
}

// Store keeps events and records. Every write is guarded by the claim where it takes effect: one whose claim has moved
// or whose run is closed is ledger.ErrFenced and changes nothing. ledger.ErrUnavailable means unknown; the same call is
// then repeated, and must have its effect once.
type Store interface {
	// Begin is the first write under a claim: it sets the item's token, counts the attempt, notes when it began, and
	// returns the item not staler than the call, with the attempt counted in Record.Attempts. Errors: see Store.
	Begin(ctx context.Context, c Claim, at time.Time) (Item, error)
	// Finish appends the event to those of the item, whoever else appends, and replaces the record. A second call
	// under the same token is the first one repeated. Errors: see Store.
	Finish(ctx context.Context, c Claim, r Result) error
}
