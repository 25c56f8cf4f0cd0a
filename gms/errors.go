package gms

import (
	"errors"
	"fmt"
)

// Errors that a host branches on. Group's methods wrap them with what was being done.
var (
	// ErrUnknown: the outcome of a command is not known: it may or may not have taken effect, or may still.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrNoQuorum: no leader could be asked in time; nothing was changed by this call.
	ErrNoQuorum = errors.New("no leader can be reached")
	// ErrRunClosed: this run is closed. The node opens a new one by itself; what the old run held is being recovered.
	ErrRunClosed = errors.New("run is closed")
	// ErrLeaseExpired: the run's lease has run out; nothing new may be started until it is renewed.
	ErrLeaseExpired = errors.New("lease has expired")
	// ErrBusy: held by somebody else.
	ErrBusy = errors.New("held by another")
	// ErrNotHolder: the token is not the present holder's.
	ErrNotHolder = errors.New("not the holder")
	// ErrStale: what is named was valid and is over: a lock whose limit has passed.
	ErrStale = errors.New("stale")
	// ErrOrder: a fence was asked for under a poll lock; the order is fence, then poll lock, then claims.
	ErrOrder = errors.New("a fence comes before a poll lock")
	// ErrGap: changes since the position are not kept any more.
	ErrGap = errors.New("changes are not kept so far back")
	// ErrConflict: a condition on a key's version did not hold.
	ErrConflict = errors.New("version has changed")
	// ErrFenced: a condition on a run, a claim or a fence did not hold: a successor has taken over.
	ErrFenced = errors.New("fenced")
	// ErrNotFound: no such entry.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge: a value or a name is over its bound.
	ErrTooLarge = errors.New("too large")
	// ErrQuarantined: the item may not be claimed until an operator frees it.
	ErrQuarantined = errors.New("item is quarantined")
	// ErrNameTaken: another process stands under this node's name.
	ErrNameTaken = errors.New("node name is taken")
	// ErrOtherHome: the group knows this node name with another home.
	ErrOtherHome = errors.New("node is on record with another home")
	// ErrOlderHome: the home holds less of the log than the group knows it to have held: it was restored from a copy.
	ErrOlderHome = errors.New("home is older than the group's record of it")
	// ErrHomeInUse: another process holds the home, and went on for three seconds.
	ErrHomeInUse = errors.New("home is in use")
	// ErrOtherGroup: the home, or the member that answered, belongs to another group.
	ErrOtherGroup = errors.New("belongs to another group")
	// ErrDiskFull: the home's disk is full. DiskFull says so of a group that runs, and Err of one that had no room to begin.
	ErrDiskFull = errors.New("disk of the home is full")
	// ErrDiskStalled: a write to the home's disk has not returned for too long; the process must end.
	ErrDiskStalled = errors.New("disk is stalled")
	// ErrDiverged: this replica's state is not the leader's; the process must end and the home be replaced.
	ErrDiverged = errors.New("replica has diverged")
	// ErrUnknownMember: no run of that node is in the view, or its process does not stand as that run any more.
	ErrUnknownMember = errors.New("not a member")
	// ErrForgotten: an operator had the group give this home up for good: its node was forgotten, or its home replaced.
	ErrForgotten = errors.New("the group has given this home up")
	// ErrRole: this node's role does not do that.
	ErrRole = errors.New("not for this role")
	// ErrAlive: the run that was reported dead answers.
	ErrAlive = errors.New("the run answers")
	// ErrKeyInUse: somebody encrypts with the gossip key.
	ErrKeyInUse = errors.New("gossip key is in use")
	// ErrNotProven: it is not known of every configured node that it has the gossip key.
	ErrNotProven = errors.New("not everybody is proven to have the gossip key")
	// ErrProtocol: this program does not read, or not write any more, what the group writes: it is too old or too new.
	ErrProtocol = errors.New("the program does not fit the group's protocol")
	// ErrStopped: the group is stopped.
	ErrStopped = errors.New("group is stopped")
)

// HolderError is ErrBusy with its holder.
type HolderError struct {
	Run  string // hex id of the run that holds
	Node string // its node, when known
}

// Error names the holder.
func (e *HolderError) Error() string { return fmt.Sprintf("held by %s (run %s)", e.Node, e.Run) }

// Is makes it ErrBusy.
func (e *HolderError) Is(target error) bool { return target == ErrBusy }

// hinted is an error with a remedy for people.
type hinted struct {
	error
	hint string
}

// Hint says what to do about it.
func (h hinted) Hint() string { return h.hint }

func (h hinted) Unwrap() error { return h.error }

func withHint(err error, hint string) error { return hinted{err, hint} }
