package consensus

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const acceptPause = 5 * time.Millisecond

// errNotSender: a call names another server than the node at the other end of its connection.
var errNotSender = errors.New("the call speaks for another server than its sender")

// door is one connection that another node has opened for Raft. The library tells of a call nothing but what the caller
// wrote into it, and believes that; so each connection has a transport of its own, whose calls are known to be the node's.
type door struct {
	node  string // as the network has proven it
	inner *raft.NetworkTransport
	conn  net.Conn
	stop  chan struct{}
	once  sync.Once
}

// close ends the connection and what waits for it.
func (d *door) close() {
	d.once.Do(func() {
		close(d.stop)
		_ = d.inner.Close() // never fails
		_ = d.conn.Close()  // its reader sees the end
	})
}

// check holds that a call's header names the node that sent it.
func (d *door) check(call raft.RPC) error {
	header, ok := call.Command.(raft.WithRPCHeader)
	if !ok {
		return fmt.Errorf("%w: there is no header", errNotSender)
	}
	h := header.GetRPCHeader()
	node, _, _ := strings.Cut(string(h.ID), "/")
	if node != d.node || string(h.Addr) != d.node {
		return fmt.Errorf("%w: %q at %q, from node %s", errNotSender, cut(h.ID), cut(h.Addr), d.node)
	}
	return nil
}

func cut(b []byte) []byte { return b[:min(len(b), 80)] }

// doorway gives the library one connection to accept.
type doorway struct {
	*door
	address string
	ready   chan net.Conn // capacity 1
}

func (w *doorway) Accept() (net.Conn, error) {
	select {
	case c := <-w.ready:
		return c, nil
	case <-w.stop:
		return nil, net.ErrClosed
	}
}

func (w *doorway) Close() error   { return nil }
func (w *doorway) Addr() net.Addr { return nodeAddr(w.address) }

func (w *doorway) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return nil, errors.New("this transport only answers")
}

// doorConn takes its door with it when the library has done with it.
type doorConn struct {
	net.Conn
	door *door
}

func (c *doorConn) Close() error {
	c.door.close()
	return nil
}

// admit serves connections of others until the transport is closed.
func (t *transport) admit(s *streams, inner func(raft.StreamLayer) *raft.NetworkTransport) {
	for {
		conn, node, err := s.admit()
		if err != nil {
			select {
			case <-t.stop:
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		w := &doorway{door: &door{node: node, conn: conn, stop: make(chan struct{})}, address: s.address, ready: make(chan net.Conn, 1)}
		w.inner = inner(w)
		w.ready <- &doorConn{Conn: conn, door: w.door} // now that the library may close it
		t.done.Go(func() { t.relay(w.door) })
	}
}

// relay passes the calls of one connection to Raft, and loses them while silent: the caller's time-out ends them.
func (t *transport) relay(d *door) {
	defer d.close()
	for {
		select {
		case call := <-d.inner.Consumer():
			if err := d.check(call); err != nil {
				t.warn("raft: refused", "error", err)
				return
			}
			if !t.silent() {
				t.inject(call)
			}
		case <-d.stop:
			return
		case <-t.stop:
			return
		}
	}
}
