package consensus

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streams is Streams in the shape that Raft's transport wants. It remembers every open connection, because the transport
// closes none of them when it ends.
type streams struct {
	Streams
	address string
	ctx     context.Context // ends with the node; dials of Raft carry no context of their own
	cancel  context.CancelFunc

	mu     sync.Mutex
	open   map[*trackedConn]struct{}
	closed bool
	gone   chan struct{} // closed with it
}

func newStreams(s Streams, address string) *streams {
	ctx, cancel := context.WithCancel(context.Background())
	return &streams{Streams: s, address: address, ctx: ctx, cancel: cancel, open: map[*trackedConn]struct{}{}, gone: make(chan struct{})}
}

// Addr is Raft's name for this node.
func (s *streams) Addr() net.Addr { return nodeAddr(s.address) }

type nodeAddr string

func (a nodeAddr) Network() string { return "node" }
func (a nodeAddr) String() string  { return string(a) }

// Accept gives the library nothing: what comes in goes through admit.
func (s *streams) Accept() (net.Conn, error) {
	<-s.gone
	return nil, net.ErrClosed
}

// admit waits for the next connection of another node.
func (s *streams) admit() (net.Conn, string, error) {
	conn, node, err := s.Streams.Accept()
	if err != nil {
		return nil, "", err
	}
	tracked, err := s.track(conn)
	return tracked, node, err
}

func (s *streams) Dial(address raft.ServerAddress, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	conn, err := s.Streams.Dial(ctx, string(address))
	if err != nil {
		return nil, err
	}
	return s.track(conn)
}

func (s *streams) track(conn net.Conn) (net.Conn, error) {
	c := &trackedConn{Conn: conn, in: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close() // nobody will use it
		return nil, net.ErrClosed
	}
	s.open[c] = struct{}{}
	return c, nil
}

// Close ends the listener, all dials and all connections.
func (s *streams) Close() error {
	s.cancel()
	err := s.Streams.Close()
	s.mu.Lock()
	if !s.closed {
		close(s.gone)
	}
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // its reader sees the end
	}
	return err
}

type trackedConn struct {
	net.Conn
	in *streams
}

func (c *trackedConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}
