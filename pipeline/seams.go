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

// Errors a caller branches on.
var (
	// ErrBusy is an answer of Claims and Locks when somebody else holds the item or the lock.
	ErrBusy = component.ErrBusy
	// ErrUnavailable: a ledger, storage or target is away just now. A recovery that meets it has not failed; it is
	// tried again, here or on another node.
	ErrUnavailable = errors.New("not available now")
	// ErrStopped: the worker does not run.
	ErrStopped = errors.New("worker is stopped")
)

// Claim is the right to work on one task: Component is that of the task's type, Item the task's id.
type Claim = component.Claim

// Standing is the identity under which this node may work.
type Standing struct {
	Node string
	Run  string // hex
}

// Gate says whether this node's run stands, and which it is. Methods are safe for concurrent use.
type Gate interface {
	component.Gate
	// Self is the node and its present run; Run is empty while it has none. It must not block.
	Self() Standing
}

// Catalog is what a node can work with, by configured name. It is read only, and must not change while in use.
type Catalog struct {
	Sources    map[string]source.Source
	Scratch    map[string]source.Source // servers into which backups are restored for a while, to verify them; never sources
	Storages   map[string]storage.Storage
	Processors processor.Registry // all that may be met in manifests
	Chain      []string           // names of those applied to new backups, in any order

	// Trust judges manifests before anything is read by them: nil, or why not (Judge). It may block. Nil trusts all.
	Trust func(ctx context.Context, m Manifest) error
}

// Component is the name of the recovery component that does tasks of type t.
func Component(t ledger.TaskType) string {
	if t == ledger.Create {
		return "backup"
	}
	return string(t)
}
