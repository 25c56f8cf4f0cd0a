package recovery

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// Log is the group's replicated state as one run sees it; the group implements it. It decides everything: what this
// package reports late or in vain is refused there.
//
// Calls that change something wait for the group's answer or for ctx, and may be repeated: a call repeated with the same
// arguments by the same run is answered, not done twice. Their errors wrap the sentinels of signals: ErrNotAppointed
// (the appointment that Ref names has moved or ended), ErrFenceLost (the fence is not ours under that token),
// ErrUnavailable (no answer now, or the outcome is unknown).
type Log interface {
	Appointments
	Fencing
	Settling
	Netiquette
}

// Appointments says what this run has to do.
type Appointments interface {
	// Recoveries lists the recoveries that are appointed to this run or whose fence it has raised, as applied here, and
	// a channel that is closed when the list may have changed. It never blocks.
	Recoveries() (list []Appointed, changed <-chan struct{})
}

// Fencing raises, keeps and lowers the fence of an appointment.
type Fencing interface {
	// Acquire raises the fence. When this run has raised it for the same appointment already, it answers as before. Errors:
	// ErrNotAppointed, ErrUnavailable.
	Acquire(ctx context.Context, ref Ref) (Grant, error)
	// Former says how long it takes from now until every former holder, the dead run first, can act no more: the lease's TTL
	// since this node applied the last entry that ended one, by its own clock; 0 when all are proven ended. changed is closed
	// when it may have become less. It does not block.
	Former(ref Ref) (left time.Duration, changed <-chan struct{})
	// Release lowers the fence and ends the recovery. ErrWorkLeft: orphans are not settled, and nothing changed.
	Release(ctx context.Context, held Held) error
	// FailRecovery reports that the action failed. The log counts it, or moves the appointment.
	FailRecovery(ctx context.Context, ref Ref, failure Failure) error
	// Renew has the session's renewals name the fence, whenever due answers true, until stop is called or lease ends.
	// lease ends, with a cause, at the local deadline: fence_ttl less a margin after the last acknowledged renewal (at
	// first: the Acquire that gave grant) was sent. Renew does not block; due does not either and is called from anywhere.
	Renew(grant Grant, due func() bool) (lease context.Context, stop func())
}

// Settling settles what the dead run left, under the fence's token.
type Settling interface {
	// Orphans lists the claims of the dead run in the component that are not settled. ErrFenceLost, ErrUnavailable.
	Orphans(ctx context.Context, held Held) ([]signals.Orphan, error)
	// Adopt turns the orphan into a claim of this run. ErrPoison: it may only be quarantined.
	Adopt(ctx context.Context, held Held, o signals.Orphan) (signals.Claim, error)
	// EndClaim ends an adopted claim (Complete, Abandon, Quarantine) or an orphan (Free, Quarantine). ErrPoison: the
	// orphan may only be quarantined; ErrFenceLost, ErrUnavailable.
	EndClaim(ctx context.Context, held Held, c signals.Claim, how signals.How) error
}

// Netiquette answers a starting component.
type Netiquette interface {
	// Fenced says whether a recovery of an earlier run of node, or a maintenance fence, keeps new work of component
	// away; it is answered at a position not below this run's epoch. changed is closed when the answer may have changed.
	// ErrUnavailable when the group does not answer while ctx lasts.
	Fenced(ctx context.Context, component, node string) (fenced bool, changed <-chan struct{}, err error)
}

// Ref names one appointment. Each hand-over makes a new index.
type Ref struct {
	Component string // what is to be recovered
	Node      string // node of the dead run
	Run       string // the dead run
	Index     uint64 // position at which the appointment was made
}

// Held names a fence that this run has raised.
type Held struct {
	Ref
	Token uint64 // of the fence
}

// Appointed is one entry of the list of recoveries.
type Appointed struct {
	Ref
	Failures uint32        // failures of the present appointee so far
	Pause    time.Duration // before the first delivery: all candidates have found something unavailable
	Facts    signals.Facts // of the signal; its kind is set here
}

// Grant is a raised fence.
type Grant struct {
	Held
	// Sent is when the Acquire that gave it was sent, on a clock of the log's own that nobody else reads.
	Sent time.Duration
}

// Failure is the report of an action that did not finish.
type Failure struct {
	Unavailable bool   // something it needs is away: the recovery goes on for as long as it takes
	Why         string // one sentence
}
