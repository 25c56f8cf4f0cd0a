package gms

import (
	"context"
	"crypto/ed25519"
	"errors"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// An obituary is what the warden of a node signs when it has seen the node's process die (package recovery/warden makes
// it). Numbers are big endian:
//
//	 0   8  "FPOBIT1\n"
//	 8   1  1: the run died, 2: nothing that it started is left
//	 9  16  run id
//	25   8  generation of the home
//	33  16  nonce
//	49   1  n, length of the node's name, 1 to 63
//	50   n  the node's name
//	50+n 64 ed25519 signature over all bytes before it, by the key that the run registered when it was opened
//
// and nothing after it. It holds for one run for ever, so that a replayed one finds its run closed.
const (
	obituaryMagic = "FPOBIT1\n"
	obituaryFixed = 50
	obituaryDied  = 1
	quiescedToo   = 2 // nothing of it is left
)

var (
	errNoObituary = errors.New("not an obituary")
	errForged     = errors.New("not signed by the warden of that run")
)

// readObituary takes an obituary apart, without believing it.
func readObituary(signed []byte) (what byte, run state.RunID, node string, err error) {
	if len(signed) < obituaryFixed+1+ed25519.SignatureSize || string(signed[:8]) != obituaryMagic {
		return 0, run, "", errNoObituary
	}
	n := int(signed[49])
	if n < 1 || n > 63 || len(signed) != obituaryFixed+n+ed25519.SignatureSize {
		return 0, run, "", errNoObituary
	}
	return signed[8], state.RunID(signed[9:25]), string(signed[50 : 50+n]), nil
}

// verifyObituary checks it against the run that the log has open, or has closed and still knows when nothing of it is left.
func (g *Group) verifyObituary(signed []byte) (what byte, run state.Run, err error) {
	what, id, node, err := readObituary(signed)
	if err != nil {
		return 0, run, err
	}
	g.rep.read(func(m *state.Machine) { run, _ = m.Run(id) })
	switch {
	case run.Open == nil || !run.IsOpen() && what != quiescedToo:
		return 0, run, ErrRunClosed
	case run.Node() != node:
		return 0, run, errForged
	}
	key, end := run.Open.GetWardenKey(), len(signed)-ed25519.SignatureSize
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, signed[:end], signed[end:]) {
		return 0, run, errForged
	}
	return what, run, nil
}

// Announce takes an obituary, or passes it on once to the leader.
func (h handler) Announce(ctx context.Context, r *wire.AnnounceRequest) (*wire.AnnounceReply, error) {
	leader := h.g.leaderHint()
	l := h.g.leadingNow()
	if l == nil {
		if r.GetPassedOn() || leader == "" || leader == h.g.cfg.Node {
			return &wire.AnnounceReply{Why: "no leader is known here", Leader: leader}, nil
		}
		c, err := h.g.client(leader)
		if err != nil {
			return nil, err
		}
		return c.Announce(ctx, &wire.AnnounceRequest{Obituary: r.GetObituary(), PassedOn: true})
	}
	what, run, err := h.g.verifyObituary(r.GetObituary())
	if err != nil {
		if errors.Is(err, ErrRunClosed) {
			h.g.log.Debug("gms: obituary of a run that is closed")
		} else {
			h.g.log.Warn("gms: obituary refused", "why", err.Error())
		}
		return &wire.AnnounceReply{Why: err.Error(), Decided: true, Closed: errors.Is(err, ErrRunClosed), Leader: h.g.cfg.Node}, nil
	}
	return l.bury(what, run), nil
}

// bury takes a verified obituary. Who is quiesced has died too; what it says beyond that counts once the run is closed,
// so that nothing is believed of a run that answers a ping.
func (l *leading) bury(what byte, run state.Run) *wire.AnnounceReply {
	log := l.g.log.With("node", run.Node(), "run", run.ID.String())
	reply := &wire.AnnounceReply{Leader: l.g.cfg.Node}
	if run.IsOpen() {
		log.Info("gms: obituary")
		l.follow()
		l.step(detect.Event{Kind: detect.Obituary, Run: detect.RunID(run.ID)})
		reply.Taken, reply.Why = what == obituaryDied, "the run is not closed yet"
		return reply
	}
	if run.Quiesced {
		reply.Taken = true // every member passes it on
		return reply
	}
	log.Info("gms: nothing of the run is left")
	cmd := &wire.Command{Op: &wire.Command_NoteQuiesced{NoteQuiesced: &wire.NoteQuiesced{Run: run.ID.Bytes()}}}
	if err := l.commit(cmd); err != nil {
		reply.Why = err.Error()
		return reply
	}
	reply.Taken = true
	return reply
}
