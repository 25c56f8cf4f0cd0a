package gmstest

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

const (
	maxDatagram = 65507
	socketQueue = 4096 // datagrams that wait to be read; more are lost
)

// socket is a datagram port: a net.PacketConn, and with a peer a connected net.Conn. The network's lock guards it.
type socket struct {
	process *process
	address string
	peer    string // when connected
	queue   []datagram
	refused bool // the peer's host has said that the port is closed
	closed  bool
	changed chan struct{}
	read    deadline
}

type datagram struct {
	data []byte
	from string
}

func (p *process) socket(address, peer string) (*socket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	address, err := p.take(address, func(a string) bool { return p.sockets[a] != nil })
	if err != nil {
		return nil, err
	}
	s := &socket{process: p, address: address, peer: peer, changed: make(chan struct{})}
	p.sockets[address] = s
	return s, nil
}

func (s *socket) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// unbind gives the port back. After a kill the socket stays unbound and silent until its owner closes it.
func (s *socket) unbind() {
	if s.process.sockets[s.address] == s {
		delete(s.process.sockets, s.address)
	}
}

// post sends a datagram on its way, unless it is lost; with the network's lock held.
func (n *network) post(d datagram, to string) {
	from, dest := hostOf(d.from), hostOf(to)
	l := n.link(from, dest)
	if l.Cut {
		return
	}
	copies := 1
	if n.chance(l.Loss) {
		copies = 0
	}
	if n.chance(l.Duplicate) {
		copies++
	}
	for range copies {
		time.AfterFunc(n.travel(l), func() { n.deliver(d, to) })
	}
}

// deliver takes a datagram in, or keeps it for a process that is paused, or has the host say that nobody is there.
func (n *network) deliver(d datagram, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[hostOf(to)]
	if h == nil {
		return
	}
	if n.link(hostOf(d.from), hostOf(to)).Rejected {
		n.unreachable(d.from, to)
		return
	}
	if h.paused {
		n.hold(h, func() { n.deliver(d, to) })
		return
	}
	if h.proc == nil || h.proc.sockets[to] == nil {
		n.unreachable(d.from, to)
		return
	}
	if s := h.proc.sockets[to]; (s.peer == "" || s.peer == d.from) && len(s.queue) < socketQueue {
		s.queue = append(s.queue, d)
		s.announce()
	}
}

func (n *network) hold(h *host, pass func()) {
	if len(h.held) < maxHeld {
		h.held = append(h.held, pass)
	}
}

// unreachable is the word of a host that a port is closed; it may be lost too. Only connected sockets hear it.
func (n *network) unreachable(to, port string) {
	l := n.link(hostOf(port), hostOf(to))
	if l.Cut || n.chance(l.Loss) {
		return
	}
	time.AfterFunc(n.travel(l), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		h := n.hosts[hostOf(to)]
		if h == nil || h.proc == nil {
			return
		}
		if s := h.proc.sockets[to]; s != nil && s.peer == port {
			s.refused = true
			s.announce()
		}
	})
}

func hostOf(address string) string { return netip.MustParseAddrPort(address).Addr().String() }

// ReadFrom waits for a datagram.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		s.process.mu.Lock()
		changed, late := s.changed, s.read.wait()
		var d datagram
		var err error
		switch {
		case s.closed:
			err = net.ErrClosed
		case s.read.passed():
			err = os.ErrDeadlineExceeded
		case s.refused:
			s.refused, err = false, syscall.ECONNREFUSED
		case len(s.queue) > 0:
			d, s.queue = s.queue[0], s.queue[1:]
		}
		s.process.mu.Unlock()
		switch {
		case err != nil:
			return 0, nil, err
		case d.from != "":
			return copy(b, d.data), udpAddr(d.from), nil
		}
		select {
		case <-changed:
		case <-late:
		}
	}
}

// WriteTo sends a datagram; that it is lost is no error.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) { return s.sendTo(b, to.String()) }

func (s *socket) sendTo(b []byte, to string) (int, error) {
	n := s.process.network
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.closed:
		return 0, net.ErrClosed
	case len(b) > maxDatagram:
		return 0, syscall.EMSGSIZE
	case s.process.dead:
		return len(b), nil // nobody hears the dead
	case s.refused:
		s.refused = false
		return 0, syscall.ECONNREFUSED
	}
	d := datagram{data: append([]byte(nil), b...), from: s.address}
	if h := n.hosts[s.process.ip]; h.paused {
		n.hold(h, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.post(d, to)
		})
		return len(b), nil
	}
	n.post(d, to)
	return len(b), nil
}

// Read waits for a datagram of the peer, or for its host's word that the port is closed.
func (s *socket) Read(b []byte) (int, error) {
	n, _, err := s.ReadFrom(b)
	return n, err
}

// Write sends a datagram to the peer.
func (s *socket) Write(b []byte) (int, error) { return s.sendTo(b, s.peer) }

// Close closes the port.
func (s *socket) Close() error {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	s.unbind()
	s.closed = true
	s.announce()
	return nil
}

// LocalAddr is the bound address.
func (s *socket) LocalAddr() net.Addr { return udpAddr(s.address) }

// RemoteAddr is the peer's, of a connected socket.
func (s *socket) RemoteAddr() net.Addr { return udpAddr(s.peer) }

// SetDeadline bounds reads; writes never wait.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline bounds reads.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	s.read.set(t)
	s.announce()
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }
