package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	packetSize    = 65536
	receiveBuffer = 2 << 20 // for bursts of datagrams
	bindTries     = 10      // to find a port that is free for streams and datagrams
	acceptPause   = 5 * time.Millisecond
)

// transport carries the library's packets and streams over a Network. It remembers its open streams and closes them in
// Shutdown, so that nothing of the library waits for a peer afterwards.
type transport struct {
	network   Network
	log       *slog.Logger
	listener  net.Listener
	packets   net.PacketConn
	advertise netip.AddrPort

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	stop     chan struct{}
	loops    sync.WaitGroup
	dials    context.Context // ends with interrupt
	noDials  context.CancelFunc

	once  sync.Once
	mu    sync.Mutex
	open  map[*stream]struct{}
	ended bool
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(ctx context.Context, cfg Config) (*transport, error) {
	t := &transport{
		network:  cfg.Network,
		log:      cfg.Logger,
		packetCh: make(chan *memberlist.Packet),
		streamCh: make(chan net.Conn),
		stop:     make(chan struct{}),
		open:     map[*stream]struct{}{},
	}
	t.dials, t.noDials = context.WithCancel(context.Background())
	bind, err := netip.ParseAddrPort(cfg.BindAddr)
	if err != nil {
		return nil, fmt.Errorf("parse the address to bind: %w", err)
	}
	bound, err := t.bind(ctx, bind)
	if err != nil {
		return nil, err
	}
	if t.advertise, err = advertised(cfg.AdvertiseAddr, bound); err != nil {
		return nil, errors.Join(err, t.listener.Close(), t.packets.Close())
	}
	t.loops.Go(t.acceptLoop)
	t.loops.Go(t.packetLoop)
	return t, nil
}

// bind opens both sockets on one port.
func (t *transport) bind(ctx context.Context, want netip.AddrPort) (netip.AddrPort, error) {
	tries := 1
	if want.Port() == 0 {
		tries = bindTries
	}
	var last error
	for range tries {
		l, err := t.network.Listen(ctx, "tcp", want.String())
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("listen for streams on %v: %w", want, err)
		}
		bound, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return netip.AddrPort{}, errors.Join(fmt.Errorf("read the bound address: %w", err), l.Close())
		}
		p, err := t.network.ListenPacket(ctx, "udp", bound.String())
		if err == nil {
			if b, ok := p.(interface{ SetReadBuffer(int) error }); ok {
				_ = b.SetReadBuffer(receiveBuffer) // a wish: the system may allow less
			}
			t.listener, t.packets = l, p
			return bound, nil
		}
		last = errors.Join(fmt.Errorf("listen for datagrams on %v: %w", bound, err), l.Close())
	}
	return netip.AddrPort{}, last
}

// advertised chooses the address that the others use.
func advertised(want string, bound netip.AddrPort) (netip.AddrPort, error) {
	a := bound
	if want != "" {
		var err error
		if a, err = netip.ParseAddrPort(want); err != nil {
			return a, fmt.Errorf("parse the address to advertise: %w", err)
		}
		if a.Port() == 0 {
			a = netip.AddrPortFrom(a.Addr(), bound.Port())
		}
	}
	if a.Addr().IsUnspecified() {
		return a, fmt.Errorf("no definite address to advertise: %v", a)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

func (t *transport) acceptLoop() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			select {
			case <-t.stop:
				return
			case <-time.After(acceptPause):
				t.log.Debug("accept a stream", "error", err)
				continue
			}
		}
		s, ok := t.track(conn)
		if !ok {
			return
		}
		select {
		case t.streamCh <- s:
		case <-t.stop:
			return
		}
	}
}

func (t *transport) packetLoop() {
	for {
		buf := make([]byte, packetSize)
		n, from, err := t.packets.ReadFrom(buf)
		if err != nil {
			select {
			case <-t.stop:
				return
			case <-time.After(acceptPause):
				t.log.Debug("receive a datagram", "error", err)
				continue
			}
		}
		if n <= 1 { // somebody looks whether the port is open
			continue
		}
		select {
		case t.packetCh <- &memberlist.Packet{Buf: buf[:n], From: from, Timestamp: time.Now()}:
		case <-t.stop:
			return
		}
	}
}

// FinalAdvertiseAddr tells the library the address that was chosen at start.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

// WriteTo sends one packet.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse the address of a packet: %w", err)
	}
	_, err = t.packets.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

// WriteToAddress sends one packet.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh is where the library takes packets from.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh is where the library takes streams from.
func (t *transport) StreamCh() <-chan net.Conn { return t.streamCh }

// DialTimeout opens a stream.
func (t *transport) DialTimeout(addr string, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.dials, limit)
	defer cancel()
	conn, err := t.network.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s, ok := t.track(conn)
	if !ok {
		return nil, net.ErrClosed
	}
	return s, nil
}

// DialAddressTimeout opens a stream.
func (t *transport) DialAddressTimeout(a memberlist.Address, limit time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, limit)
}

func (t *transport) track(conn net.Conn) (*stream, bool) {
	s := &stream{Conn: conn, in: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		_ = conn.Close() // nobody will use it
		return nil, false
	}
	t.open[s] = struct{}{}
	return s, true
}

// interrupt ends all streams, open and to come, so that whoever waits for a peer returns. Packets still pass.
func (t *transport) interrupt() {
	t.noDials()
	t.mu.Lock()
	t.ended = true
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for s := range open {
		_ = s.Conn.Close() // its reader sees the end
	}
}

// Shutdown closes everything and waits for the loops; only the first call does something.
func (t *transport) Shutdown() error {
	t.interrupt()
	var err error
	t.once.Do(func() {
		close(t.stop)
		err = errors.Join(t.listener.Close(), t.packets.Close())
		t.loops.Wait()
	})
	return err
}

type stream struct {
	net.Conn
	in *transport
}

func (s *stream) Close() error {
	s.in.mu.Lock()
	delete(s.in.open, s)
	s.in.mu.Unlock()
	return s.Conn.Close()
}
