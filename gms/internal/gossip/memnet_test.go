package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		// A probe under way when Stop is called ends by its time-out only (see the package's page).
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// ether is a network in memory. Hosts are IP addresses; a host that is cut neither hears nor is heard, without an error.
type ether struct {
	mu      sync.Mutex
	streams map[string]*etherListener
	packets map[string]*etherPackets
	cut     map[string]bool
	next    int
}

func newEther() *ether {
	return &ether{streams: map[string]*etherListener{}, packets: map[string]*etherPackets{}, cut: map[string]bool{}, next: 40000}
}

func (e *ether) setCut(host string, cut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut[host] = cut
}

func (e *ether) severed(hosts ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range hosts {
		if e.cut[h] {
			return true
		}
	}
	return false
}

// host is the network as one host sees it.
type host struct {
	*ether
	ip string
}

func (e *ether) host(ip string) host { return host{e, ip} }

func ipOf(addr string) string {
	h, _, _ := net.SplitHostPort(addr)
	return h
}

func (e *ether) pick(addr string) string {
	h, p, _ := net.SplitHostPort(addr)
	if p == "0" {
		e.next++
		p = fmt.Sprint(e.next)
	}
	return net.JoinHostPort(h, p)
}

func (h host) Listen(_ context.Context, _, addr string) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	addr = h.pick(addr)
	if h.streams[addr] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &etherListener{ether: h.ether, addr: addr, ch: make(chan net.Conn), done: make(chan struct{})}
	h.streams[addr] = l
	return l, nil
}

func (h host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	h.mu.Lock()
	l := h.streams[addr]
	h.mu.Unlock()
	if h.severed(h.ip, ipOf(addr)) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	a, b := net.Pipe()
	select {
	case l.ch <- named{b, h.ip + ":1"}:
		return named{a, addr}, nil
	case <-l.done:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h host) ListenPacket(_ context.Context, _, addr string) (net.PacketConn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.packets[addr] != nil {
		return nil, syscall.EADDRINUSE
	}
	p := &etherPackets{ether: h.ether, addr: addr, ch: make(chan etherPacket, 4096), done: make(chan struct{})}
	h.packets[addr] = p
	return p, nil
}

type named struct {
	net.Conn
	remote string
}

func (n named) RemoteAddr() net.Addr { return tcpAddr(n.remote) }

func tcpAddr(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
func udpAddr(s string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

type etherListener struct {
	*ether
	addr string
	ch   chan net.Conn
	once sync.Once
	done chan struct{}
}

func (l *etherListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *etherListener) Addr() net.Addr { return tcpAddr(l.addr) }

func (l *etherListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.mu.Lock()
		delete(l.streams, l.addr)
		l.mu.Unlock()
	})
	return nil
}

type etherPacket struct {
	data []byte
	from string
}

type etherPackets struct {
	*ether
	addr string
	ch   chan etherPacket
	once sync.Once
	done chan struct{}
}

func (p *etherPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case k := <-p.ch:
		return copy(b, k.data), udpAddr(k.from), nil
	case <-p.done:
		return 0, nil, net.ErrClosed
	}
}

func (p *etherPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	p.mu.Lock()
	peer := p.packets[to.String()]
	p.mu.Unlock()
	if peer == nil || p.severed(ipOf(p.addr), ipOf(to.String())) {
		return len(b), nil
	}
	select {
	case peer.ch <- etherPacket{append([]byte(nil), b...), p.addr}:
	default:
	}
	return len(b), nil
}

func (p *etherPackets) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.mu.Lock()
		delete(p.packets, p.addr)
		p.mu.Unlock()
	})
	return nil
}

func (p *etherPackets) LocalAddr() net.Addr              { return udpAddr(p.addr) }
func (p *etherPackets) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (p *etherPackets) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (p *etherPackets) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// system is the machine's network.
type system struct{}

func (system) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, network, address)
}

func (system) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (system) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	return (&net.ListenConfig{}).ListenPacket(ctx, network, address)
}
