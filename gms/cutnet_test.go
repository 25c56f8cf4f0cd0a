package gms

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// cutNet is the loopback network with a knife: nodes on different sides hear nothing of each other, in both directions and
// on open connections too, until it heals; streams lose nothing.
type cutNet struct {
	mu      sync.Mutex
	side    map[string]int    // by node; all 0 when whole
	owner   map[string]string // address (IP:port) → node, of listeners and of dialled connections
	changed chan struct{}
}

func newCutNet() *cutNet {
	return &cutNet{side: map[string]int{}, owner: map[string]string{}, changed: make(chan struct{})}
}

// cut puts the nodes on a side of their own; without nodes it heals.
func (n *cutNet) cut(nodes ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.side)
	for _, node := range nodes {
		n.side[node] = 1
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *cutNet) own(address, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owner[address] = node
}

// apart tells whether a node and an address are on different sides now, and when to ask again.
func (n *cutNet) apart(node, address string) (bool, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.side[node] != n.side[n.owner[address]], n.changed
}

// of is the network of one node, which is known to listen on the addresses.
func (n *cutNet) of(node string, addresses ...string) Network {
	for _, a := range addresses {
		n.own(a, node)
	}
	return nodeNet{n, node}
}

type nodeNet struct {
	net  *cutNet
	node string
}

func (n nodeNet) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := SystemNetwork{}.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return cutListener{l, n}, nil
}

func (n nodeNet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		apart, changed := n.net.apart(n.node, address)
		if !apart {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
	c, err := SystemNetwork{}.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.net.own(c.LocalAddr().String(), n.node)
	return newCutConn(c, n), nil
}

func (n nodeNet) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	c, err := SystemNetwork{}.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return cutPackets{c, n}, nil
}

type cutListener struct {
	net.Listener
	net nodeNet
}

func (l cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newCutConn(c, l.net), nil
}

// cutPackets loses what crosses the cut.
type cutPackets struct {
	net.PacketConn
	net nodeNet
}

func (p cutPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		k, from, err := p.PacketConn.ReadFrom(b)
		if err != nil {
			return k, from, err
		}
		if apart, _ := p.net.net.apart(p.net.node, from.String()); !apart {
			return k, from, nil
		}
	}
}

func (p cutPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	if apart, _ := p.net.net.apart(p.net.node, to.String()); apart {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}

// cutConn holds back what crosses the cut until it heals.
type cutConn struct {
	net.Conn
	net    nodeNet
	closed chan struct{}
	once   sync.Once

	reading sync.Mutex
	pending []byte // read while the other side was cut off

	mu          sync.Mutex
	read, write time.Time     // deadlines
	moved       chan struct{} // closed and replaced when one is set
}

func newCutConn(c net.Conn, n nodeNet) *cutConn {
	return &cutConn{Conn: c, net: n, closed: make(chan struct{}), moved: make(chan struct{})}
}

// await blocks while the two ends are apart; the error is that of a deadline or a close.
func (c *cutConn) await(deadline func() time.Time) error {
	for {
		apart, changed := c.net.net.apart(c.net.node, c.RemoteAddr().String())
		if !apart {
			return nil
		}
		c.mu.Lock()
		at, moved := deadline(), c.moved
		c.mu.Unlock()
		var late <-chan time.Time
		if !at.IsZero() {
			if !time.Now().Before(at) {
				return os.ErrDeadlineExceeded
			}
			t := time.NewTimer(time.Until(at))
			defer t.Stop()
			late = t.C
		}
		select {
		case <-changed:
		case <-moved:
		case <-late:
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

func (c *cutConn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	deadline := func() time.Time { return c.read }
	if err := c.await(deadline); err != nil {
		return 0, err
	}
	if len(c.pending) == 0 {
		k, err := c.Conn.Read(b)
		if k == 0 {
			if err != nil && c.await(deadline) != nil { // the end of a connection does not cross the cut either
				return 0, os.ErrDeadlineExceeded
			}
			return 0, err
		}
		c.pending = append(c.pending, b[:k]...)
	}
	if err := c.await(deadline); err != nil {
		return 0, err
	}
	k := copy(b, c.pending)
	c.pending = c.pending[k:]
	return k, nil
}

func (c *cutConn) Write(b []byte) (int, error) {
	if err := c.await(func() time.Time { return c.write }); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *cutConn) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *cutConn) SetDeadline(t time.Time) error {
	c.set(func() { c.read, c.write = t, t })
	return c.Conn.SetDeadline(t)
}

func (c *cutConn) SetReadDeadline(t time.Time) error {
	c.set(func() { c.read = t })
	return c.Conn.SetReadDeadline(t)
}

func (c *cutConn) SetWriteDeadline(t time.Time) error {
	c.set(func() { c.write = t })
	return c.Conn.SetWriteDeadline(t)
}
