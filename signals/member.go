package signals

import (
	"bytes"
	"maps"
	"slices"
	"time"
)

// Role is what a member takes part in.
type Role string

// Roles of a member.
const (
	Core      Role = "core"      // full member
	Spectator Role = "spectator" // sees all, never recovers
	Watchdog  Role = "watchdog"  // only reports deaths
	Witness   Role = "witness"   // only votes
)

// Member is one run of a node as the group sees it.
type Member struct {
	Node       string            // stable name of the node
	Run        string            // id of the run, 32 hex digits
	Role       Role              // role it joined with
	Epoch      uint64            // position at which the run was opened; grows with each run of the node
	StartTime  time.Time         // when the run was opened, by the clock of the leader that admitted it; for people only
	Ready      bool              // it reported itself ready for work
	Components []string          // components it can recover, sorted
	Details    map[string][]byte // what it says of itself: at its joining, and since
}

// Clone is a copy that shares nothing with m.
func (m Member) Clone() Member {
	m.Components = slices.Clone(m.Components)
	details := m.Details
	m.Details = maps.Clone(details)
	for key, value := range details {
		m.Details[key] = bytes.Clone(value)
	}
	return m
}

// View is the agreed list of members at one position of the log.
type View struct {
	Version uint64   // position; a member sees versions in one order and never a smaller one
	Members []Member // in the order in which their runs were opened
	// GroupStarting and GroupStopping: a start or shutdown of the whole group had been announced and was under way. Always
	// false in views of the past.
	GroupStarting, GroupStopping bool
}

// Clone is a copy that shares nothing with v.
func (v View) Clone() View {
	members := v.Members
	v.Members = slices.Clone(members)
	for i, m := range members {
		v.Members[i] = m.Clone()
	}
	return v
}

// Member finds the member of that node.
func (v View) Member(node string) (Member, bool) {
	i := slices.IndexFunc(v.Members, func(m Member) bool { return m.Node == node })
	if i < 0 {
		return Member{}, false
	}
	return v.Members[i], true
}
