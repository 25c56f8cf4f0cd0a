package gms

import (
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// MemberState is what this node knows of a node's life.
type MemberState string

// States of a member.
const (
	StateUnknown       MemberState = "unknown"         // the group has never heard of it, or has forgotten it
	StateStarting      MemberState = "starting"        // gossip holds it alive, and its run is not open yet
	StateAlive         MemberState = "alive"           // its run is open
	StateAliveAndReady MemberState = "alive-and-ready" // its run is open and ready for work
	StateInDoubt       MemberState = "in-doubt"        // its run is open and suspected
	StateStopping      MemberState = "stopping"        // its run is open while the whole group is being shut down
	StateStopped       MemberState = "stopped"         // its last run left by itself
	StateDead          MemberState = "dead"            // its last run was closed by anything else
)

// IsAlive tells whether the state is one of a run that is open and not in doubt.
func (s MemberState) IsAlive() bool {
	return s == StateAlive || s == StateAliveAndReady || s == StateStopping
}

// MemberState is what this node knows of a node, from its copy of the log and from gossip. It does not block.
func (g *Group) MemberState(node string) (s MemberState) {
	g.rep.read(func(m *state.Machine) { s = memberState(m, node) })
	if s == StateAlive || s == StateAliveAndReady || s == StateInDoubt || s == StateStopping {
		return s
	}
	list, _ := g.peers.alive()
	for _, p := range list {
		if id, _ := state.RunIDOf(p.meta.GetRun()); p.meta.GetNode() == node && !g.isOver(node, id) {
			return StateStarting
		}
	}
	return s
}

// IsMemberAlive is MemberState, shortened.
func (g *Group) IsMemberAlive(node string) bool { return g.MemberState(node).IsAlive() }

// memberState is what the log knows.
func memberState(m *state.Machine, node string) MemberState {
	n, known := m.Node(node)
	if !known {
		return StateUnknown
	}
	last, _ := state.RunIDOf(n.GetLastRun())
	switch run, kept := m.Run(last); {
	case !kept || !run.IsOpen() && run.Evidence != wire.Evidence_EVIDENCE_LEFT:
		return StateDead
	case !run.IsOpen():
		return StateStopped
	case run.Suspected:
		return StateInDoubt
	case m.Stopping():
		return StateStopping
	case run.Ready:
		return StateAliveAndReady
	}
	return StateAlive
}
