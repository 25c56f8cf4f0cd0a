package gmstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// latency of a whole link: a fast local network.
const latency = 200 * time.Microsecond

// network joins hosts, each with one IP address and at most one living process. One lock guards all of it; nothing is
// done under it that takes time.
type network struct {
	mu      sync.Mutex
	rng     *rand.Rand
	hosts   map[string]*host
	links   map[[2]string]Link // from one IP to another; absent: a whole link
	all     Link               // what every link has besides
	flows   map[*flow]struct{} // that have pieces under way
	changed chan struct{}      // closed and replaced when links, pauses or processes change
}

// Link says what a link does to what passes it in one direction. The zero value is a whole link.
type Link struct {
	// Cut lets nothing pass: datagrams are lost, streams wait for the link to be whole again, dials hang.
	Cut bool
	// Rejected has a firewall answer in the name of the host there: a new stream is refused, a datagram gets "port
	// unreachable". Streams that were there before go on.
	Rejected bool
	// Loss is the probability that a packet is lost, 0 to 1: a datagram is gone; a write to a stream comes later by a
	// retransmission time (200 ms), once for each time that it is lost; what was written after it waits behind it.
	Loss float64
	// Duplicate is the probability that a datagram arrives twice.
	Duplicate float64
	// Delay is added to every packet, and up to Jitter more, so that datagrams overtake each other.
	Delay, Jitter time.Duration
}

const (
	retransmission = 200 * time.Millisecond // of a lost piece of a stream
	synAgain       = time.Second            // of a lost connection request
)

func newNetwork(seed uint64) *network {
	return &network{
		rng: rand.New(rand.NewPCG(seed, 1)), hosts: map[string]*host{}, links: map[[2]string]Link{},
		flows: map[*flow]struct{}{}, changed: make(chan struct{}),
	}
}

// host is a machine: it stays when its process dies, and then answers for it.
type host struct {
	ip     string
	proc   *process // nil while none lives
	paused bool
	held   []func() // datagrams to and from the paused process
}

// maxHeld is how many datagrams wait for a paused process, as in a socket's buffer; more are lost.
const maxHeld = 256

// boot starts a process on the host of an IP.
func (n *network) boot(ip string) *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[ip]
	if h == nil {
		h = &host{ip: ip}
		n.hosts[ip] = h
	}
	p := &process{network: n, ip: ip, listeners: map[string]*listener{}, sockets: map[string]*socket{}, conns: map[*conn]struct{}{}}
	h.proc = p
	n.announce()
	return p
}

// announce wakes those who wait for a change; with n.mu held.
func (n *network) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
	for f := range n.flows {
		f.arm()
	}
}

// change changes links, pauses or processes.
func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.announce()
}

// link is what passes from one host to another; with n.mu held.
func (n *network) link(from, to string) Link {
	if from == to {
		return Link{}
	}
	l := n.links[[2]string{from, to}]
	l.Cut, l.Rejected = l.Cut || n.all.Cut, l.Rejected || n.all.Rejected
	l.Loss, l.Duplicate = max(l.Loss, n.all.Loss), max(l.Duplicate, n.all.Duplicate)
	l.Delay, l.Jitter = l.Delay+n.all.Delay, l.Jitter+n.all.Jitter
	return l
}

// stalled tells whether nothing of a stream passes from one host to the other now; with n.mu held.
func (n *network) stalled(from, to string) bool {
	return n.link(from, to).Cut || n.isPaused(from) || n.isPaused(to)
}

func (n *network) isPaused(ip string) bool { return n.hosts[ip] != nil && n.hosts[ip].paused }

// chance draws; with n.mu held.
func (n *network) chance(p float64) bool { return p > 0 && n.rng.Float64() < p }

// travel is how long a packet takes that is not lost; with n.mu held.
func (n *network) travel(l Link) time.Duration {
	d := latency + l.Delay
	if l.Jitter > 0 {
		d += time.Duration(n.rng.Int64N(int64(l.Jitter)))
	}
	return d
}

// pause stops the process of a host, or lets it go on; what waited passes then.
func (n *network) pause(ip string, paused bool) {
	n.mu.Lock()
	h := n.hosts[ip]
	h.paused = paused
	var held []func()
	if !paused {
		held, h.held = h.held, nil
	}
	n.announce()
	n.mu.Unlock()
	for _, pass := range held {
		pass()
	}
}

