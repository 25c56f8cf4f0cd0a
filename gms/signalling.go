package gms

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// signalling turns what the log changed into signals for this run, in the log's order. Signals that a member must not
// miss (FailureRecovery) are not made here: package recovery drives them from the state.
type signalling struct {
	g *Group

	mu    sync.Mutex
	ended map[expiry]time.Duration // when this node applied the last entry that ended a holder (PROTOCOL.md 22)
}

func newSignalling(g *Group) *signalling {
	return &signalling{g: g, ended: make(map[expiry]time.Duration)}
}

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
	view, previous := s.views(f)
	for _, c := range f.changes {
		s.log(c, f.position)
		s.note(c)
		facts := signals.Facts{Group: s.g.cfg.Group, Position: f.position, View: view, PreviousView: previous}
		if s.describe(c, &facts) && s.concerns(f.position) {
			if err := s.g.router.Deliver(signals.NewNotice(facts)); err != nil {
				s.g.log.Debug("gms: signal not delivered", "kind", facts.Kind, "error", err)
			}
		}
	}
}

// concerns tells whether the entry lies in the present run's time: from its opening on.
func (s *signalling) concerns(position uint64) bool {
	st := s.g.standingNow()
	return st != nil && position >= st.epoch
}

func (s *signalling) views(f fed) (view, previous signals.View) {
	s.g.rep.read(func(m *state.Machine) {
		view = viewOf(m, m.View())
		previous = view
		for _, c := range f.changes {
			if v, ok := c.(state.ViewChanged); ok {
				view, previous = viewOf(m, v.View), viewOf(m, v.Previous)
			}
		}
	})
	return view, previous
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

// note keeps the times that exclusion by lease counts from.
func (s *signalling) note(c state.Change) {
	now := s.g.cfg.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c := c.(type) {
	case state.RunClosed:
		s.ended[expiry{fence: fenceRef{run: c.Run.ID}}] = now
	case state.AppointmentEnded:
		dead, _ := state.RunIDOf(c.Recovery.GetRun())
		s.ended[expiry{fence: fenceRef{component: c.Recovery.GetComponent(), run: dead}}] = now
	case state.RecoveryEnded:
		dead, _ := state.RunIDOf(c.Recovery.GetRun())
		delete(s.ended, expiry{fence: fenceRef{component: c.Recovery.GetComponent(), run: dead}})
	}
}

// leaseWait is what is left of a TTL since the last holder ended; a full one when this node did not see it end.
func (s *signalling) leaseWait(e expiry, now, ttl time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, seen := s.ended[expiry{fence: fenceRef{run: e.fence.run}}]
	if !seen {
		return ttl
	}
	since = max(since, s.ended[e])
	return max(0, since+ttl-now)
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
