package gms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A node that was away while keys were changed learns the newer ring over the cluster port, where certificates prove who
// asks and who answers: at its start, when gossip tells of a newer one, and while no member answers its gossip.

const (
	ringLimit = 2 * time.Second // for one member's answer
	ringPause = 3 * time.Second // between two rounds of asking
)

// errNoSecrets: keys are told between certificates only.
var errNoSecrets = errors.New("gossip keys are told between certificates only, and this node has none")

// Keyring tells this node's ring, and takes a newer one.
func (h handler) Keyring(ctx context.Context, r *wire.KeyringRequest) (*wire.KeyringReply, error) {
	if h.g.keeper == nil {
		return nil, errNoSecrets
	}
	reply := &wire.KeyringReply{}
	if r.GetPut() != nil {
		taken, err := h.g.takeRing(r.GetPut(), sender(ctx))
		reply.Taken = taken
		if err != nil {
			reply.Why = err.Error()
		}
	}
	reply.Ring = h.g.keys.now().wire()
	return reply, nil
}

// takeRing makes a ring that a member told this node's, when it is newer.
func (g *Group) takeRing(w *wire.KeyRing, from string) (taken bool, err error) {
	r, err := ringOf(w)
	if err != nil {
		return false, err
	}
	before := g.keys.now()
	taken, err = g.keys.take(r)
	if taken && !r.equal(before) {
		g.log.Info("gms: gossip keys changed", "by", from, "ring", r.version, "keys", r.fingerprints())
		g.mu.Lock()
		g.announce() // the meta tells the version
		g.mu.Unlock()
	}
	return taken, err
}

// askRings lets the next round of asking begin; it never blocks.
func (g *Group) askRings() {
	select {
	case g.ringWanted <- struct{}{}:
	default:
	}
}

// ringLoop asks members for a newer ring, until ctx ends.
func (g *Group) ringLoop(ctx context.Context) {
	for g.keeper != nil && len(g.keys.now().keys) > 0 {
		g.pullRings(ctx)
		if !pause(ctx, nil, ringPause) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-g.ringWanted:
		}
	}
}

// pullRings asks every node that is known, all at once.
func (g *Group) pullRings(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, node := range g.knownNodes() {
		asking.Go(func() {
			reply, err := g.callRing(ctx, node, &wire.KeyringRequest{})
			if err == nil && reply.GetRing().GetVersion() > g.keys.now().version {
				_, err = g.takeRing(reply.GetRing(), node)
			}
			if err != nil {
				g.log.Debug("gms: gossip keys not asked for", "node", node, "error", err)
			}
		})
	}
}

func (g *Group) callRing(ctx context.Context, node string, r *wire.KeyringRequest) (*wire.KeyringReply, error) {
	ctx, cancel := context.WithTimeout(ctx, ringLimit)
	defer cancel()
	c, err := g.client(node)
	if err != nil {
		return nil, err
	}
	reply, err := c.Keyring(ctx, r)
	if err != nil {
		if last := g.dialer.LastError(node); last != nil {
			err = last // it says more
		}
		return nil, fmt.Errorf("no answer: %w", err)
	}
	return reply, nil
}

// knownNodes are the other nodes that the home remembers, gossip has heard of or the log has.
func (g *Group) knownNodes() []string {
	var list []string
	for node := range g.remembered().Cluster {
		list = append(list, node)
	}
	alive, _ := g.peers.alive()
	for _, p := range alive {
		list = append(list, p.meta.GetNode())
	}
	g.rep.read(func(m *state.Machine) {
		for _, r := range m.Runs() {
			if r.IsOpen() {
				list = append(list, r.Node())
			}
		}
	})
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(n string) bool { return n == g.cfg.Node })
}
