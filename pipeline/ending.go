package pipeline

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// ending is what becomes of a task whose attempt ended with an error.
type ending struct {
	handsOff bool         // a successor has the task: write nothing, remove nothing
	state    ledger.State // Planned: again
	giveBack bool         // the attempt is not counted
	reason   string
	hint     string
}

// endOf decides the ending. Pure.
func endOf(err error, t ledger.Task) ending {
	var byHand *cancelError
	switch {
	case fenced(err):
		return ending{handsOff: true, reason: sentence(err)}
	case errors.As(err, &byHand):
		return ending{state: ledger.Cancelled, reason: byHand.Error()}
	case errors.Is(err, errStopping):
		return ending{state: ledger.Planned, giveBack: true}
	case errors.Is(err, component.ErrTimeLimit):
		return ending{state: ledger.Failed, reason: sentence(err), hint: "see what held it up, or allow it more time"}
	case errors.Is(err, ledger.ErrInFlight):
		return ending{state: ledger.Planned, giveBack: true}
	case errors.Is(err, ledger.ErrRefused) && t.CancelBy != "":
		return ending{state: ledger.Cancelled, reason: (&cancelError{by: t.CancelBy}).Error()}
	case errors.Is(err, context.Canceled):
		return ending{handsOff: true, reason: sentence(err)}
	case passing(err) && t.OnFailure == "rerun" && t.Attempt < t.MaxAttempts:
		return ending{state: ledger.Planned, reason: sentence(err)}
	}
	return ending{state: ledger.Failed, reason: sentence(err), hint: hintOf(err)}
}

// hintOf is what a person may do about err: its own hint, or a general one, or nothing.
func hintOf(err error) string {
	var own interface{ Hint() string }
	if errors.As(err, &own) && own.Hint() != "" {
		return own.Hint()
	}
	switch {
	case errors.Is(err, source.ErrTargetExists):
		return "restore under another target, or allow that it is replaced"
	case damaged(err):
		return "restore from another storage that holds a copy"
	case errors.Is(err, errExpired):
		return "ask for the restore again"
	case errors.Is(err, source.ErrUnavailable):
		return "check that the database server runs and can be reached from this node"
	case errors.Is(err, storage.ErrPermanent):
		return "check the storage's rights and free space"
	}
	return ""
}

// damaged tells whether err says that a storage does not give what was stored.
func damaged(err error) bool {
	for _, sign := range []error{errCorrupt, processor.ErrCorrupt, processor.ErrTruncated, processor.ErrTrailing, storage.ErrNotFound} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// apply writes the ending into a row.
func (e ending) apply(t *ledger.Task) {
	t.State, t.Error, t.Hint, t.Taken = e.state, e.reason, e.hint, false
	if e.giveBack {
		t.Attempt--
	}
}
