package source

import (
	"context"
	"time"
)

// A Previewer is a Source that can tell what a restore would meet. It changes nothing.
type Previewer interface {
	// Preview makes the checks that Restore begins with, with the same errors and hints, and tells what is there.
	Preview(ctx context.Context, o RestoreOptions) (Preview, error)
}

// Preview is what a restore would meet on its server.
type Preview struct {
	Server  string   // version, "15.18"
	Exists  bool     // there is a database of the target's name
	Bytes   int64    // of that database; an estimate
	Clients []string // sessions in it but ours, as role/application, at most 20
	More    int      // sessions beyond these
}

// An Undoer is a Source that can take the swap of a restore back.
type Undoer interface {
	// Undo gives the target's name back to the database that the restore replaced, and keeps what the restore made under the
	// name that the replaced one had, for keep: a second Undo of the same Prepared takes the first one back. One transaction,
	// which compares both databases: ErrSuperseded when the target is neither, or the replaced one is gone. Clients of both are
	// disconnected.
	Undo(ctx context.Context, a Attempt, p Prepared, keep time.Duration) error
}