// kill ends a process at once: its streams break, its ports are closed, and its host says so to whoever asks.
func (n *network) kill(p *process) {
	n.end(p, func(c *conn) { c.abort(syscall.ECONNRESET) })
}

// vanish is kill by a loss of the host's power: nobody is told, and the host, up again, says so to whoever asks or sends.
func (n *network) vanish(p *process) { n.end(p, (*conn).vanish) }

func (n *network) end(p *process, each func(*conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	if h := n.hosts[p.ip]; h.proc == p {
		h.proc, h.paused, h.held = nil, false, nil
	}
	for _, l := range p.listeners {
		l.unbind()
	}
	for _, s := range p.sockets {
		s.unbind()
	}
	for c := range p.conns {
		each(c)
	}
	n.announce()
}

// process is the network as one process sees it, a gms.Network. After kill everything it has is closed.
type process struct {
	*network
	ip        string
	dead      bool
	listeners map[string]*listener // by address
	sockets   map[string]*socket   // by address
	conns     map[*conn]struct{}
	port      int // the last one given out
}

// take finds the address to bind; with n.mu held.
func (p *process) take(address string, used func(string) bool) (string, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", fmt.Errorf("parse %q: %w", address, err)
	}
	switch {
	case p.dead:
		return "", net.ErrClosed
	case a.Addr().String() != p.ip:
		return "", fmt.Errorf("bind %s on host %s: %w", address, p.ip, syscall.EADDRNOTAVAIL)
	case a.Port() == 0:
		p.port++
		return netip.AddrPortFrom(a.Addr(), uint16(20000+p.port)).String(), nil
	case used(address):
		return "", fmt.Errorf("bind %s: %w", address, syscall.EADDRINUSE)
	}
	return address, nil
}

// Listen opens a stream port of this host.
func (p *process) Listen(_ context.Context, _, address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	address, err := p.take(address, func(a string) bool { return p.listeners[a] != nil })
	if err != nil {
		return nil, err
	}
	l := &listener{process: p, address: address, changed: make(chan struct{})}
	p.listeners[address] = l
	return l, nil
}

// ListenPacket opens a datagram port of this host.
func (p *process) ListenPacket(_ context.Context, _, address string) (net.PacketConn, error) {
	return p.socket(address, "")
}

// Dial opens a stream, or a datagram socket that is told when its peer's port is closed.
func (p *process) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	if network == "udp" {
		return p.socket(p.ip+":0", address)
	}
	c, err := p.connect(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return c, nil
}

// connect is the handshake: the request must reach the host, and its answer must come back.
func (p *process) connect(ctx context.Context, address string) (*conn, error) {
	to := netip.MustParseAddrPort(address).Addr().String()
	if err := p.wait(ctx, p.handshake(to)); err != nil {
		return nil, err
	}
	for {
		p.mu.Lock()
		changed, dead, h := p.changed, p.dead, p.hosts[to]
		if dead {
			p.mu.Unlock()
			return nil, net.ErrClosed
		}
		if h != nil && !p.link(p.ip, to).Cut && !p.link(to, p.ip).Cut && !p.isPaused(p.ip) {
			if p.link(p.ip, to).Rejected {
				p.mu.Unlock()
				return nil, syscall.ECONNREFUSED
			}
			c, err := p.meet(h, address)
			p.mu.Unlock()
			return c, err
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// handshake is how long the two packets of a handshake take.
func (p *process) handshake(to string) (d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range []Link{p.link(p.ip, to), p.link(to, p.ip)} {
		d += p.travel(l)
		for p.chance(l.Loss) {
			d += synAgain
		}
	}
	return d
}

func (p *process) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meet makes the two ends of a stream; with n.mu held.
func (p *process) meet(h *host, address string) (*conn, error) {
	if h.proc == nil || h.proc.listeners[address] == nil {
		return nil, syscall.ECONNREFUSED
	}
	p.port++
	local := net.JoinHostPort(p.ip, fmt.Sprint(40000+p.port%20000))
	there, back := newFlow(p.network, p.ip, h.ip), newFlow(p.network, h.ip, p.ip)
	mine := &conn{process: p, local: local, remote: address, in: back, out: there}
	theirs := &conn{process: h.proc, local: address, remote: local, in: there, out: back}
	p.conns[mine], h.proc.conns[theirs] = struct{}{}, struct{}{}
	h.proc.listeners[address].offer(theirs)
	return mine, nil
}
