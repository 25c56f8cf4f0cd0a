package gms

import (
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

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
	case state.NodeForgotten:
		log.Info("gms: node forgotten", "node", c.Node, "for_good", c.Burnt)
	case state.LeaderChanged:
		log.Info("gms: leader changed", "node", c.Node, "term", c.Term)
	case state.GroupAnnounced:
		log.Info("gms: group announcement", "by", c.Run.Node(), "kind", c.Kind.String(), "phase", c.Phase.String())
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
