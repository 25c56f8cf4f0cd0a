package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// ether is a network in memory: named ports joined by pipes.
type ether struct {
	mu       sync.Mutex
	ports    map[string]*etherPort
	buffered bool // a write does not wait for its reader
}

type etherPort struct {
	*ether
	addr string
	ch   chan net.Conn
	once sync.Once
	done chan struct{}
}

func (e *ether) Listen(_ context.Context, _, addr string) (net.Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &etherPort{ether: e, addr: addr, ch: make(chan net.Conn), done: make(chan struct{})}
	e.ports[addr] = p
	return p, nil
}

func (e *ether) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	e.mu.Lock()
	p := e.ports[addr]
	e.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	a, b := net.Pipe()
	if e.buffered {
		a, b = bufferedPipe()
	}
	select {
	case p.ch <- b:
		return a, nil
	case <-p.done:
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *etherPort) Accept() (net.Conn, error) {
	select {
	case c := <-p.ch:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *etherPort) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.addr))
}

func (p *etherPort) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ports, p.addr)
	})
	return nil
}

// All of the port works in memory and in virtual time, and nothing is left when it has stopped.
func TestPortInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ether{ports: map[string]*etherPort{}}
		const addr = "10.0.0.2:7947"
		serverID := Identity{Group: "g", Node: "b", Run: id16(2)}
		clientID := Identity{Group: "g", Node: "a", Run: id16(1)}
		handler := newEcho()
		serve := func() *Server {
			s, err := NewServer(ServerConfig{Network: e, BindAddr: addr, Identity: func() Identity { return serverID }, Handler: handler})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s
		}
		d, err := NewDialer(DialerConfig{Network: e, Identity: func() Identity { return clientID }, Resolve: func(string) (string, error) { return addr, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Stop()
		s := serve()
		client, err := d.Client("b")
		if err != nil {
			t.Fatal(err)
		}
		session, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-handler.opened
		<-time.After(time.Hour) // keepalives pass
		if _, err := client.Ping(t.Context(), &wire.PingRequest{}); err != nil {
			t.Errorf("after an idle hour: %v", err)
		}

		start := time.Now()
		s.Stop()
		<-handler.ended
		if _, err := session.Recv(); !Unanswered(err) {
			t.Errorf("the session ended with %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the end of the server was seen after %v", took)
		}
		<-time.After(time.Hour) // the client's dials fail
		if _, err := client.Ping(t.Context(), &wire.PingRequest{}); !Unanswered(err) {
			t.Errorf("without a server: %v", err)
		}
		if err := d.LastError("b"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the last error is %v", err)
		}

		s = serve()
		defer s.Stop()
		d.Redial("b")
		synctest.Wait()
		if _, err := client.Ping(t.Context(), &wire.PingRequest{}); err != nil {
			t.Errorf("at once after its return: %v", err)
		}
	})
}

// A stranger that connects and says nothing is gone after the limit of a hello, and more of them than there is room for
// do not keep members out.
func TestSilentStrangersDoNotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ether{ports: map[string]*etherPort{}}
		id := func() Identity { return Identity{Group: "g", Node: "b"} }
		s, err := NewServer(ServerConfig{Network: e, BindAddr: "10.0.0.2:1", Identity: id, Handler: newEcho()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		var conns []net.Conn
		for range maxGreetings + 10 {
			conn, err := e.Dial(t.Context(), "tcp", "10.0.0.2:1")
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		start := time.Now()
		for _, c := range conns {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a stranger was answered")
			}
		}
		if took := time.Since(start); took != helloLimit {
			t.Errorf("the last stranger was gone after %v", took)
		}
		d, err := NewDialer(DialerConfig{Network: e, Identity: id, Resolve: func(string) (string, error) { return "", nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Stop()
		if _, err := d.Hello(t.Context(), "b", "10.0.0.2:1"); err != nil {
			t.Errorf("a member afterwards: %v", err)
		}
	})
}

// bufferedPipe is a pair of connections whose writes do not wait for their readers; what was written before a close can
// still be read.
func bufferedPipe() (net.Conn, net.Conn) {
	x, y := newBuffer(), newBuffer()
	return &bufferedConn{in: x, out: y}, &bufferedConn{in: y, out: x}
}

type buffer struct {
	mu      sync.Mutex
	data    []byte
	closed  bool
	changed chan struct{}
}

func newBuffer() *buffer { return &buffer{changed: make(chan struct{})} }

func (b *buffer) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

type bufferedConn struct {
	net.Conn
	in, out *buffer

	mu       sync.Mutex
	deadline time.Time
	gone     bool
}

func (c *bufferedConn) Read(p []byte) (n int, err error) {
	for {
		c.mu.Lock()
		end, gone := c.deadline, c.gone
		c.mu.Unlock()
		c.in.mu.Lock()
		changed := c.in.changed
		n = copy(p, c.in.data)
		c.in.data = c.in.data[n:]
		closed := c.in.closed
		c.in.mu.Unlock()
		switch {
		case gone:
			return 0, net.ErrClosed
		case n > 0:
			return n, nil
		case closed:
			return 0, io.EOF
		case !end.IsZero() && !time.Now().Before(end):
			return 0, os.ErrDeadlineExceeded
		}
		wait := time.Hour * 1000
		if !end.IsZero() {
			wait = time.Until(end)
		}
		select {
		case <-changed:
		case <-time.After(wait):
		}
	}
}

func (c *bufferedConn) Write(p []byte) (int, error) {
	ok := false
	c.out.change(func() {
		if ok = !c.out.closed; ok {
			c.out.data = append(c.out.data, p...)
		}
	})
	if !ok {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (c *bufferedConn) Close() error {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.in.change(func() { c.in.closed = true })
	c.out.change(func() { c.out.closed = true })
	return nil
}

func (c *bufferedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9)} }

func (c *bufferedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	c.in.change(func() {})
	return nil
}

func (c *bufferedConn) SetReadDeadline(t time.Time) error  { return c.SetDeadline(t) }
func (c *bufferedConn) SetWriteDeadline(t time.Time) error { return nil }
