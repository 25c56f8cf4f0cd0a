// Package seam holds what a test may put in the place of parts of a group that Network and Clock do not cover: the disk
// of the log, and an eye on every entry that a replica applies.
//
// A Group takes the hooks from its Config. The type can be named inside package gms and below it only, so that no host
// comes to depend on it: the one user is package gms/gmstest, which runs whole groups in a synctest bubble, where no
// goroutine may block on a real disk, and which judges the invariants of the protocol at each step.
//
//	disk := consensus.NewMemStores() // outlives the Group: a second one with it is a restart
//	cfg.Seam = &seam.Hooks{Stores: disk, Applied: func(index uint64, m *state.Machine, changes []state.Change) { … }}
//
// What holds: nil hooks, and nil fields, change nothing. Applied is called for every entry, in the order of the log, after
// the state has taken it in and before anybody else can read it; a restored snapshot is told with nil changes. It runs
// under the replica's lock: it must return soon, must not call the Group of that replica, and must not keep the machine.
package seam

import (
	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/state"
)

// Hooks are the seams of one Group.
type Hooks struct {
	// Stores keeps the log instead of the files of the home; nil: the files.
	Stores consensus.Stores
	// Applied sees each entry as this replica has applied it; nil: nobody looks. changes is nil after a restored snapshot.
	Applied func(index uint64, m *state.Machine, changes []state.Change)
	// TrailingLogs is how many entries stay in the log behind a snapshot; 0: consensus' default. A short log makes a
	// follower that was away need a snapshot.
	TrailingLogs uint64
}
