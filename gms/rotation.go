package gms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// The gossip keys of a running group are changed in three steps: KeyringAdd gives everybody the new key, KeyringUse has it
// used, and is refused until everybody is proven to have it, KeyringRemove takes the old one away. Everybody is each member
// of the view and each server of the log's configuration, also one that does not run: forget or replace a node that will not
// come back. Each member keeps the ring in its home. One that was away for a step learns the ring over the cluster port when
// it is back, after a removal too, from any member that its home remembers; one that remembers nobody any more needs a
// current key in its configuration and no gossip.keys in its home.
//
// All of it needs certificates, and a lease on the node that is asked: one change at a time, under the poll lock
// [KeyringLock].

// KeyringLock is the poll lock under which the keys are changed.
const KeyringLock = "/fencepost/keyring"

// KeyInfo is one gossip key.
type KeyInfo struct {
	Fingerprint string // by which people and the other calls name the key
	InUse       bool   // it encrypts
}

// KeyringMember is what one node has.
type KeyringMember struct {
	Node    string    // whose ring it is
	Version uint64    // of its ring
	Keys    []KeyInfo // the first one encrypts, all decrypt
	Problem string    // why nothing is known of it, or why it did not take a change; empty otherwise
}

// KeyringReport is what all have. Complete means that each node has the newest ring.
type KeyringReport struct {
	Version  uint64          // of the newest ring; it grows with each change
	Keys     []KeyInfo       // of the newest ring
	Members  []KeyringMember // every node that the group knows, those that did not answer included
	Complete bool            // each of them has the newest ring
}

// KeyringList asks everybody for its keys. Who does not answer is in the report; the error says that gossip has no keys here, or the node no certificate.
func (g *Group) KeyringList(ctx context.Context) (KeyringReport, error) {
	found, err := g.gatherRings(ctx)
	if err != nil {
		return KeyringReport{}, fmt.Errorf("list gossip keys: %w", err)
	}
	base, err := newest(found.rings())
	if err != nil {
		return KeyringReport{}, fmt.Errorf("list gossip keys: %w", err)
	}
	return found.report(base), nil
}

// KeyringAdd gives everybody a key of 16, 24 or 32 bytes, which will decrypt. It is no error when somebody could not be
// given it: see the report, and add it again. ErrBusy: somebody else is changing the keys.
func (g *Group) KeyringAdd(ctx context.Context, key []byte) (KeyringReport, error) {
	if err := checkKeys([][]byte{key}); err != nil {
		return KeyringReport{}, fmt.Errorf("add gossip key: %w", err)
	}
	return g.changeRing(ctx, "add gossip key", func(base ring, _ gathered) (ring, error) { return base.adding(key) })
}

// KeyringUse has everybody encrypt with a key that it has. ErrNotProven, and nothing is changed, while there is a node of
// which it is not known that it has the key. ErrNotFound: nobody has it. ErrBusy as KeyringAdd.
func (g *Group) KeyringUse(ctx context.Context, fingerprint string) (KeyringReport, error) {
	return g.changeRing(ctx, "use gossip key", func(base ring, all gathered) (ring, error) {
		if lacking := all.lacking(fingerprint); base.index(fingerprint) >= 0 && len(lacking) > 0 {
			return base, withHint(fmt.Errorf("%w: %s", ErrNotProven, strings.Join(lacking, "; ")),
				"start what is down and add the key again, or forget or replace a node that does not come back")
		}
		return base.using(fingerprint)
	})
}

// KeyringRemove takes a key away from everybody. ErrKeyInUse while somebody is known to encrypt with it. A node that does
// not answer is in the report: it learns the ring when it is back. ErrBusy as KeyringAdd.
func (g *Group) KeyringRemove(ctx context.Context, fingerprint string) (KeyringReport, error) {
	return g.changeRing(ctx, "remove gossip key", func(base ring, all gathered) (ring, error) { return all.removing(base, fingerprint) })
}

// removing takes a key out of the ring, unless somebody encrypts with it: a member that missed a change may still.
func (all gathered) removing(base ring, fingerprint string) (ring, error) {
	if users := all.using(fingerprint); len(users) > 0 {
		return base, withHint(fmt.Errorf("%w: key %s, by %s", ErrKeyInUse, fingerprint, strings.Join(users, ", ")),
			"use another key first, or again: `fencepost keyring use`")
	}
	return base.removing(fingerprint)
}

