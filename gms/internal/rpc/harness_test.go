package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// limit is generous: it ends a test that hangs, and decides nothing.
const limit = 60 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// system is the machine's network.
type system struct{}

func (system) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, network, address)
}

func (system) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func id16(b byte) []byte {
	id := make([]byte, idSize)
	id[0] = b
	return id
}

// node is one process: its port, its dialer and what it says of itself.
type node struct {
	t   *testing.T
	srv *Server
	d   *Dialer

	mu    sync.Mutex
	id    Identity
	where map[string]string
}

func newNode(t *testing.T, name string, run byte, handler wire.ClusterServer) *node {
	t.Helper()
	n := &node{t: t, where: map[string]string{}}
	n.id = Identity{Group: "g", Node: name, Run: id16(run), Home: id16(run)}
	var err error
	n.srv, err = NewServer(ServerConfig{Network: system{}, BindAddr: "127.0.0.1:0", Identity: n.identity, Handler: handler})
	if err != nil {
		t.Fatal(err)
	}
	n.d, err = NewDialer(DialerConfig{Network: system{}, Identity: n.identity, Resolve: n.resolve})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.d.Stop(); n.srv.Stop() })
	return n
}

func (n *node) identity() Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

func (n *node) become(change func(*Identity)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.id)
}

func (n *node) resolve(name string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.where[name]; a != "" {
		return a, nil
	}
	return "", errors.New("nowhere")
}

// knows tells n where another node is.
func (n *node) knows(name string, other *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.where[name] = other.srv.Addr().String()
}

// echo answers calls and tells of its streams.
type echo struct {
	wire.UnimplementedClusterServer
	opened chan Peer
	ended  chan error // why the context of a stream ended
}

func newEcho() *echo { return &echo{opened: make(chan Peer, 8), ended: make(chan error, 8)} }

func (e *echo) Ping(ctx context.Context, r *wire.PingRequest) (*wire.PingReply, error) {
	p, ok := PeerFrom(ctx)
	if !ok {
		return nil, errors.New("nobody calls")
	}
	return &wire.PingReply{Alive: true, Run: p.Run}, nil
}

func (e *echo) Session(s wire.Cluster_SessionServer) error {
	p, _ := PeerFrom(s.Context())
	e.opened <- p
	<-s.Context().Done()
	e.ended <- s.Context().Err()
	return nil
}
