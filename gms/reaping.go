package gms

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// reapPatience is how long a leader leads before it forgets anybody: after a restart of all, nodes come back one by one,
// and a wall clock that was set is not the nodes' fault.
const reapPatience = 10 * time.Minute

// overdue tells which nodes have been gone for ReapAfter, by the wall clocks of the leaders that closed their last runs and
// of this one, and have nothing left to recover. Voters are not among them.
func (l *leading) overdue() map[string]bool {
	after := l.g.cfg.ReapAfter
	if l.g.cfg.Clock.Now()-l.began < min(after, reapPatience) {
		return nil
	}
	var list map[string]bool
	voters := l.g.voterNodes()
	before := time.Now().Add(-after).UnixMilli()
	l.g.rep.read(func(m *state.Machine) {
		var busy map[string]bool
		for _, n := range m.Nodes() {
			if n.GetGone() == 0 || n.GetGone() > before || slices.Contains(voters, n.GetName()) {
				continue
			}
			if busy == nil {
				busy = make(map[string]bool)
				for _, r := range m.Recoveries() {
					busy[r.GetNode()] = true
				}
			}
			if !busy[n.GetName()] {
				if list == nil {
					list = make(map[string]bool)
				}
				list[n.GetName()] = true
			}
		}
	})
	return list
}

// reap forgets the overdue nodes that are not in the configuration any more: planVoters removes those first. Their homes
// are not burnt, so that a node that comes back after all is a newcomer.
func (l *leading) reap(overdue map[string]bool, listed []server) {
	for node := range overdue {
		if slices.ContainsFunc(listed, func(s server) bool { return s.node == node }) {
			continue
		}
		l.g.log.Info("gms: node has been gone for so long that it is forgotten", "node", node, "reap_after", l.g.cfg.ReapAfter.String())
		_ = l.commit(&wire.Command{Op: &wire.Command_ForgetNode{ForgetNode: &wire.ForgetNode{Node: node}}}) // the next tick looks again
	}
}
