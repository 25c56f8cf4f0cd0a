package gms

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/rpc"
)

// openPorts opens the cluster port. The gossip port opens with each run; it is tried here, so that a taken port is an
// error of Start.
func (g *Group) openPorts(ctx context.Context) error {
	pc, err := g.cfg.Network.ListenPacket(ctx, "udp", g.cfg.Gossip.Bind)
	if err != nil {
		return withHint(fmt.Errorf("open the gossip port %s: %w", g.cfg.Gossip.Bind, err), "is a node running already? else choose another port: gossip.bind")
	}
	if err := pc.Close(); err != nil {
		return err
	}
	if g.dialer, err = rpc.NewDialer(rpc.DialerConfig{Network: g.cfg.Network, Identity: g.identity, Resolve: g.resolve}); err != nil {
		return err
	}
	if g.server, err = rpc.NewServer(rpc.ServerConfig{
		Network: g.cfg.Network, BindAddr: g.cfg.Cluster.Bind, Identity: g.identity, Handler: handler{g: g}, Logger: g.log,
	}); err != nil {
		return err
	}
	if err := g.server.Start(ctx); err != nil {
		return withHint(fmt.Errorf("%s: %w", g.cfg.Cluster.Bind, err), "is a node running already? else choose another port: cluster.bind")
	}
	g.clusterAddr = g.server.Addr().String()
	if a := g.cfg.Cluster.Advertise; a != "" {
		g.clusterAddr = a
	}
	return nil
}

// identity is what this process says in each hello.
func (g *Group) identity() rpc.Identity {
	cluster := g.cluster()
	g.mu.Lock()
	defer g.mu.Unlock()
	id := rpc.Identity{Group: g.cfg.Group, ClusterID: cluster, Node: g.cfg.Node, Home: g.home.id[:]}
	if !g.runID.IsZero() {
		id.Run = g.runID.Bytes()
	}
	return id
}

// raftStreams gives Raft its connections. The port takes them from the first Accept on: before Raft runs they are refused.
type raftStreams struct {
	open func() *rpc.Streams
}

func newRaftStreams(g *Group) raftStreams {
	return raftStreams{open: sync.OnceValue(func() *rpc.Streams { return g.server.Streams(g.dialer) })}
}

func (s raftStreams) Accept() (net.Conn, error) { return s.open().Accept() }
func (s raftStreams) Close() error              { return s.open().Close() }

func (s raftStreams) Dial(ctx context.Context, node string) (net.Conn, error) {
	return s.open().Dial(ctx, node)
}
