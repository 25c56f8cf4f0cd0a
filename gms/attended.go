package gms

import (
	"errors"
	"io"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// ackBacklog is how many answers to a run's renewals wait for its stream.
const ackBacklog = 16

// Session takes a run's renewals, while this node leads.
func (h handler) Session(stream wire.Cluster_SessionServer) error {
	l := h.g.leadingNow()
	if l == nil {
		return stream.Send(ended(&wire.Ended{Why: "not the leader", NotLeader: true, Leader: h.g.leaderHint()}))
	}
	if err := stream.SendHeader(nil); err != nil { // the stream is taken; see openSession
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	id, ok := state.RunIDOf(first.GetRenewal().GetRun())
	switch {
	case !ok:
		return errMalformed
	case !h.g.speaksFor(sender(stream.Context()), id):
		return errNotSender
	}
	return h.attended(stream, l, id, first.GetRenewal())
}

func ended(e *wire.Ended) *wire.SessionDown {
	return &wire.SessionDown{Msg: &wire.SessionDown_Ended{Ended: e}}
}

// attended serves one run's stream until it ends or the term does.
func (h handler) attended(stream wire.Cluster_SessionServer, l *leading, id state.RunID, r *wire.Renewal) error {
	l.follow() // the run may have been opened just now
	l.step(detect.Event{Kind: detect.StreamOpened, Run: detect.RunID(id)})
	goodbye := false
	defer func() {
		l.step(detect.Event{Kind: detect.StreamEnded, Run: detect.RunID(id), Goodbye: goodbye})
	}()
	acks := make(chan *wire.RenewReply, ackBacklog)
	answer := func(a *wire.RenewReply) { // all runs are answered by one goroutine, which must not wait for a stream
		select {
		case acks <- a:
		default: // whoever reads so slowly is answered when it renews again
		}
	}
	incoming := make(chan *wire.SessionUp)
	broken := make(chan error, 1)
	go func() { // ends when the handler returns, which ends the stream's context
		for {
			m, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			select {
			case incoming <- m:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	l.renew(r, answer)
	for {
		select {
		case <-l.ctx.Done():
			goodbye = true
			return stream.Send(ended(&wire.Ended{Why: "the leader's term has ended", NotLeader: true, Leader: h.g.leaderHint()}))
		case a := <-acks:
			if err := stream.Send(&wire.SessionDown{Msg: &wire.SessionDown_Ack{Ack: a}}); err != nil {
				return err
			}
			if !a.GetAcknowledged() && !a.GetRunClosed() { // it was told so, and the stream ends with it (PROTOCOL.md 4)
				goodbye = true
				return stream.Send(ended(whyRefused(a)))
			}
		case err := <-broken:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case m := <-incoming:
			if m.GetBye() != nil {
				goodbye = true
				return nil
			}
			if string(m.GetRenewal().GetRun()) != string(id[:]) {
				return errMalformed
			}
			if !h.g.speaksFor(sender(stream.Context()), id) {
				return errNotSender
			}
			l.renew(m.GetRenewal(), answer)
		}
	}
}

func whyRefused(a *wire.RenewReply) *wire.Ended {
	if a.GetClosing() {
		return &wire.Ended{Why: "a closing of the run is proposed, its outcome is open", Leader: a.GetLeader()}
	}
	return &wire.Ended{Why: "the leadership could not be proved", NotLeader: true}
}
