package gmstest

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/fencepost/fencepost/gms"
)

// Killable gives a node of a group in this process a network that can die: the system's, until kill closes every socket of
// the node at once and opens none any more. For the others that is kill -9: its streams break, its ports refuse. The node
// itself does not know, as a process would not that was cut off: it goes on until its lease runs out, and is to be stopped
// as any other. It is for tests and examples that cannot live in a synctest bubble, because they wait for real sockets,
// disks or databases; cfg is changed before gms.New. kill may be called from any goroutine, and more than once.
func Killable(cfg *gms.Config) (kill func()) {
	n := &mortal{open: map[io.Closer]bool{}}
	cfg.Network = n
	return n.die
}

// mortal is the system's network with all that is open.
type mortal struct {
	gms.SystemNetwork
	mu   sync.Mutex
	dead bool
	open map[io.Closer]bool
}

func (n *mortal) die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	for c := range n.open {
		_ = c.Close() // whoever uses it gets the error
	}
	clear(n.open)
}

// keep notes what was opened, or closes it when there is no life any more.
func (n *mortal) keep(c io.Closer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		_ = c.Close()
		return net.ErrClosed
	}
	n.open[c] = true
	return nil
}

func (n *mortal) forget(c io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, c)
}

// Listen implements gms.Network.
func (n *mortal) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := n.SystemNetwork.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return mortalListener{l, n}, n.keep(l)
}

// Dial implements gms.Network.
func (n *mortal) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.SystemNetwork.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return mortalConn{c, n}, n.keep(c)
}

// ListenPacket implements gms.Network.
func (n *mortal) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	c, err := n.SystemNetwork.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return mortalPackets{c, n}, n.keep(c)
}

type mortalListener struct {
	net.Listener
	n *mortal
}

// Accept implements net.Listener.
func (l mortalListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return mortalConn{c, l.n}, l.n.keep(c)
}

// Close implements net.Listener.
func (l mortalListener) Close() error {
	l.n.forget(l.Listener)
	return l.Listener.Close()
}

type mortalConn struct {
	net.Conn
	n *mortal
}

// Close implements net.Conn.
func (c mortalConn) Close() error {
	c.n.forget(c.Conn)
	return c.Conn.Close()
}

type mortalPackets struct {
	net.PacketConn
	n *mortal
}

// Close implements net.PacketConn.
func (c mortalPackets) Close() error {
	c.n.forget(c.PacketConn)
	return c.PacketConn.Close()
}
