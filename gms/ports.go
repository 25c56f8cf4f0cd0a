package gms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/fencepost/fencepost/gms/certs"
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
	bind, err := parseAddr(g.cfg.Gossip.Bind)
	if err != nil {
		return err
	}
	if g.gossipAddr, err = g.advertised("gossip", g.cfg.Gossip, bind); err != nil {
		return err
	}
	if g.keeper, err = openCertificates(g.cfg.Group, g.cfg.Node, g.cfg.Certificates, g.log); err != nil {
		return err
	}
	if g.dialer, err = rpc.NewDialer(rpc.DialerConfig{
		Network: g.cfg.Network, Identity: g.identity, Resolve: g.resolve, Certificates: g.keeper, Misfit: g.misfit, Logger: g.log,
	}); err != nil {
		return err
	}
	if g.server, err = rpc.NewServer(rpc.ServerConfig{
		Network: g.cfg.Network, BindAddr: g.cfg.Cluster.Bind, Identity: g.identity, Handler: handler{g: g}, Admit: admitCall, Certificates: g.keeper, Misfit: g.misfit, Logger: g.log,
	}); err != nil {
		return err
	}
	if err := g.server.Start(ctx); err != nil {
		return withHint(fmt.Errorf("%s: %w", g.cfg.Cluster.Bind, err), "is a node running already? else choose another port: cluster.bind")
	}
	bound, err := netip.ParseAddrPort(g.server.Addr().String())
	if err != nil {
		return fmt.Errorf("read the bound address: %w", err)
	}
	g.clusterAddr, err = g.advertised("cluster", g.cfg.Cluster, bound)
	return err
}

// openCertificates reads a node's certificates for the first time; nil when there are none.
func openCertificates(group, node string, source *certs.Source, log *slog.Logger) (*certs.Keeper, error) {
	if source == nil {
		return nil, nil
	}
	k, err := certs.NewKeeper(certs.Name{Group: group, Node: node}, *source, func(err error) {
		log.Warn("gms: certificate cannot be read, the last good one stays in use", "error", err)
	})
	switch {
	case errors.Is(err, certs.ErrExpired):
		return nil, withHint(err, "`fencepost certs renew --node "+node+"`, where the authority's key is")
	case errors.Is(err, certs.ErrOtherName), errors.Is(err, certs.ErrStranger):
		return nil, withHint(err, "`fencepost certs show` tells whose a certificate is, `fencepost certs issue` makes one")
	}
	return k, err
}

// identity is what this process says in each hello.
func (g *Group) identity() rpc.Identity {
	cluster, agreed := g.cluster(), g.Protocol()
	g.mu.Lock()
	defer g.mu.Unlock()
	id := rpc.Identity{Group: g.cfg.Group, ClusterID: cluster, Agreed: agreed, Node: g.cfg.Node, Home: g.home.id[:]}
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

func (s raftStreams) Accept() (net.Conn, string, error) {
	conn, err := s.open().Accept()
	if err != nil {
		return nil, "", err
	}
	return conn, rpc.PeerOf(conn).Node, nil
}

func (s raftStreams) Close() error { return s.open().Close() }

func (s raftStreams) Dial(ctx context.Context, node string) (net.Conn, error) {
	return s.open().Dial(ctx, node)
}
