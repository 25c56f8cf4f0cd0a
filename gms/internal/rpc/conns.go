package rpc

import (
	"bytes"
	"net"
	"sync"
)

// connSet remembers open connections, so that those of a closed run, or all, can be ended.
type connSet struct {
	mu     sync.Mutex
	open   map[*peerConn]struct{}
	closed bool
}

func newConnSet() *connSet { return &connSet{open: map[*peerConn]struct{}{}} }

// add takes a connection in; after closeAll it closes it and returns false.
func (s *connSet) add(conn net.Conn) (*peerConn, bool) {
	c := &peerConn{Conn: conn, raw: conn, in: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close() // nobody will use it
		return nil, false
	}
	s.open[c] = struct{}{}
	return c, true
}

// name says who turned out to be at the other end.
func (s *connSet) name(c *peerConn, p Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.peer = p
}

func (s *connSet) drop(run []byte) {
	if len(run) == 0 {
		return
	}
	s.closeIf(func(c *peerConn) bool { return bytes.Equal(c.peer.Run, run) })
}

func (s *connSet) closeAll() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeIf(func(*peerConn) bool { return true })
}

func (s *connSet) closeIf(match func(*peerConn) bool) {
	s.mu.Lock()
	var ending []*peerConn
	for c := range s.open {
		if match(c) {
			ending = append(ending, c)
			delete(s.open, c)
		}
	}
	s.mu.Unlock()
	for _, c := range ending {
		_ = c.raw.Close() // its user sees the end
	}
}

// peerConn is a connection with a known other end. TLS, if any, is put between Conn and raw before anybody else has it; a
// close takes raw away below it, since a goodbye of TLS could wait for seconds for a peer that does not read.
type peerConn struct {
	net.Conn
	raw  net.Conn
	peer Peer // guarded by in.mu until the hello is through
	in   *connSet
}

func (c *peerConn) RemoteAddr() net.Addr {
	return peerAddr{Addr: c.Conn.RemoteAddr(), peer: c.peer}
}

func (c *peerConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.raw.Close()
}
