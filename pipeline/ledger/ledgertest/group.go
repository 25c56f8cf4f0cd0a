package ledgertest

import "errors"

// ErrHeld: somebody holds the claim or the fence already.
var ErrHeld = errors.New("held by another")

// Group is what a test controls of the group: runs, claims and fences. Tokens only grow, over all of them.
type Group interface {
	// OpenRun opens a run.
	OpenRun(run string)
	// CloseRun closes a run: its claims become orphans, its fences move on (are no longer held).
	CloseRun(run string)
	// Claim gives run the claim on (component, item); ErrHeld when it is held or orphaned.
	Claim(component, item, run string) (token uint64, err error)
	// Adopt moves an orphaned claim to run, with a new token; ErrHeld when its holder's run is open.
	Adopt(component, item, run string) (token uint64, err error)
	// RaiseFence raises the fence on (component, node, dead) for holder, with a new token; an earlier holder loses it.
	RaiseFence(component, node, dead, holder string) (token uint64)
}
