package gms

import (
	"context"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// signalling turns what the log changed into signals for this run, in the log's order, from the entry that opened the run
// to the one that closed it. Signals that a member must not miss (FailureRecovery) are not made here: package recovery
// drives them from the state. One goroutine owns it.
type signalling struct {
	g    *Group
	view signals.View // after the last entry taken
	self state.RunID  // this process' run, once the log has opened it and until it has closed it
}

func newSignalling(g *Group) *signalling { return &signalling{g: g} }

// run delivers until ctx ends.
func (s *signalling) run(ctx context.Context) {
	for {
		feed, changed := s.g.rep.take()
		for _, f := range feed {
			s.entry(f)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// entry delivers what one entry changed.
func (s *signalling) entry(f fed) {
	if f.gap {
		s.resume(f.position)
	}
	before := s.view
	for i, c := range f.changes {
		s.log(c, f.position)
		s.follow(c)
		if opened, ok := c.(state.RunOpened); ok && opened.Run.ID == s.g.ownRun() {
			s.begin(opened.Run.ID, f.position, f.changes[i:])
		}
		facts := signals.Facts{Group: s.g.cfg.Group, Position: f.position, View: s.view, PreviousView: before}
		if s.describe(c, &facts) {
			s.deliver(facts)
		}
		if closed, ok := c.(state.RunClosed); ok && closed.Run.ID == s.self {
			s.self = state.RunID{}
		}
	}
}

// deliver hands a signal on while this process has a run that the log has open.
func (s *signalling) deliver(facts signals.Facts) {
	if s.self.IsZero() {
		return
	}
	if err := s.g.router.Deliver(signals.NewNotice(facts)); err != nil {
		s.g.log.Debug("gms: signal not delivered", "kind", facts.Kind, "error", err)
	}
}

// begin is the opening of this process' run: it is told of the members that are there already, but for those that the
// rest of the entry, its own opening first, tells of.
func (s *signalling) begin(run state.RunID, position uint64, rest []state.Change) {
	s.self = run
	for _, m := range s.view.Members {
		told := slices.ContainsFunc(rest, func(c state.Change) bool {
			opened, ok := c.(state.RunOpened)
			return ok && opened.Run.ID.String() == m.Run
		})
		if m.Role == signals.Core && !told {
			s.deliver(signals.Facts{Kind: signals.JoinNotification, Group: s.g.cfg.Group, Member: m, Position: position, View: s.view, PreviousView: s.view})
		}
	}
}

// resume goes on after a snapshot: what lies between is not known as changes.
func (s *signalling) resume(position uint64) {
	own, open := s.g.ownRun(), false
	s.g.rep.read(func(m *state.Machine) {
		s.view = viewOf(m, m.View())
		open = m.IsOpen(own)
	})
	switch {
	case !open:
		s.self = state.RunID{}
	case s.self != own:
		s.begin(own, position, nil)
	}
}

// follow keeps the view as it was after the entry, whatever the replica has applied since.
func (s *signalling) follow(c state.Change) {
	var run state.Run
	switch c := c.(type) {
	case state.ViewChanged:
		s.g.rep.read(func(m *state.Machine) { s.view = viewOf(m, c.View) })
		return
	case state.ReadyChanged:
		run = c.Run
	case state.ComponentRegistered:
		run = c.Run
	default:
		return
	}
	s.view = s.view.Clone()
	for i := range s.view.Members {
		if s.view.Members[i].Run == run.ID.String() {
			s.view.Members[i] = memberOf(run)
		}
	}
}

// describe fills in the facts; false when the change is no signal.
func (s *signalling) describe(c state.Change, f *signals.Facts) bool {
	switch c := c.(type) {
	case state.RunOpened:
		if c.Run.Open.GetRole() != wire.Role_ROLE_CORE {
			return false
		}
		f.Kind, f.Member, f.Rejoin = signals.JoinNotification, memberOf(c.Run), c.Previous != nil
	case state.RunClosed:
		f.Member, f.Evidence, f.Why = memberOf(c.Run), evidences[c.Run.Evidence], c.Run.Detail
		f.Kind = signals.FailureNotification
		if f.Evidence == signals.Left {
			f.Kind, f.Shutdown = signals.PlannedShutdown, signals.ShutdownInstance
		}
	case state.SuspectedChanged:
		f.Kind, f.Member, f.Why = signals.FailureSuspected, memberOf(c.Run), c.Why
		if !c.Run.Suspected {
			f.Kind = signals.FailureNoLongerSuspected
		}
	case state.ReadyChanged:
		if !c.Run.Ready {
			return false
		}
		f.Kind, f.Member = signals.JoinedAndReadyNotification, memberOf(c.Run)
	default:
		return false
	}
	return true
}

// log writes one line for what an operator wants to find again.
func (s *signalling) log(c state.Change, position uint64) {
	log := s.g.log.With("position", position)
	recovery := func(msg string, r *wire.Recovery) {
		log.Info(msg, "recovers", r.GetComponent(), "node", r.GetNode(), "run", hexID(r.GetRun()), "appointee", s.nodeOf(r.GetAppointee()), "token", r.GetToken())
	}
	switch c := c.(type) {
	case state.GroupFormed:
		log.Info("gms: group formed", "cluster", hexID(c.ClusterID))
	case state.RunOpened:
		log.Info("gms: run opened", "node", c.Run.Node(), "run", c.Run.ID.String())
	case state.RunClosed:
		log.Info("gms: run closed", "node", c.Run.Node(), "run", c.Run.ID.String(), "evidence", string(evidences[c.Run.Evidence]), "why", c.Run.Detail)
	case state.Appointed:
		recovery("gms: appointed", c.Recovery)
	case state.FenceRaised:
		recovery("gms: fence raised", c.Recovery)
	case state.RecoveryParked:
		recovery("gms: recovery parked, an operator must look", c.Recovery)
	case state.RecoveryEnded:
		recovery("gms: recovery ended", c.Recovery)
	}
}

func (s *signalling) nodeOf(run []byte) (node string) {
	id, ok := state.RunIDOf(run)
	if !ok {
		return ""
	}
	s.g.rep.read(func(m *state.Machine) {
		if r, ok := m.Run(id); ok {
			node = r.Node()
		}
	})
	return node
}

var roles = map[wire.Role]signals.Role{
	wire.Role_ROLE_CORE: signals.Core, wire.Role_ROLE_SPECTATOR: signals.Spectator,
	wire.Role_ROLE_WATCHDOG: signals.Watchdog, wire.Role_ROLE_WITNESS: signals.Witness,
}

func roleOf(r signals.Role) wire.Role {
	for w, s := range roles {
		if s == r {
			return w
		}
	}
	return wire.Role_ROLE_UNSPECIFIED
}

// memberOf shows a run as the host sees it.
func memberOf(r state.Run) signals.Member {
	m := signals.Member{
		Node: r.Node(), Run: r.ID.String(), Role: roles[r.Open.GetRole()], Epoch: r.Epoch, Ready: r.Ready, Details: r.Open.GetDetails(),
	}
	for _, c := range r.Open.GetComponents() {
		m.Components = append(m.Components, c.GetName())
	}
	return m.Clone()
}

// viewOf shows a view as the host sees it; a run that is not kept any more shows what the view itself says.
func viewOf(m *state.Machine, v state.View) signals.View {
	out := signals.View{Version: v.Version}
	for _, mem := range v.Members {
		if run, ok := m.Run(mem.Run); ok {
			out.Members = append(out.Members, memberOf(run))
			continue
		}
		out.Members = append(out.Members, signals.Member{Node: mem.Node, Run: mem.Run.String(), Role: roles[mem.Role], Epoch: mem.Epoch})
	}
	return out
}
