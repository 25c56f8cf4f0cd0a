package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

const defaultDialLimit = 2 * time.Second

// DialerConfig says what a [Dialer] is. Network, Identity and Resolve are required.
type DialerConfig struct {
	Network Network
	// Identity is asked at each hello, from any goroutine; it must not block.
	Identity func() Identity
	// Resolve gives the cluster address (host:port) of a node: from gossip, else the last one known. It must not block.
	Resolve func(node string) (string, error)
	// Certificates put TLS below the connections and prove who is at both ends; nil means plain.
	Certificates *certs.Keeper
	// Limit bounds dialling and the hello together; default 2 s.
	Limit time.Duration
	// Misfit is told when a member of the group says that this writes a protocol which does not fit this program; it must not
	// block. nil: nobody is told.
	Misfit func(agreed uint32)
	// Logger takes connections that were refused; nil discards them.
	Logger *slog.Logger
}

// Dialer opens connections to the cluster ports of other nodes and says hello on them.
type Dialer struct {
	cfg   DialerConfig
	log   *grumbler
	conns *connSet

	mu      sync.Mutex
	clients map[string]*pooled // by node
	stopped bool
	ctx     context.Context // ends with Stop
	cancel  context.CancelFunc
}

type pooled struct {
	addr   string
	conn   *grpc.ClientConn
	client wire.ClusterClient

	mu   sync.Mutex
	last error // of the last dial; nil after one that worked
}

// NewDialer checks the configuration. It opens nothing.
func NewDialer(cfg DialerConfig) (*Dialer, error) {
	switch {
	case cfg.Network == nil:
		return nil, errors.New("rpc: Network is nil")
	case cfg.Identity == nil:
		return nil, errors.New("rpc: Identity is nil")
	case cfg.Resolve == nil:
		return nil, errors.New("rpc: Resolve is nil")
	}
	if cfg.Limit == 0 {
		cfg.Limit = defaultDialLimit
	}
	d := &Dialer{cfg: cfg, log: newGrumbler(cfg.Logger), conns: newConnSet(), clients: map[string]*pooled{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// Hello asks whether a node answers at an address, without a connection remaining; an empty node is any of the group. It
// returns the answer also beside [ErrOtherGroup] and [ErrRefused].
func (d *Dialer) Hello(ctx context.Context, node, addr string) (*wire.Hello, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	conn, answer, err := d.open(ctx, node, addr, wire.Hello_KIND_PROBE)
	if conn != nil {
		_ = conn.Close() // it has served
	}
	return answer, err
}

// Raft opens a connection for Raft to a node.
func (d *Dialer) Raft(ctx context.Context, node string) (net.Conn, error) {
	addr, err := d.cfg.Resolve(node)
	if err != nil {
		return nil, fmt.Errorf("find node %s: %w", node, err)
	}
	return d.dialNode(ctx, node, addr, wire.Hello_KIND_RAFT)
}

// bounded gives a context that ends with ctx, with Stop and after the limit.
func (d *Dialer) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Limit)
	undo := context.AfterFunc(d.ctx, cancel)
	return ctx, func() { undo(); cancel() }
}

func (d *Dialer) dialNode(ctx context.Context, node, addr string, kind wire.Hello_Kind) (net.Conn, error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	conn, _, err := d.open(ctx, node, addr, kind)
	if err != nil {
		if conn != nil {
			_ = conn.Close() // the error that counts is err
		}
		tellMisfit(err, d.cfg.Misfit)
		d.log.distrust(err)
		d.log.say("rpc: no connection", node, err)
		return nil, fmt.Errorf("connect to node %s: %w", node, err)
	}
	return conn, nil
}

// open dials and says hello; it must be the node that answers, if one is named. The connection and the answer may be there
// beside an error.
func (d *Dialer) open(ctx context.Context, node, addr string, kind wire.Hello_Kind) (*peerConn, *wire.Hello, error) {
	raw, err := d.cfg.Network.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	conn, ok := d.conns.add(raw)
	if !ok {
		return nil, nil, ErrStopped
	}
	if d.cfg.Certificates != nil {
		conn.Conn = secureClient(raw, d.cfg.Certificates, node)
	}
	answer, err := greet(ctx, conn.Conn, d.cfg.Identity(), kind)
	if answer != nil && node != "" && answer.Node != node {
		err = errors.Join(fmt.Errorf("%w at %s: %q, not %q", ErrWrongNode, addr, answer.Node, node), err)
	}
	if answer != nil && err == nil {
		d.conns.name(conn, peerOf(answer))
		d.log.trusted(answer.Node)
	}
	return conn, answer, err
}

// Client gives the calls of a node. It returns at once: the connection is made by the first call, kept, made again when
// it breaks, and replaced when the node's address changes. The error is Resolve's, or [ErrStopped].
func (d *Dialer) Client(node string) (wire.ClusterClient, error) {
	addr, err := d.cfg.Resolve(node)
	if err != nil {
		return nil, fmt.Errorf("find node %s: %w", node, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil, ErrStopped
	}
	old := d.clients[node]
	if old != nil && old.addr == addr {
		return old.client, nil
	}
	p, err := d.newClient(node, addr)
	if err != nil {
		return nil, err
	}
	d.clients[node] = p
	if old != nil {
		_ = old.conn.Close() // its calls end as unavailable
	}
	return p.client, nil
}

func (d *Dialer) newClient(node, addr string) (*pooled, error) {
	p := &pooled{addr: addr}
	conn, err := grpc.NewClient("passthrough:///cluster",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS, if any, lies below the hello
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := d.dialNode(ctx, node, addr, wire.Hello_KIND_RPC)
			p.note(err)
			return c, err
		}),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveWait, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 250 * time.Millisecond},
			MinConnectTimeout: d.cfg.Limit,
		}))
	if err != nil {
		return nil, fmt.Errorf("make the client of node %s: %w", node, err)
	}
	p.conn, p.client = conn, wire.NewClusterClient(conn)
	return p, nil
}

func (p *pooled) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
}

// Redial ends the pause that a client's connection makes after failed dials, for a caller that has heard that the node
// is back.
func (d *Dialer) Redial(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.clients[node]; p != nil {
		p.conn.ResetConnectBackoff()
	}
}

// LastError tells why the last attempt of Client's connection to a node failed, with the errors of a hello in it; nil
// when it worked or none was made. gRPC itself passes on the text only.
func (d *Dialer) LastError(node string) error {
	d.mu.Lock()
	p := d.clients[node]
	d.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Distrusted are the nodes whose certificates did not count when they were dialled of late, each with why: an ErrUntrusted,
// for people.
func (d *Dialer) Distrusted() map[string]error { return d.log.distrusted() }

// Drop ends all connections to the given run, Raft's and those of clients; the next call dials anew.
func (d *Dialer) Drop(run []byte) { d.conns.drop(run) }

// Stop ends all connections and dials. It may be called more than once; afterwards all calls fail.
func (d *Dialer) Stop() {
	d.mu.Lock()
	d.stopped = true
	clients := d.clients
	d.clients = map[string]*pooled{}
	d.mu.Unlock()
	d.cancel()
	d.conns.closeAll() // first: gRPC waits for seconds for a write that blocks
	for _, p := range clients {
		_ = p.conn.Close() // the first close never fails
	}
}
