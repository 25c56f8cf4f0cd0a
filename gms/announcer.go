package gms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// AnnouncerConfig says whose obituaries are to be brought to the group, and from where: the home of the node that died tells the
// addresses of the others.
type AnnouncerConfig struct {
	Home    string  // the node's home; required
	Group   string  // the group's name; required
	Node    string  // the node that died; required
	Network Network // nil: the system's
	// Certificates are the node's; nil where its cluster port is plain.
	Certificates *certs.Source
}

// Announcer brings obituaries to the members that a home remembers. It is a warden's, in a process of its own, and needs no
// group. One goroutine at a time calls it.
type Announcer struct {
	cfg AnnouncerConfig

	mu   sync.Mutex
	kept *audience   // by the last call, and not in use; nil: there is none
	rest *time.Timer // ends it
}

// audienceRest is how long connections are kept after an obituary: that nothing is left of a run is told moments after its death.
const audienceRest = time.Second

// audience is whom an announcer speaks to, as the home was when it was opened.
type audience struct {
	dialer  *rpc.Dialer
	home    [16]byte
	cluster []byte
	members map[string]string // addresses of cluster ports, by node
	heard   string            // who took the last obituary: the first to be asked again
}

// NewAnnouncer opens nothing.
func NewAnnouncer(cfg AnnouncerConfig) *Announcer {
	if cfg.Network == nil {
		cfg.Network = SystemNetwork{}
	}
	return &Announcer{cfg: cfg}
}

// Announce brings an obituary, as signed, to the members, again and again until the leader takes it or refuses it, or ctx ends:
// when the leader itself has died, the next one takes it. ErrRunClosed: the run is not open (any more), so there is nothing to
// bury. Other errors say who refused or could not be reached. Connections stay open for a second.
func (a *Announcer) Announce(ctx context.Context, obituary []byte) error {
	to, err := a.take()
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	defer a.leave(to)
	if len(to.members) == 0 {
		return nil // a group of one has nobody to tell
	}
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		over, err := to.announceToAll(ctx, obituary)
		if over {
			return err
		}
		if !pause(ctx, nil, backoff) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// take gives the audience that is kept, or a new one when the home has others in it by now.
func (a *Announcer) take() (*audience, error) {
	h := &homeDir{dir: a.cfg.Home}
	memory, err := h.read(a.cfg.Group)
	if err != nil {
		return nil, fmt.Errorf("read home %s: %w", filepath.Base(a.cfg.Home), err)
	}
	cluster, err := memory.clusterID()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	to := a.kept
	if a.kept = nil; to != nil {
		a.rest.Stop()
	}
	a.mu.Unlock()
	if to != nil && to.home == h.id && bytes.Equal(to.cluster, cluster) && maps.Equal(to.members, memory.Cluster) {
		return to, nil
	}
	to.close()
	return a.gather(h.id, cluster, memory.Cluster)
}

func (a *Announcer) gather(home [16]byte, cluster []byte, members map[string]string) (*audience, error) {
	keeper, err := openCertificates(a.cfg.Group, a.cfg.Node, a.cfg.Certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	dialer, err := rpc.NewDialer(rpc.DialerConfig{
		Network: a.cfg.Network, Certificates: keeper,
		Identity: func() rpc.Identity {
			return rpc.Identity{Group: a.cfg.Group, ClusterID: cluster, Node: a.cfg.Node, Home: home[:]}
		},
		Resolve: func(node string) (string, error) {
			if addr := members[node]; addr != "" {
				return addr, nil
			}
			return "", ErrNotFound
		},
	})
	if err != nil {
		return nil, err
	}
	return &audience{dialer: dialer, home: home, cluster: cluster, members: members}, nil
}

// leave keeps an audience for audienceRest.
func (a *Announcer) leave(to *audience) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = to
	a.rest = time.AfterFunc(audienceRest, func() {
		a.mu.Lock()
		mine := a.kept == to
		if mine {
			a.kept = nil
		}
		a.mu.Unlock()
		if mine {
			to.close()
		}
	})
}

// Close ends the connections that are still open. The announcer may be used again.
func (a *Announcer) Close() {
	a.mu.Lock()
	to := a.kept
	if a.kept = nil; to != nil {
		a.rest.Stop()
	}
	a.mu.Unlock()
	to.close()
}

func (to *audience) close() {
	if to != nil {
		to.dialer.Stop()
	}
}

// announceStagger is how long one member is waited for before another is asked as well: whoever is asked passes the obituary
// on to the leader, and the connection costs both sides more than all the rest.
const announceStagger = 25 * time.Millisecond

// announced is what one member answers. It is over when the leader has taken the obituary or has refused it.
type announced struct {
	node string
	over bool
	err  error
}

// announceToAll asks the members, in any order but who heard the last one first, until one of them ends it.
func (to *audience) announceToAll(ctx context.Context, obituary []byte) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	answers := make(chan announced, len(to.members))
	waiting, open := slices.Collect(maps.Keys(to.members)), 0
	if at := slices.Index(waiting, to.heard); at > 0 {
		waiting[0], waiting[at] = waiting[at], waiting[0]
	}
	errs := []error{errors.New("announce obituary: nobody took it")}
	for len(waiting) > 0 || open > 0 {
		var more <-chan time.Time
		if len(waiting) > 0 {
			node := waiting[0]
			waiting = waiting[1:]
			open++
			go func() { answers <- announceTo(ctx, to.dialer, node, obituary) }() // ends with ctx
			more = time.After(announceStagger)
		}
		select {
		case a := <-answers:
			if a.over {
				to.heard = a.node
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
		return announced{node: node, err: fmt.Errorf("%s: %w", node, err)}
	case reply.GetTaken():
		return announced{node: node, over: true}
	case reply.GetClosed():
		return announced{node: node, over: true, err: fmt.Errorf("%s: %w", node, ErrRunClosed)}
	}
	return announced{node: node, over: reply.GetDecided(), err: fmt.Errorf("%s: %s", node, reply.GetWhy())}
}
