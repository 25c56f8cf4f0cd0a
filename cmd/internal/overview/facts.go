package overview

import (
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Facts is what one node knows. Lists may be in any order.
type Facts struct {
	Now    time.Time  // the group's time
	Status api.Status // its Problems are not read
	View   api.View
	Voters []string // nodes that vote in the log, present or not

	Upgrade api.Upgrade // which programs the nodes run, and what may be finalized

	NodeProblem error             // why the node that answers cannot go on
	Waits       error             // what it waits for before it can work
	ClockOff    string            // what is wrong with its clock
	GroupAlarms []string          // of gms.Health: each begins with what it is about and ": "
	Certificate string            // what is wrong with its certificate, or soon will be
	Uncertified bool              // it is wrong now: no other node believes it
	Distrusted  map[string]string // why the certificates of other nodes do not count, by node
	Uncopied    error             // why it has no copy of the audit trail

	Stuck []api.Claim // of the node that answers, whose work was ended by force and is not proven to have stopped

	Aside []Aside // items that components have given up

	Fences    []api.Fence
	Claims    []api.Claim
	Storages  []api.StorageState
	Ledger    error // why Databases and the counts could not be read
	Databases []Database

	Active, Waiting int

	Others []api.Alarm // local ones of other members
}

// Aside is an item on which a component has failed too often in a row: nobody works on it until a person has looked.
type Aside struct {
	Component, Item string
	Failures        int
	Why             string    // of the last failure
	Since           time.Time // of that
}

// Database is what is known of one database.
type Database struct {
	Name     string
	RPO      time.Duration // 0: no backup is expected
	Expected time.Time     // since when the group expects one; zero: not known
	Good     *api.Backup   // newest good one
	Newest   *api.Backup   // newest complete one, good or not
	Tasks    []api.Task    // that make backups of it, newest first, back to the one of Good
	Next     *time.Time    // when the next one is scheduled
}
