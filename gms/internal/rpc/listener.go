package rpc

import (
	"net"
	"sync"
)

const backlog = 32 // connections that wait to be accepted

// handover is a net.Listener whose connections come from the cluster port, after their hello.
type handover struct {
	addr net.Addr
	ch   chan net.Conn

	mu     sync.Mutex
	closed bool
	done   chan struct{}
}

func newHandover(addr net.Addr) *handover {
	return &handover{addr: addr, ch: make(chan net.Conn, backlog), done: make(chan struct{})}
}

// offer passes a connection on, unless nobody listens or too many wait.
func (h *handover) offer(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	select {
	case h.ch <- conn:
		return true
	default:
		return false
	}
}

func (h *handover) open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed
}

func (h *handover) Accept() (net.Conn, error) {
	select {
	case conn := <-h.ch:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept, and the connections that still wait.
func (h *handover) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	close(h.done)
	for {
		select {
		case conn := <-h.ch:
			_ = conn.Close() // nobody will use it
		default:
			return nil
		}
	}
}

func (h *handover) Addr() net.Addr { return h.addr }
