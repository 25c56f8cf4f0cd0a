package gmstest

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// window is how many bytes of one direction may be under way or unread before a write waits.
const window = 1 << 20

// flow is one direction of a stream: pieces arrive in order, each at its time, and none while the link is cut or one of
// the two processes is paused. The network's lock guards it.
type flow struct {
	net      *network
	from, to string
	sent     []piece
	arrived  []byte
	end      error // after what has arrived; nil while open
	size     int   // bytes in sent and arrived
	last     time.Time
	refused  bool  // the reader is gone: writes fail
	back     *flow // the other direction, when the reader vanished: what arrives is answered with a reset
	timer    *time.Timer
	changed  chan struct{} // closed and replaced when a reader or writer should look again
}

// piece is one write, or the end of the stream.
type piece struct {
	at   time.Time
	data []byte
	end  error
}

func newFlow(n *network, from, to string) *flow {
	return &flow{net: n, from: from, to: to, changed: make(chan struct{})}
}

func (f *flow) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// send puts a piece on its way.
func (f *flow) send(p piece) {
	l := f.net.link(f.from, f.to)
	p.at = time.Now().Add(f.net.travel(l))
	for f.net.chance(l.Loss) {
		p.at = p.at.Add(retransmission)
	}
	if p.at.Before(f.last) {
		p.at = f.last
	}
	f.last = p.at
	f.size += len(p.data)
	f.sent = append(f.sent, p)
	f.net.flows[f] = struct{}{}
	if len(f.sent) == 1 {
		f.arm()
	}
}

// arm sets the timer for the next piece, unless it cannot pass: then announce of the network comes back here.
func (f *flow) arm() {
	if len(f.sent) == 0 || f.net.stalled(f.from, f.to) {
		return
	}
	wait := max(time.Until(f.sent[0].at), 0)
	if f.timer == nil {
		f.timer = time.AfterFunc(wait, f.arrive)
		return
	}
	f.timer.Reset(wait)
}

// arrive takes in what is due.
func (f *flow) arrive() {
	f.net.mu.Lock()
	defer f.net.mu.Unlock()
	if f.net.stalled(f.from, f.to) {
		return
	}
	now := time.Now()
	for len(f.sent) > 0 && !f.sent[0].at.After(now) {
		p := f.sent[0]
		f.sent = f.sent[1:]
		switch {
		case f.refused || f.end != nil:
			f.size -= len(p.data)
			if f.back != nil {
				f.back.send(piece{end: syscall.ECONNRESET})
				f.back = nil
			}
		case p.end != nil:
			f.end = p.end
		default:
			f.arrived = append(f.arrived, p.data...)
		}
	}
	if len(f.sent) == 0 {
		delete(f.net.flows, f)
	}
	f.arm()
	f.announce()
}

// conn is one end of a stream, a net.Conn.
type conn struct {
	process       *process
	local, remote string
	in, out       *flow
	closed        bool
	read, write   deadline
}

// abort ends both directions. The peer gets why after what was sent before (nil: that the stream is over).
func (c *conn) abort(why error) {
	if c.closed {
		return
	}
	if why == nil {
		why = io.EOF
	}
	c.out.send(piece{end: why})
	c.gone()
}

// vanish ends both directions, and the peer hears of it only when it sends something.
func (c *conn) vanish() {
	if !c.closed {
		c.in.back = c.out
		c.gone()
	}
}

func (c *conn) gone() {
	c.closed = true
	delete(c.process.conns, c)
	c.in.refused = true
	c.in.size -= len(c.in.arrived)
	c.in.arrived = nil
	c.in.announce()
	c.out.announce()
}

// Close ends the stream: the peer reads what was written, then the end.
func (c *conn) Close() error {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.abort(nil)
	return nil
}

// Read reads what has arrived, or waits for it.
func (c *conn) Read(b []byte) (int, error) {
	for {
		n, changed, late, err := c.tryRead(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		select {
		case <-changed:
		case <-late:
		}
	}
}

func (c *conn) tryRead(b []byte) (n int, changed, late <-chan struct{}, err error) {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	switch {
	case c.closed:
		return 0, nil, nil, net.ErrClosed
	case c.read.passed():
		return 0, nil, nil, os.ErrDeadlineExceeded
	case len(c.in.arrived) > 0:
		n = copy(b, c.in.arrived)
		c.in.arrived = c.in.arrived[n:]
		if c.in.size >= window && c.in.size-n < window {
			c.in.announce()
		}
		c.in.size -= n
		return n, nil, nil, nil
	case c.in.end != nil:
		return 0, nil, nil, c.in.end
	}
	return 0, c.in.changed, c.read.wait(), nil
}

// Write puts bytes on their way; it waits only while too many are.
func (c *conn) Write(b []byte) (int, error) {
	for {
		done, changed, late, err := c.tryWrite(b)
		if err != nil {
			return 0, err
		}
		if done {
			return len(b), nil
		}
		select {
		case <-changed:
		case <-late:
		}
	}
}

func (c *conn) tryWrite(b []byte) (done bool, changed, late <-chan struct{}, err error) {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	switch {
	case c.closed:
		return false, nil, nil, net.ErrClosed
	case c.write.passed():
		return false, nil, nil, os.ErrDeadlineExceeded
	case c.in.end == syscall.ECONNRESET, c.out.refused && c.in.end != nil:
		return false, nil, nil, syscall.EPIPE
	case c.out.size < window:
		c.out.send(piece{data: append([]byte(nil), b...)})
		return true, nil, nil, nil
	}
	return false, c.out.changed, c.write.wait(), nil
}

// LocalAddr is this end.
func (c *conn) LocalAddr() net.Addr { return tcpAddr(c.local) }

// RemoteAddr is the other end.
func (c *conn) RemoteAddr() net.Addr { return tcpAddr(c.remote) }

// SetDeadline bounds reads and writes.
func (c *conn) SetDeadline(t time.Time) error {
	return c.set(t, &c.read, &c.write)
}

// SetReadDeadline bounds reads.
func (c *conn) SetReadDeadline(t time.Time) error { return c.set(t, &c.read) }

// SetWriteDeadline bounds writes.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.set(t, &c.write) }

func (c *conn) set(t time.Time, ds ...*deadline) error {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	for _, d := range ds {
		d.set(t)
	}
	c.in.announce()
	c.out.announce()
	return nil
}

// deadline is a time after which waiting ends; the zero value is none.
type deadline struct {
	at    time.Time
	timer *time.Timer
	late  chan struct{}
}

func (d *deadline) set(t time.Time) {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at, d.timer, d.late = t, nil, nil
	if t.IsZero() {
		return
	}
	late := make(chan struct{})
	d.late = late
	d.timer = time.AfterFunc(max(time.Until(t), 0), func() { close(late) })
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// wait is closed when the deadline has passed; nil for none.
func (d *deadline) wait() <-chan struct{} { return d.late }
