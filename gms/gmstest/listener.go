package gmstest

import (
	"net"
	"net/netip"
)

// listener is an open stream port. Connections wait in it until they are accepted, as in a kernel.
type listener struct {
	process *process
	address string
	waiting []*conn
	closed  bool
	changed chan struct{} // closed and replaced when waiting or closed change
}

// offer hands a new connection over; with the network's lock held.
func (l *listener) offer(c *conn) {
	l.waiting = append(l.waiting, c)
	l.announce()
}

func (l *listener) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// unbind gives the port back, and breaks what waits in it; with the network's lock held. After a kill the listener stays
// unbound and silent until its owner closes it.
func (l *listener) unbind() {
	if l.process.listeners[l.address] == l {
		delete(l.process.listeners, l.address)
	}
	for _, c := range l.waiting {
		c.abort(nil)
	}
	l.waiting = nil
}

// Accept waits for the next connection; net.ErrClosed after Close.
func (l *listener) Accept() (net.Conn, error) {
	for {
		l.process.mu.Lock()
		changed, closed := l.changed, l.closed
		if len(l.waiting) > 0 {
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			l.process.mu.Unlock()
			return c, nil
		}
		l.process.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		<-changed
	}
}

// Close closes the port.
func (l *listener) Close() error {
	l.process.mu.Lock()
	defer l.process.mu.Unlock()
	l.unbind()
	l.closed = true
	l.announce()
	return nil
}

// Addr is the bound address.
func (l *listener) Addr() net.Addr { return tcpAddr(l.address) }

func tcpAddr(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

func udpAddr(s string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
