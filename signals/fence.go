package signals

import (
	"context"
	"errors"
	"time"
)

// Errors of a recovery that an action branches on. Implementations wrap them.
var (
	// ErrNotAppointed: the appointment has moved to another member or has ended. What this action did not finish is
	// somebody else's now; its result counts for nothing.
	ErrNotAppointed = errors.New("not appointed to this recovery")
	// ErrWorkLeft: Release found orphans of the dead run that are neither freed nor adopted. The fence stays raised.
	ErrWorkLeft = errors.New("orphaned work is not settled")
	// ErrNotAcquired: the fence has not been raised by this action, or was lowered by it already.
	ErrNotAcquired = errors.New("fence is not acquired")
	// ErrFenceLost: the fence was not renewed in time, or was handed over. Nothing may be written under its token.
	ErrFenceLost = errors.New("fence is lost")
	// ErrUnavailable: something that the recovery needs (ledger, target, storage, quorum) is away. An action that
	// returns it has not failed: it is tried again, here or elsewhere, for as long as it takes.
	ErrUnavailable = errors.New("unavailable")
	// ErrPoison: the item has been orphaned too often; it can only be quarantined, by End.
	ErrPoison = errors.New("item may only be quarantined")
)

// FailureRecoverySignal is the signal of kind FailureRecovery. It is delivered to the one member that the log appointed,
// at least once until the fence is lowered; Facts.Member is the closed run.
//
// Acquire raises the fence. It may block for as long as its context allows: on the group's quorum, and for a component
// of ExclusionLease until every former holder's lease has run out. Called again by the same action it gives the same
// fence. It answers ErrNotAppointed, ErrUnavailable, or the context's cause.
//
// Release lowers the fence and ends the recovery. It answers ErrNotAcquired, ErrWorkLeft, ErrNotAppointed,
// ErrUnavailable. An action that returns nil has released, so calling it is needed only to learn of ErrWorkLeft in time.
type FailureRecoverySignal interface {
	Signal
	// Appointment names what this delivery is about; each hand-over makes another one.
	Appointment() Appointment
}

// Appointment names one appointment of one member to one recovery.
type Appointment struct {
	Component string // what is to be recovered
	Node      string // node of the closed run
	Run       string // the closed run
	Index     uint64 // position at which the appointment was made; each hand-over makes a new one
	Attempt   int    // which delivery to this appointee this is, from 1
}

// Fence is a raised guard: from its token on every earlier holder, the dead run first, is refused. Its methods may be
// called from any goroutine of the action.
type Fence interface {
	// Token is larger than that of every earlier holder. It goes with every write that the recovery makes visible.
	Token() uint64
	// Context ends when the fence is lost, when the appointment moves, or when the action's own context ends;
	// context.Cause tells which. Everything that the recovery does runs under it.
	Context() context.Context
	Work
	Liveness
}

// Work settles what the dead run left. Each method carries the fence's token and answers ErrFenceLost when it is not
// the fence's any more, ErrNotAcquired after Release, ErrUnavailable when the group cannot decide now.
type Work interface {
	// Orphans lists the claims of the dead run in this component that are not settled yet. Errors: as Work says.
	Orphans(ctx context.Context) ([]Orphan, error)
	// Adopt turns an orphan of round trip n into a claim of round trip n+1 of this member. It belongs to the fence until
	// Release, then to this member's run. ErrPoison: it was orphaned too often.
	Adopt(ctx context.Context, o Orphan) (Claim, error)
	// Free gives an orphan back that was reverted: anybody may claim its item. ErrPoison as with Adopt; else as Work says.
	Free(ctx context.Context, o Orphan) error
	// End ends an adopted claim, or quarantines an orphan (Quarantine with Orphan.Claim). Errors: as Work says.
	End(ctx context.Context, c Claim, how How) error
}

// Liveness is how an action shows that it is not hung. It matters only to components with WithProgress.
type Liveness interface {
	// Progress says that the action got further. It costs nothing and may be called for each block copied.
	Progress()
	// Hold suspends the promise for at most max, for a step that cannot report (one long statement). A later Hold
	// replaces an earlier one; zero ends it.
	Hold(max time.Duration)
}

// Claim is the right to work on one item.
type Claim struct {
	Component string // whose work it is
	Item      string // the item, by the name that the host gave it
	RoundTrip uint32 // which attempt at the item this is
	Token     uint64 // goes with every write made under the claim
}

// Orphan is a claim of a closed run.
type Orphan struct {
	Claim
	Orphanings uint32 // how often the item has been orphaned, this time included
}

// How says how a claim ends.
type How string

// Ends of a claim.
const (
	Complete   How = "complete"   // the work is done
	Abandon    How = "abandon"    // not done; somebody else may claim the item
	Free       How = "free"       // an orphan was reverted; somebody else may claim the item
	Quarantine How = "quarantine" // nobody may claim the item until an operator frees it
)

// noFence is the fence of signals that have none. The context is kept because a Fence is one call's answer.
type noFence struct{ ctx context.Context }

func (f noFence) Token() uint64                                { return 0 }
func (f noFence) Context() context.Context                     { return f.ctx }
func (f noFence) Orphans(context.Context) ([]Orphan, error)    { return nil, nil }
func (f noFence) Adopt(context.Context, Orphan) (Claim, error) { return Claim{}, ErrNotAcquired }
func (f noFence) Free(context.Context, Orphan) error           { return ErrNotAcquired }
func (f noFence) End(context.Context, Claim, How) error        { return ErrNotAcquired }
func (f noFence) Progress()                                    {}
func (f noFence) Hold(time.Duration)                           {}
