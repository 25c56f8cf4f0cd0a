package gms

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Network is how a group reaches the world: the seam through which tests replace sockets. The zero-configuration
// implementation is [SystemNetwork]. Methods may be called from any goroutine; Listen and ListenPacket return at once.
type Network interface {
	// Listen opens a stream listener ("tcp") on a host:port. An error is Start's.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// Dial opens a stream ("tcp") or a connected datagram socket ("udp"); it blocks until connected or ctx ends.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// ListenPacket opens a datagram socket ("udp") on a host:port. An error is Start's.
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
}

// SystemNetwork is the operating system's network.
type SystemNetwork struct{}

// Listen opens a listener. Errors are the system's.
func (SystemNetwork) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, network, address)
}

// Dial opens a connection. Errors are the system's, or ctx's.
func (SystemNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// ListenPacket opens a datagram socket. Errors are the system's.
func (SystemNetwork) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var lc net.ListenConfig
	return lc.ListenPacket(ctx, network, address)
}

// Addresses lists the addresses of the machine's interfaces. Errors are the system's.
func (SystemNetwork) Addresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}

// Clock measures durations for leases. It must count time in which the machine is suspended, which Go's monotonic clock
// does not (FIELD.md M25). Timers are Go's own; a lease is checked against this clock whenever it matters.
type Clock interface {
	// Now is the time since some fixed moment.
	Now() time.Duration
}
