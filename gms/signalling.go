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
	g      *Group
	view   signals.View // after the last entry taken
	ready  signals.View // of those that had reported themselves ready
	leader string
	self   state.RunID // this process' run, once the log has opened it and until it has closed it
	from   uint64      // the last view that the host has seen before this process, 0 for none or once it was used
	gap    bool        // the next signal says that some are missing before it
	quorum *quorum
	lost   bool // QuorumLost was delivered, and no QuorumRegained since
}

func newSignalling(g *Group) *signalling {
	return &signalling{g: g, from: g.cfg.ResumeFrom, quorum: newQuorum()}
}

// run delivers until ctx ends.
func (s *signalling) run(ctx context.Context) {
	for {
		feed, changed := s.g.rep.take()
		for _, f := range feed {
			s.entry(f)
		}
		s.tellQuorum()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-s.quorum.moved:
		}
	}
}

// entry delivers what one entry changed.
func (s *signalling) entry(f fed) {
	if f.gap {
		s.resume(f.position)
	}
	before, wereReady := s.view, s.ready
	for _, c := range f.changes {
		if c, ok := c.(state.ReadyViewChanged); ok {
			s.ready = s.show(c.View)
		}
	}
	for i, c := range f.changes {
		s.log(c, f.position)
		s.follow(c)
		opened, ok := c.(state.RunOpened)
		own := ok && opened.Run.ID == s.g.ownRun()
		if own {
			s.begin(opened.Run.ID, f.position, f.changes[i:])
		}
		facts := signals.Facts{Position: f.position, View: s.view, PreviousView: before}
		if s.describe(c, &facts) {
			if tellsReady(facts.Kind) {
				facts.ReadyView, facts.PreviousReadyView = s.ready, wereReady
			}
			s.deliver(facts)
		}
		if own {
			s.tellLeader(f.position)
		}
		if closed, ok := c.(state.RunClosed); ok && closed.Run.ID == s.self {
			s.self = state.RunID{}
		}
	}
}

func tellsReady(k signals.Kind) bool {
	return k == signals.JoinedAndReadyNotification || k == signals.FailureNotification || k == signals.PlannedShutdown
}

// show is viewOf by the present state.
func (s *signalling) show(v state.View) (out signals.View) {
	s.g.rep.read(func(m *state.Machine) { out = viewOf(m, v) })
	return out
}

// deliver hands a signal on while this process has a run that the log has open.
func (s *signalling) deliver(facts signals.Facts) {
	if s.self.IsZero() {
		return
	}
	facts.Gap, s.gap = s.gap, false
	s.hand(facts)
}

func (s *signalling) hand(facts signals.Facts) {
	facts.Group, facts.StartTime = s.g.cfg.Group, facts.Member.StartTime
	if err := s.g.router.Deliver(signals.NewNotice(facts)); err != nil {
		s.g.log.Debug("gms: signal not delivered", "kind", facts.Kind, "error", err)
	}
}

// begin is the opening of this process' run. It is told of the members that are there already, but for those that the
// rest of the entry, its own opening first, tells of; or, when the host said which view it saw last, of what has happened
// since.
func (s *signalling) begin(run state.RunID, position uint64, rest []state.Change) {
	s.self = run
	from := s.from
	s.from = 0
	if from > 0 {
		history := s.g.history()
		if i := slices.IndexFunc(history, func(v signals.View) bool { return v.Version == from }); i >= 0 {
			s.walk(history[i], history[i+1:], position)
			return
		}
		s.gap = true
	}
	for _, m := range s.view.Members {
		told := slices.ContainsFunc(rest, func(c state.Change) bool {
			opened, ok := c.(state.RunOpened)
			return ok && opened.Run.ID.String() == m.Run
		})
		if m.Role == signals.Core && !told {
			s.deliver(signals.Facts{Kind: signals.JoinNotification, Member: m, Position: position, View: s.view, PreviousView: s.view})
		}
	}
}

// tellLeader tells a run that begins who leads.
func (s *signalling) tellLeader(position uint64) {
	if s.leader != "" {
		s.deliver(signals.Facts{
			Kind: signals.GroupLeadershipNotification, Member: s.member(s.leader), Position: position, View: s.view, PreviousView: s.view,
		})
	}
}

// member shows a node of the present view; one without a run there shows its name only.
func (s *signalling) member(node string) signals.Member {
	if m, ok := s.view.Member(node); ok {
		return m
	}
	return signals.Member{Node: node}
}

// follow keeps the view as it was after the entry, whatever the replica has applied since.
func (s *signalling) follow(c state.Change) {
	var run state.Run
	switch c := c.(type) {
	case state.ViewChanged:
		s.view = s.show(c.View)
		return
	case state.LeaderChanged:
		s.leader = c.Node
		return
	case state.GroupAnnounced:
		s.view = s.view.Clone()
		s.view.GroupStarting, s.view.GroupStopping = c.Starting, c.Stopping
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
		describeClosed(c.Run, c.GroupShutdown, f)
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
	case state.LeaderChanged:
		f.Kind, f.Member = signals.GroupLeadershipNotification, s.member(c.Node)
	case state.GroupAnnounced:
		f.Kind, f.Member, f.Phase = signals.GroupStartup, memberOf(c.Run), phases[c.Phase]
		if c.Kind == wire.AnnounceGroup_KIND_SHUTDOWN {
			f.Kind = signals.GroupShutdown
		}
	default:
		return false
	}
	return true
}

func describeClosed(run state.Run, groupShutdown bool, f *signals.Facts) {
	f.Kind, f.Member, f.Evidence, f.Why = signals.FailureNotification, memberOf(run), evidences[run.Evidence], run.Detail
	if f.Evidence == signals.Left {
		f.Kind, f.Shutdown = signals.PlannedShutdown, signals.ShutdownInstance
		if groupShutdown {
			f.Shutdown = signals.ShutdownGroup
		}
	}
}
