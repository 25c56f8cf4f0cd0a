package state

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// lead notes who leads. A leader says so before it acknowledges anything; what an earlier term's leader proposes by
// itself changes nothing from here on (PROTOCOL.md 6). That a node leads again in a later term is no change of leaders.
func (m *Machine) lead(c *wire.Lead) *wire.Result {
	if !validName(c.GetNode()) || c.GetTerm() == 0 {
		return m.invalid("the leader's name or term is out of bounds")
	}
	if c.GetTerm() < m.term {
		return m.refuse(wire.Code_CODE_STALE, "a leader of a later term is known")
	}
	if c.GetTerm() == m.term {
		return m.noChange()
	}
	m.term = c.GetTerm()
	if m.leader != c.GetNode() {
		m.leader = c.GetNode()
		m.emit(LeaderChanged{Node: m.leader, Term: m.term})
	}
	return m.ok()
}

// Leader is the node that leads by the log's word, and its term; empty and 0 before the first.
func (m *Machine) Leader() (node string, term uint64) { return m.leader, m.term }

// announceGroup marks the start or shutdown of the whole group. The one under way ends with its own end or failure, or when
// the other one begins. A shutdown that is completed goes on until all have left.
func (m *Machine) announceGroup(run RunID, c *wire.AnnounceGroup) *wire.Result {
	if c.GetPhase() < wire.AnnounceGroup_PHASE_INITIATED || c.GetPhase() > wire.AnnounceGroup_PHASE_FAILED ||
		c.GetKind() < wire.AnnounceGroup_KIND_STARTUP || c.GetKind() > wire.AnnounceGroup_KIND_SHUTDOWN {
		return m.invalid("the kind or phase is unknown")
	}
	leaving := c.GetKind() == wire.AnnounceGroup_KIND_SHUTDOWN && c.GetPhase() == wire.AnnounceGroup_PHASE_COMPLETED
	switch {
	case c.GetPhase() == wire.AnnounceGroup_PHASE_INITIATED:
		m.underWay, m.since = c.GetKind(), m.Position()
	case c.GetKind() == m.underWay && !leaving:
		m.underWay, m.since = wire.AnnounceGroup_KIND_UNSPECIFIED, 0
	}
	m.emit(GroupAnnounced{
		Run: m.runs.all[run], Kind: c.GetKind(), Phase: c.GetPhase(), Starting: m.Starting(), Stopping: m.Stopping(),
	})
	return m.ok()
}

// Starting reports whether a start of the whole group was announced and has neither ended nor failed.
func (m *Machine) Starting() bool { return m.underWay == wire.AnnounceGroup_KIND_STARTUP }

// Stopping reports whether a shutdown of the whole group is under way: it was announced, has not failed, and a run that was
// open then still is. So a group that is started again is not being shut down, though nobody could say that it was done.
func (m *Machine) Stopping() bool {
	return m.underWay == wire.AnnounceGroup_KIND_SHUTDOWN && len(m.runs.open) > 0 && m.runs.all[m.runs.open[0]].Epoch <= m.since
}

// maxReadyViews are kept.
const maxReadyViews = 100

// readyHistory are the views of those that had reported themselves ready, oldest first. They hold all that is shown of
// them, so that a run need not be kept for them.
type readyHistory struct {
	views   []*wire.ReadyView
	changed bool // the ready members may not be those of the last view
}

// nextReadyView makes a view of the ready members when the entry changed who they are.
func (m *Machine) nextReadyView() *ReadyViewChanged {
	if !m.ready.changed {
		return nil
	}
	m.ready.changed = false
	now := &wire.ReadyView{Version: m.Position()}
	for _, id := range m.runs.open {
		if r := m.runs.all[id]; r.Ready {
			now.Members = append(now.Members, &wire.ReadyMember{Run: id.Bytes(), Node: r.Node(), Epoch: r.Epoch, Role: r.Open.GetRole()})
		}
	}
	var last *wire.ReadyView
	if n := len(m.ready.views); n > 0 {
		last = m.ready.views[n-1]
	}
	if proto.Equal(&wire.ReadyView{Members: last.GetMembers()}, &wire.ReadyView{Members: now.GetMembers()}) {
		return nil
	}
	m.ready.views = append(m.ready.views, now)
	if n := len(m.ready.views) - maxReadyViews; n > 0 {
		m.ready.views = slices.Clone(m.ready.views[n:])
	}
	return &ReadyViewChanged{View: readyView(now), Previous: readyView(last)}
}

// ReadyViews are the last 100 views of the members that had reported themselves ready, oldest first.
func (m *Machine) ReadyViews() []View {
	list := make([]View, len(m.ready.views))
	for i, v := range m.ready.views {
		list[i] = readyView(v)
	}
	return list
}

func readyView(v *wire.ReadyView) View {
	view := View{Version: v.GetVersion(), Members: make([]Member, 0, len(v.GetMembers()))}
	for _, r := range v.GetMembers() {
		id, _ := RunIDOf(r.GetRun())
		view.Members = append(view.Members, Member{Node: r.GetNode(), Run: id, Epoch: r.GetEpoch(), Role: r.GetRole()})
	}
	return view
}

// marks judges the leader, the announcements and the ready views of a snapshot.
func (c *checker) marks() error {
	s := c.s
	if (s.GetUnderWay() == 0) != (s.GetUnderWaySince() == 0) || s.GetUnderWaySince() > c.position ||
		s.GetUnderWay() < 0 || s.GetUnderWay() > wire.AnnounceGroup_KIND_SHUTDOWN {
		return fmt.Errorf("check marks: %v since %d is out of bounds", s.GetUnderWay(), s.GetUnderWaySince())
	}
	if (s.GetLeader() == "") != (s.GetTerm() == 0) || len(s.GetLeader()) > MaxName {
		return fmt.Errorf("check marks: leader %q of term %d is out of bounds", s.GetLeader(), s.GetTerm())
	}
	if len(s.GetReadyViews()) > maxReadyViews {
		return fmt.Errorf("check ready views: %d are too many", len(s.GetReadyViews()))
	}
	last := uint64(0)
	var members []*wire.ReadyMember
	for _, v := range s.GetReadyViews() {
		if v.GetVersion() <= last || !c.reached(v.GetVersion()) {
			return fmt.Errorf("check ready views: version %d is out of order", v.GetVersion())
		}
		last, members = v.GetVersion(), v.GetMembers()
		for _, r := range members {
			if _, ok := RunIDOf(r.GetRun()); !ok || !validName(r.GetNode()) || !c.reached(r.GetEpoch()) {
				return fmt.Errorf("check ready views: version %d has a member out of bounds", v.GetVersion())
			}
		}
	}
	ready := map[string]bool{}
	for id, r := range c.runs {
		if r.GetClosed() == 0 && r.GetReady() {
			ready[string(id[:])] = true
		}
	}
	for _, r := range members {
		if !ready[string(r.GetRun())] {
			return fmt.Errorf("check ready views: the last view is not the ready members")
		}
		delete(ready, string(r.GetRun()))
	}
	if len(ready) > 0 {
		return fmt.Errorf("check ready views: the last view lacks ready members")
	}
	return nil
}
