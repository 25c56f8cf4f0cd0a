package gms

import (
	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// renew takes a renewal; answer is called once it is decided, from a goroutine of the term.
func (l *leading) renew(r *wire.Renewal, answer func(*wire.RenewReply)) {
	ask := renewalAsk{renewal: r, at: l.g.cfg.Clock.Now(), answer: answer}
	select {
	case l.asks <- ask:
	case <-l.ctx.Done():
	}
}

// acknowledge answers renewals in batches, each only after a proof of leadership that began after its receipt
// (PROTOCOL.md 4).
func (l *leading) acknowledge() {
	for {
		var batch []renewalAsk
		select {
		case <-l.ctx.Done():
			return
		case a := <-l.asks:
			batch = append(batch, a)
		}
		for more := true; more; {
			select {
			case a := <-l.asks:
				batch = append(batch, a)
			default:
				more = false
			}
		}
		err := l.prove()
		if err != nil {
			l.g.log.Debug("gms: leadership not proved, no renewal is acknowledged", "error", err)
		}
		for _, a := range batch {
			if err != nil {
				a.answer(l.reply(a))
				continue
			}
			l.decide(a)
		}
	}
}

// prove proves that this node leads in this very term, whose first entry is applied: another term of this node's may have
// begun that is not known here yet.
func (l *leading) prove() error {
	if l.proof.Term() != l.term {
		return errTermEnded
	}
	if err := l.proof.Verify(l.ctx); err != nil {
		return err
	}
	if l.proof.Term() != l.term {
		return errTermEnded
	}
	return nil
}

// reply is an answer that acknowledges nothing yet.
func (l *leading) reply(a renewalAsk) *wire.RenewReply {
	return &wire.RenewReply{Seq: a.renewal.GetSeq(), Leader: l.g.cfg.Node, Term: l.term}
}

// decide acknowledges one renewal, unless its run is closed, or a closing of it is proposed with the outcome open.
func (l *leading) decide(a renewalAsk) {
	id, ok := state.RunIDOf(a.renewal.GetRun())
	reply := l.reply(a)
	l.mu.Lock()
	var run state.Run // read with mu held: what det has forgotten as closed is closed here too
	l.g.rep.read(func(m *state.Machine) {
		run, _ = m.Run(id)
		reply.Applied = m.Index()
	})
	if !ok || run.Open == nil || !run.IsOpen() {
		l.mu.Unlock()
		reply.RunClosed = true
		a.answer(reply)
		return
	}
	closing := l.g.closings.of(id) || l.det.Closing(detect.RunID(id))
	if closing || l.proof.Term() != l.term || !l.proof.IsLeader() { // one of unknown outcome is forgotten with the leadership
		l.mu.Unlock()
		reply.Closing = closing
		a.answer(reply)
		return
	}
	fresh := a.renewal.GetSeq() > l.renewed[id]
	if fresh { // what comes again, by the detour or from somebody who kept it, is no new sign of life
		l.renewed[id] = a.renewal.GetSeq()
		l.carryOut(l.det.Step(a.at, detect.Event{Kind: detect.Renewed, Run: detect.RunID(id)}))
		now := appliedReport{run: id, last: a.renewal.GetApplied()}
		if was := l.reports[run.Node()]; was.run == id {
			now.before = was.last
		}
		l.reports[run.Node()] = now
	}
	reply.Fences = l.renewFences(id, a, fresh)
	l.mu.Unlock()
	reply.Acknowledged, reply.Fed = true, !l.listed(server{node: run.Node(), home: hexID(run.Open.GetHome())}.id())
	a.answer(reply)
}

// renewFences tells which fences still stand, and renews them when the renewal is fresh; with l.mu held.
func (l *leading) renewFences(holder state.RunID, a renewalAsk, fresh bool) []*wire.FenceRenewal {
	var stand []*wire.FenceRenewal
	l.g.rep.read(func(m *state.Machine) {
		for _, f := range a.renewal.GetFences() {
			dead, _ := state.RunIDOf(f.GetRun())
			r, ok := m.Recovery(f.GetComponent(), dead)
			if ok && r.GetIndex() == f.GetIndex() && string(r.GetAppointee()) == string(holder[:]) {
				stand = append(stand, f)
				if fresh {
					l.expiries[expiryOf(r)] = a.at
				}
			}
		}
	})
	return stand
}
