package consensus

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// wires is a network of pipes between named nodes. A hold keeps what one node sends to another from arriving, as long as
// it lasts; nothing is lost.
type wires struct {
	mu    sync.Mutex
	ports map[string]*wirePort
	holds map[[2]string]chan struct{}

	buffered bool // a write does not wait for its reader
}

func newWires() *wires {
	return &wires{ports: map[string]*wirePort{}, holds: map[[2]string]chan struct{}{}}
}

func (w *wires) hold(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[[2]string{from, to}] = make(chan struct{})
}

func (w *wires) release(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := [2]string{from, to}
	if c := w.holds[k]; c != nil {
		close(c)
		delete(w.holds, k)
	}
}

func (w *wires) held(from, to string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds[[2]string{from, to}]
}

func (w *wires) port(name string) *wirePort {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &wirePort{wires: w, name: name, accept: make(chan *wireConn), done: make(chan struct{})}
	w.ports[name] = p
	return p
}

type wirePort struct {
	wires  *wires
	name   string
	accept chan *wireConn
	once   sync.Once
	done   chan struct{}
}

func (p *wirePort) Accept() (net.Conn, string, error) {
	select {
	case c := <-p.accept:
		return c, c.to, nil
	case <-p.done:
		return nil, "", net.ErrClosed
	}
}

func (p *wirePort) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *wirePort) Dial(ctx context.Context, to string) (net.Conn, error) {
	p.wires.mu.Lock()
	peer := p.wires.ports[to]
	p.wires.mu.Unlock()
	if peer == nil {
		return nil, fmt.Errorf("no node %s", to)
	}
	a, b := net.Pipe()
	if p.wires.buffered {
		a, b = bufferedPipe()
	}
	select {
	case peer.accept <- &wireConn{Conn: b, wires: p.wires, from: to, to: p.name, done: make(chan struct{})}:
		return &wireConn{Conn: a, wires: p.wires, from: p.name, to: to, done: make(chan struct{})}, nil
	case <-peer.done:
		return nil, fmt.Errorf("node %s is down", to)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type wireConn struct {
	net.Conn
	wires    *wires
	from, to string
	once     sync.Once
	done     chan struct{}
}

func (c *wireConn) Write(b []byte) (int, error) {
	for {
		h := c.wires.held(c.from, c.to)
		if h == nil {
			return c.Conn.Write(b)
		}
		select {
		case <-h:
		case <-c.done:
			return 0, net.ErrClosed
		}
	}
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}
