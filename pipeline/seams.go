package pipeline

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Errors a caller branches on.
var (
	// ErrBusy is a Locker's answer when somebody else holds the item.
	ErrBusy = errors.New("item is claimed by another")
	// ErrUnavailable: a ledger, storage or target is away just now. A recovery that meets it has not failed; it is
	// tried again, here or on another node.
	ErrUnavailable = errors.New("not available now")
	// ErrStopped: the worker does not run.
	ErrStopped = errors.New("worker is stopped")
)

// Claim is the right to work on one item.
type Claim struct {
	Component string // of the task's type, see Component
	Item      string // task id
	RoundTrip int    // attempt that it was made for; part of its name, /<component>/B<item>-RT<n>
	Token     uint64 // fencing token: larger than that of every earlier claim on the item
}

// Locker gives claims. Methods may block on the group until ctx ends and are safe for concurrent use.
type Locker interface {
	// Claim gives the item to the node's present run, or answers ErrBusy at once when anybody holds it, this very run
	// included, or it is an orphan. It excludes the item whatever the round trip. An error of another kind means unknown: the claim may be held, and the implementation gives it back.
	Claim(ctx context.Context, component, item string, roundTrip int) (Claim, error)
	// Complete ends a claim whose item is done. A claim that has moved meanwhile is no error.
	Complete(ctx context.Context, c Claim) error
	// Abandon gives a claim back whose item is to be done by whoever comes next.
	Abandon(ctx context.Context, c Claim) error
}

// Standing is the identity under which this node may work.
type Standing struct {
	Node string
	Run  string // hex
}

// Gate says whether this node's run stands. Methods are safe for concurrent use.
type Gate interface {
	// Standing returns the node's present run and a context derived from ctx that ends, with a cause, when that run is
	// closed. An error means that nothing new may be started now (lease not held, group not reached, node leaving);
	// the worker asks again later. It must not block.
	Standing(ctx context.Context) (Standing, context.Context, error)
	// AwaitUnfenced blocks until no fence stands on component for this node (netiquette: a restarted node does not
	// start new work before its dead run has been recovered) or ctx ends, which is the only error.
	AwaitUnfenced(ctx context.Context, component string) error
}

// Catalog is what a node can work with, by configured name. It is read only, and must not change while in use.
type Catalog struct {
	Sources    map[string]source.Source
	Storages   map[string]storage.Storage
	Processors processor.Registry // all that may be met in manifests
	Chain      []string           // names of those applied to new backups, in any order
}

// Component is the name of the recovery component that does tasks of type t.
func Component(t ledger.TaskType) string {
	if t == ledger.Create {
		return "backup"
	}
	return string(t)
}
