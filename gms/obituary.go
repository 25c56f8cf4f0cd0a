package gms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/rpc"
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

// Announcement says whose obituary is to be brought to the group, and from where: the home of the node that died tells the
// addresses of the others.
type Announcement struct {
	Home     string  // the node's home
	Group    string  // the group's name
	Node     string  // the node that died
	Obituary []byte  // as signed
	Network  Network // nil: the system's
	// Certificates are the node's; nil where its cluster port is plain.
	Certificates *certs.Source
}

// Announce brings an obituary to the members that the home remembers, again and again until the leader takes it or refuses
// it, or ctx ends: when the leader itself has died, the next one takes it. It is called by a warden, in a process of its
// own, and needs no group. ErrRunClosed: the run is not open (any more), so there is nothing to bury. Other errors say who
// refused or could not be reached.
func Announce(ctx context.Context, a Announcement) error {
	if a.Network == nil {
		a.Network = SystemNetwork{}
	}
	h := &homeDir{dir: a.Home}
	memory, err := h.read(a.Group)
	if err != nil {
		return fmt.Errorf("announce: read home %s: %w", filepath.Base(a.Home), err)
	}
	cluster, err := memory.clusterID()
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	keeper, err := openCertificates(a.Group, a.Node, a.Certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	dialer, err := rpc.NewDialer(rpc.DialerConfig{
		Network: a.Network, Certificates: keeper,
		Identity: func() rpc.Identity {
			return rpc.Identity{Group: a.Group, ClusterID: cluster, Node: a.Node, Home: h.id[:]}
		},
		Resolve: func(node string) (string, error) {
			if addr := memory.Cluster[node]; addr != "" {
				return addr, nil
			}
			return "", ErrNotFound
		},
	})
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	defer dialer.Stop()
	if len(memory.Cluster) == 0 {
		return nil // a group of one has nobody to tell
	}
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		over, err := announceToAll(ctx, dialer, memory.Cluster, a.Obituary)
		if over {
			return err
		}
		if !pause(ctx, nil, backoff) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// announceStagger is how long one member is waited for before another is asked as well: whoever is asked passes the obituary
// on to the leader, and the connection costs both sides more than all the rest.
const announceStagger = 25 * time.Millisecond

// announced is what one member answers. It is over when the leader has taken the obituary or has refused it.
type announced struct {
	over bool
	err  error
}

// announceToAll asks the members, in any order, until one of them ends it.
func announceToAll(ctx context.Context, dialer *rpc.Dialer, members map[string]string, obituary []byte) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	answers := make(chan announced, len(members))
	waiting, open := slices.Collect(maps.Keys(members)), 0
	errs := []error{errors.New("announce obituary: nobody took it")}
	for len(waiting) > 0 || open > 0 {
		var more <-chan time.Time
		if len(waiting) > 0 {
			node := waiting[0]
			waiting = waiting[1:]
			open++
			go func() { answers <- announceTo(ctx, dialer, node, obituary) }() // ends with ctx
			more = time.After(announceStagger)
		}
		select {
		case a := <-answers:
			if a.over {
				return true, a.err
			}
			open--
			errs = append(errs, a.err)
		case <-more:
		}
	}
	return false, errors.Join(errs...)
}

func announceTo(ctx context.Context, dialer *rpc.Dialer, node string, obituary []byte) announced {
	c, err := dialer.Client(node)
	var reply *wire.AnnounceReply
	if err == nil {
		reply, err = c.Announce(ctx, &wire.AnnounceRequest{Obituary: obituary})
	}
	switch {
	case err != nil:
		return announced{err: fmt.Errorf("%s: %w", node, err)}
	case reply.GetTaken():
		return announced{over: true}
	case reply.GetClosed():
		return announced{over: true, err: fmt.Errorf("%s: %w", node, ErrRunClosed)}
	}
	return announced{over: reply.GetDecided(), err: fmt.Errorf("%s: %s", node, reply.GetWhy())}
}
