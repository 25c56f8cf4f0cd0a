package gms

import (
	"slices"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/signals"
)

// resume goes on after a snapshot. What lies between is told as far as the views show it, which the snapshot brings; if
// they do not reach back to the last one seen, one signal has a gap mark (PROTOCOL.md 7).
func (s *signalling) resume(position uint64) {
	own, open, leader := s.g.ownRun(), false, ""
	var now, ready signals.View
	s.g.rep.read(func(m *state.Machine) {
		now = viewOf(m, m.View())
		if list := m.ReadyViews(); len(list) > 0 {
			ready = viewOf(m, list[len(list)-1])
		}
		open = m.IsOpen(own)
		leader, _ = m.Leader()
	})
	before, wereReady, led := s.view, s.ready, s.leader
	if !s.self.IsZero() {
		s.catchUp(before)
	}
	s.view, s.ready, s.leader = now, ready, leader
	switch {
	case !open:
		s.self = state.RunID{}
	case s.self != own:
		s.begin(own, position, nil)
		s.tellLeader(position)
	default:
		s.tellReady(position, wereReady)
		if leader != led {
			s.tellLeader(position)
		}
	}
}

// catchUp tells the run what happened after a view.
func (s *signalling) catchUp(from signals.View) {
	history := s.g.history()
	i := slices.IndexFunc(history, func(v signals.View) bool { return v.Version == from.Version })
	if i < 0 && len(history) > 0 && history[len(history)-1].Version > from.Version {
		s.gap = true
	}
	later := slices.IndexFunc(history, func(v signals.View) bool { return v.Version > from.Version })
	if later >= 0 {
		s.walk(from, history[later:], history[len(history)-1].Version+1)
	}
}

// walk tells of the differences of views that follow one another, of those before a position.
func (s *signalling) walk(from signals.View, views []signals.View, until uint64) {
	for _, v := range views {
		if v.Version >= until || s.self.IsZero() {
			return
		}
		for _, m := range from.Members {
			if !hasRun(v, m.Run) {
				s.deliver(s.ended(m, signals.Facts{Position: v.Version, View: v, PreviousView: from}))
			}
		}
		for _, m := range v.Members {
			if m.Role == signals.Core && !hasRun(from, m.Run) {
				_, rejoin := from.Member(m.Node)
				s.deliver(signals.Facts{Kind: signals.JoinNotification, Member: m, Position: v.Version, View: v, PreviousView: from, Rejoin: rejoin})
			}
		}
		if !s.self.IsZero() && hasRun(from, s.self.String()) && !hasRun(v, s.self.String()) {
			s.self = state.RunID{}
		}
		from = v
	}
}

// ended tells of the end of a member whose run may be forgotten by now.
func (s *signalling) ended(m signals.Member, f signals.Facts) signals.Facts {
	f.Kind, f.Member, f.Why = signals.FailureNotification, m, "it ended while this member was away"
	s.g.rep.read(func(sm *state.Machine) {
		id, err := parseRun(m.Run)
		if run, ok := sm.Run(id); err == nil && ok {
			describeClosed(run, false, &f)
		}
	})
	return f
}

// tellReady tells of who became ready meanwhile.
func (s *signalling) tellReady(position uint64, before signals.View) {
	for _, m := range s.ready.Members {
		if !hasRun(before, m.Run) {
			s.deliver(signals.Facts{
				Kind: signals.JoinedAndReadyNotification, Member: m, Position: position, View: s.view, PreviousView: s.view,
				ReadyView: s.ready, PreviousReadyView: before,
			})
		}
	}
}

func hasRun(v signals.View, run string) bool {
	return slices.ContainsFunc(v.Members, func(m signals.Member) bool { return m.Run == run })
}
