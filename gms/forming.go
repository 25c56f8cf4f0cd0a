package gms

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/gossip"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// clusterID decodes the id that the home remembers.
func (f groupFile) clusterID() ([]byte, error) {
	id, err := hex.DecodeString(f.ClusterID)
	if err != nil || len(id) != 0 && len(id) != 16 {
		return nil, fmt.Errorf("group.json: cluster_id %q is not 32 hex digits", f.ClusterID)
	}
	return id, nil
}

// cluster is the id of the formed group, as far as it is known here; empty while unformed.
func (g *Group) cluster() []byte {
	var id []byte
	g.rep.read(func(m *state.Machine) { id = m.ClusterID() })
	if len(id) > 0 {
		return id
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

// learn takes the cluster id that a member of this group's label told, while none is known.
func (g *Group) learn(id []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) == 0 && len(id) == 16 {
		g.known = slices.Clone(id)
		g.announce()
	}
}

func (g *Group) meta(run state.RunID) *wire.Meta {
	return &wire.Meta{
		Protocol: wire.Protocol, Node: g.cfg.Node, Run: run.Bytes(), Home: g.home.id[:], ClusterId: g.cluster(), Role: roleOf(g.cfg.Role),
		ClusterAddr: g.clusterAddr, NodeKeyFp: g.home.id[:], KeyRing: g.keys.now().version,
	}
}

func (g *Group) startGossip(ctx context.Context, run state.RunID) (*gossip.Gossip, error) {
	meta, err := proto.Marshal(g.meta(run))
	if err != nil {
		return nil, err
	}
	bind, err := parseAddr(g.cfg.Gossip.Bind)
	if err != nil {
		return nil, err
	}
	t := g.cfg.Timing
	g.peers.reset()
	gos, err := gossip.New(gossip.Config{
		Name: g.cfg.Node + "/" + run.String(), Label: g.cfg.Group, BindAddr: bind.String(), AdvertiseAddr: g.gossipAddr,
		Keys: g.keys.now().keys, Network: g.cfg.Network, Meta: meta, Admit: g.admit, Logger: g.log,
		Timing: gossip.Timing{
			ProbeInterval: t.ProbeInterval, ProbeTimeout: t.ProbeTimeout, SuspicionMult: t.SuspicionMult, SuspicionMaxMult: t.MaxSuspicionMult,
			LeaveLinger: t.ProbeInterval,
		},
	})
	if err != nil {
		return nil, err
	}
	if err := gos.Start(ctx); err != nil {
		return nil, err
	}
	if err := g.keys.attach(gos); err != nil {
		gos.Stop()
		return nil, err
	}
	return gos, nil
}

// admit keeps out of gossip who is of another formed group, and runs that the log has closed (FIELD.md M6, M14).
func (g *Group) admit(m gossip.Member) error {
	meta, err := readMeta(m)
	if err != nil {
		return err
	}
	mine := g.cluster()
	if len(mine) > 0 && len(meta.GetClusterId()) > 0 && string(mine) != string(meta.GetClusterId()) {
		return fmt.Errorf("%w: cluster %s", ErrOtherGroup, hexID(meta.GetClusterId()))
	}
	burnt := false
	g.rep.read(func(m *state.Machine) { burnt = m.IsBurnt(meta.GetHome()) })
	if burnt {
		return ErrForgotten
	}
	if id, _ := state.RunIDOf(meta.GetRun()); g.isClosed(id) {
		return ErrRunClosed
	}
	return nil
}

// readMeta reads what a member says of itself, and holds that it has the form which the rest relies on.
func readMeta(m gossip.Member) (*wire.Meta, error) {
	meta := &wire.Meta{}
	if err := proto.Unmarshal(m.Meta, meta); err != nil {
		return nil, fmt.Errorf("its meta cannot be read: %w", err)
	}
	id, ok := state.RunIDOf(meta.GetRun())
	cluster := len(meta.GetClusterId())
	switch {
	case !ok || !nodeName.MatchString(meta.GetNode()) || m.Name != meta.GetNode()+"/"+id.String():
		return nil, errors.New("its meta is of another member")
	case cluster != 0 && cluster != 16 || len(meta.GetHome()) != 16:
		return nil, errors.New("its cluster or home is malformed")
	}
	if _, err := parseAddr(meta.GetClusterAddr()); err != nil {
		return nil, fmt.Errorf("its cluster address: %w", err)
	}
	return meta, nil
}

// isClosed tells whether the log has closed the run, as far as it is known here.
func (g *Group) isClosed(id state.RunID) (closed bool) {
	g.rep.read(func(m *state.Machine) {
		r, known := m.Run(id)
		closed = known && !r.IsOpen()
	})
	return closed
}

// isOver tells whether the log has closed the run, or forgotten it for a later one of its node.
func (g *Group) isOver(node string, id state.RunID) bool {
	run, ok := g.rep.open(node)
	return g.isClosed(id) || ok && run.ID != id
}

// hearGossip keeps the table of peers, and tells the leader's evidence machine.
func (g *Group) hearGossip(ctx context.Context, gos *gossip.Gossip) {
	for {
		e, err := gos.Next(ctx)
		if err != nil {
			return
		}
		meta := &wire.Meta{}
		if err := proto.Unmarshal(e.Member.Meta, meta); err != nil {
			g.log.Debug("gms: meta of a member cannot be read", "member", e.Member.Name, "error", err)
			continue
		}
		id, _ := state.RunIDOf(meta.GetRun())
		alive := e.Kind == gossip.Alive || e.Kind == gossip.Updated
		if alive {
			g.peers.put(meta, e.Member.Addr, true)
			g.learn(meta.GetClusterId())
			if meta.GetKeyRing() > g.keys.now().version {
				g.askRings()
			}
		} else {
			g.peers.gone(id)
		}
		g.gossipSays(id, alive)
	}
}

// tellMeta has the own meta name the cluster as soon as it is known (who has not heard of the forming cannot be reached
// otherwise, since connections between a formed and an unformed side are refused), and each new version of the key ring.
func (g *Group) tellMeta(ctx context.Context, gos *gossip.Gossip, run state.RunID) {
	told := &wire.Meta{}
	for {
		learned := g.Changed()
		formed := g.rep.watch(func(*state.Machine) {})
		now := g.meta(run)
		if len(now.GetClusterId()) > 0 {
			formed = nil
		}
		if formed == nil && !proto.Equal(now, told) {
			g.setMeta(ctx, gos, now)
			told = now
		}
		select {
		case <-ctx.Done():
			return
		case <-learned:
		case <-formed:
		}
	}
}

// setMeta replaces the own meta; it is set, whether the news was seen to leave or not.
func (g *Group) setMeta(ctx context.Context, gos *gossip.Gossip, m *wire.Meta) {
	meta, err := proto.Marshal(m)
	if err != nil {
		g.log.Warn("gms: meta not encoded", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := gos.SetMeta(ctx, meta); err != nil {
		g.log.Debug("gms: news of the meta still under way", "error", err)
	}
}

// startConsensus starts Raft at the first run: on the log of the home, or on a new one that is bootstrapped from the
// list when no formed group is to be found, or on an empty one that the leader will fill.
func (g *Group) startConsensus(ctx context.Context) error {
	if g.consensusRuns() {
		return nil
	}
	has, err := g.cons.HasState()
	if err != nil {
		return g.refused(fmt.Errorf("read the log of the home: %w", err), "see the message; the home may be damaged")
	}
	if memory := g.remembered(); !has && memory.ClusterID != "" && !memory.Fed {
		return g.refused(fmt.Errorf("start %s: %w: it has been a member, and its log is gone", g.cfg.Node, ErrOlderHome), emptyHome(g.cfg.Node))
	}
	founded := false
	if !has && slices.Contains(g.cfg.Bootstrap, g.cfg.Node) {
		if founded, err = g.found(ctx); err != nil {
			return err
		}
	}
	if !founded { // else there is no group yet that could have anything on record
		if err := g.checkHome(ctx); err != nil {
			return err
		}
	}
	err = g.cons.Start(ctx)
	if errors.Is(err, consensus.ErrDiskFull) {
		return g.refused(fmt.Errorf("%w: %w", ErrDiskFull, err), "make room on it; the node starts then")
	}
	if err != nil {
		return g.refused(fmt.Errorf("start the log of the home: %w", err), "see the message; the home may be damaged")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life != lifeStarted {
		return ErrStopped
	}
	g.wg.Go(func() { g.watchLeader(g.bg) })
	g.wg.Go(func() { g.leadLoop(g.bg) })
	g.wg.Go(func() { g.feedLoop(g.bg) })
	g.consStarted = true
	g.announce()
	return nil
}

// found bootstraps the log with the founders, unless a formed group is found instead.
func (g *Group) found(ctx context.Context) (bool, error) {
	servers, err := g.awaitFounders(ctx)
	if errors.Is(err, errFormed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := g.cons.Bootstrap(servers); err != nil {
		return false, g.refused(fmt.Errorf("bootstrap the group: %w", err), "see the message")
	}
	return true, nil
}

func (g *Group) consensusRuns() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.consStarted
}

// errFormed: a formed group answered, so nothing is bootstrapped.
var errFormed = errors.New("the group is formed already")

// awaitFounders waits until every node of the bootstrap list is alive in gossip, so that all of them bootstrap with the
// same servers, homes included; or until a member says that the group is formed.
func (g *Group) awaitFounders(ctx context.Context) ([]consensus.Server, error) {
	told := time.Now()
	for {
		list, changed := g.peers.alive()
		homes := make(map[string]string)
		for _, p := range list {
			if len(p.meta.GetClusterId()) > 0 {
				return nil, errFormed
			}
			homes[p.meta.GetNode()] = hexID(p.meta.GetHome())
		}
		var servers []consensus.Server
		var missing []string
		for _, node := range g.founders() {
			if homes[node] == "" {
				missing = append(missing, node)
				continue
			}
			servers = append(servers, consensus.Server{ID: server{node: node, home: homes[node]}.id(), Address: node, Voter: true})
		}
		if len(missing) == 0 {
			return servers, nil
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			g.log.Warn("gms: waiting for nodes of the bootstrap list to form the group", "missing", missing)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		case <-time.After(5 * time.Second):
		}
	}
}

// founders is the bootstrap list, sorted, each once.
func (g *Group) founders() []string {
	list := slices.Clone(g.cfg.Bootstrap)
	slices.Sort(list)
	return slices.Compact(list)
}

// rememberLoop keeps group.json up to date: the cluster id, and the addresses of the last view.
func (g *Group) rememberLoop(ctx context.Context) {
	for {
		memory := g.remembered()
		gf := groupFile{Version: groupFileVersion, Group: g.cfg.Group, ClusterID: memory.ClusterID, Peers: make(map[string]string), Cluster: make(map[string]string), Fed: memory.Fed}
		moved := g.guide.moved()
		changed := g.rep.watch(func(m *state.Machine) {
			if m.Formed() {
				gf.ClusterID = hexID(m.ClusterID())
			}
			for _, r := range m.Runs() {
				if r.IsOpen() && r.Node() != g.cfg.Node {
					gf.Peers[r.Node()], gf.Cluster[r.Node()] = r.Open.GetGossipAddr(), r.Open.GetClusterAddr()
				}
			}
		})
		if g.consensusRuns() {
			gf.Fed = gf.ClusterID != "" && g.cons.Bare()
		}
		g.peers.forget(g.isOver)
		if gf.Fed != memory.Fed || gf.ClusterID != memory.ClusterID || len(gf.Peers) > 0 && !(maps.Equal(gf.Peers, memory.Peers) && maps.Equal(gf.Cluster, memory.Cluster)) {
			if err := g.home.remember(gf); err != nil {
				g.log.Warn("gms: group not remembered", "error", err)
			}
			g.mu.Lock()
			g.memory = gf
			g.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-moved:
		}
		if !pause(ctx, nil, 100*time.Millisecond) {
			return
		}
	}
}

func (g *Group) remembered() groupFile {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.memory
}
