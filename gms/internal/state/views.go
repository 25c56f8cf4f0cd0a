package state

import (
	"google.golang.org/protobuf/proto"

	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// maxViews are kept, for members that were away.
const maxViews = 1000

// Member is one member of a view. Run(Member.Run) has the rest as it is now.
type Member struct {
	Node  string
	Run   RunID
	Epoch uint64
	Role  wire.Role
}

// View is the agreed list of members as of Version, in order of epoch, then node.
type View struct {
	Version uint64 // position of the entry that made it; 0 for the empty view before the first
	Members []Member
	// Starting and Stopping: a start or shutdown of the whole group was under way. Known of the present view only, when it
	// is read or made.
	Starting, Stopping bool
}

// nextView makes a view when the entry changed the members, and forgets what only the oldest views named.
func (m *Machine) nextView() *ViewChanged {
	if !m.runs.changed {
		return nil
	}
	m.runs.changed = false
	previous := m.View()
	now := &wire.View{Version: m.Position()}
	for _, id := range m.runs.open {
		now.Runs = append(now.Runs, id.Bytes())
	}
	if len(m.views) > 0 && sameRuns(m.views[len(m.views)-1], now) {
		m.forgetRuns()
		return nil
	}
	m.views = append(m.views, now)
	if len(m.views) > maxViews {
		m.views = slices.Clone(m.views[len(m.views)-maxViews:])
	}
	change := &ViewChanged{View: m.View(), Previous: previous}
	m.forgetRuns()
	return change
}

func sameRuns(a, b *wire.View) bool {
	return proto.Equal(&wire.View{Runs: a.GetRuns()}, &wire.View{Runs: b.GetRuns()})
}

// forgetRuns removes the closed runs that no recovery and no kept view names.
func (m *Machine) forgetRuns() {
	for id, r := range m.runs.all {
		if !r.IsOpen() && m.recoveries.of[id] == 0 && (len(m.views) == 0 || m.views[0].GetVersion() >= r.Closed) {
			delete(m.runs.all, id)
		}
	}
}

// View is the present view.
func (m *Machine) View() View {
	if len(m.views) == 0 {
		return View{}
	}
	v := m.resolve(m.views[len(m.views)-1])
	v.Starting, v.Stopping = m.Starting(), m.Stopping()
	return v
}

// Views are the last 1,000, oldest first.
func (m *Machine) Views() []View {
	list := make([]View, len(m.views))
	for i, v := range m.views {
		list[i] = m.resolve(v)
	}
	return list
}

func (m *Machine) resolve(v *wire.View) View {
	view := View{Version: v.GetVersion(), Members: make([]Member, 0, len(v.GetRuns()))}
	for _, b := range v.GetRuns() {
		id, _ := RunIDOf(b)
		r := m.runs.all[id]
		view.Members = append(view.Members, Member{Node: r.Node(), Run: id, Epoch: r.Epoch, Role: r.Open.GetRole()})
	}
	return view
}
