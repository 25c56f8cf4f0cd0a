package gms

import (
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// auditEvery is how many entries lie between two comparisons of the replicas' states.
const auditEvery = 4096

// auditor is the leader's side of the comparison: it has a position marked, at which each replica keeps a hash of its
// state, and then tells its own hash of it in the log. A replica that differs ends with ErrDiverged.
type auditor struct {
	marked   uint64 // Raft index of the last request for a mark
	answered uint64 // position of the last hash told
}

func (g *Group) newAuditor() auditor {
	index, mark := g.rep.audited()
	return auditor{marked: index, answered: mark.Position}
}

// next is the command that is due; nil for none.
func (a *auditor) next(index uint64, mark state.AuditMarked) *wire.Audit {
	switch {
	case mark.Position > a.answered:
		a.answered = mark.Position
		return &wire.Audit{Position: mark.Position, Hash: mark.Hash[:]}
	case index >= a.marked+auditEvery:
		a.marked = index
		return &wire.Audit{}
	}
	return nil
}

// audit is called at each tick, by run only.
func (l *leading) audit() {
	index, mark := l.g.rep.audited()
	if c := l.audits.next(index, mark); c != nil {
		l.acts.Go(func() { _ = l.commit(&wire.Command{Op: &wire.Command_Audit{Audit: c}}) })
	}
}