// changeRing makes one change of what everybody has, and reports what came of it.
func (g *Group) changeRing(ctx context.Context, what string, change func(ring, gathered) (ring, error)) (KeyringReport, error) {
	fail := func(err error) (KeyringReport, error) { return KeyringReport{}, fmt.Errorf("%s: %w", what, err) }
	lock, err := g.TryLock(ctx, KeyringLock)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := g.Unlock(context.WithoutCancel(ctx), lock); err != nil {
			g.log.Debug("gms: keyring lock not freed", "error", err)
		}
	}()
	found, err := g.gatherRings(ctx)
	if err != nil {
		return fail(err)
	}
	base, err := newest(found.rings())
	if err != nil {
		return fail(err)
	}
	next, err := change(base, found)
	if err != nil {
		return fail(err)
	}
	if err := lock.Context().Err(); err != nil {
		return fail(context.Cause(lock.Context()))
	}
	return g.askAll(ctx, &wire.KeyringRequest{Put: next.wire()}).report(next), nil
}

// gathered is what everybody said, in the order of nodes.
type gathered []told

type told struct {
	node string
	ring ring
	err  error
}

func (g *Group) gatherRings(ctx context.Context) (gathered, error) {
	if g.keeper == nil {
		return nil, withHint(errNoSecrets, "`fencepost certs` makes certificates")
	}
	if len(g.keys.now().keys) == 0 {
		return nil, withHint(errors.New("gossip is not encrypted on this node"), "give all nodes a key in their configuration and restart them")
	}
	return g.askAll(ctx, &wire.KeyringRequest{}), nil
}

// askAll asks everybody, this node included, all at once.
func (g *Group) askAll(ctx context.Context, r *wire.KeyringRequest) gathered {
	nodes := g.configuredNodes()
	all := make(gathered, len(nodes))
	var asking sync.WaitGroup
	for i, node := range nodes {
		asking.Go(func() {
			all[i] = told{node: node}
			var reply *wire.KeyringReply
			if node == g.cfg.Node {
				reply, all[i].err = g.ownRing(r)
			} else {
				reply, all[i].err = g.callRing(ctx, node, r)
			}
			if all[i].err == nil {
				all[i].ring, all[i].err = ringOf(reply.GetRing())
			}
			if all[i].err == nil && r.GetPut() != nil && !reply.GetTaken() {
				all[i].err = errors.New(reply.GetWhy())
			}
		})
	}
	asking.Wait()
	return all
}

func (g *Group) ownRing(r *wire.KeyringRequest) (*wire.KeyringReply, error) {
	if r.GetPut() != nil {
		if _, err := g.takeRing(r.GetPut(), g.cfg.Node); err != nil {
			return nil, err
		}
	}
	return &wire.KeyringReply{Ring: g.keys.now().wire(), Taken: true}, nil
}

// configuredNodes are the members of the view and the servers of the log's configuration.
func (g *Group) configuredNodes() []string {
	list := []string{g.cfg.Node}
	g.rep.read(func(m *state.Machine) {
		for _, mem := range m.View().Members {
			list = append(list, mem.Node)
		}
	})
	if g.consensusRuns() {
		for _, s := range g.cons.Configuration().Servers {
			list = append(list, s.Address)
		}
	}
	_, feeders := g.guide.servers()
	list = append(list, feeders...)
	slices.Sort(list)
	return slices.Compact(list)
}

func (all gathered) rings() []ring {
	var list []ring
	for _, t := range all {
		if t.err == nil {
			list = append(list, t.ring)
		}
	}
	return list
}

// lacking says of each node that is not proven to have a key why.
func (all gathered) lacking(fingerprint string) (list []string) {
	for _, t := range all {
		switch {
		case t.err != nil:
			list = append(list, fmt.Sprintf("%s: %v", t.node, t.err))
		case t.ring.index(fingerprint) < 0:
			list = append(list, t.node+": has it not")
		}
	}
	return list
}

// using lists the nodes that encrypt with a key.
func (all gathered) using(fingerprint string) (list []string) {
	for _, t := range all {
		if t.err == nil && t.ring.index(fingerprint) == 0 {
			list = append(list, t.node)
		}
	}
	return list
}

func (all gathered) report(base ring) KeyringReport {
	r := KeyringReport{Version: base.version, Keys: infosOf(base), Complete: true}
	for _, t := range all {
		m := KeyringMember{Node: t.node, Version: t.ring.version, Keys: infosOf(t.ring)}
		if t.err != nil {
			m.Problem = t.err.Error()
		}
		r.Complete = r.Complete && t.err == nil && t.ring.equal(base)
		r.Members = append(r.Members, m)
	}
	return r
}

func infosOf(r ring) []KeyInfo {
	var list []KeyInfo
	for i, f := range r.fingerprints() {
		list = append(list, KeyInfo{Fingerprint: f, InUse: i == 0})
	}
	return list
}
