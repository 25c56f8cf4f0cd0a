package gms

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is one port of a node.
//
// What others dial is, in this order: Advertise; else the address bound, when that is a definite one; else, when Bind is
// 0.0.0.0 or [::], the one address that the machine's interfaces have beside loopback and link-local ones (for 0.0.0.0,
// among those of IPv4). With none or several of them the node does not start, and names them: choose one.
type Endpoint struct {
	// Bind is the IP:port to listen on, such as 10.0.0.1:7946 or [fd00::1]:7946. Port 0 takes a free one.
	Bind string
	// Advertise is the IP:port that others dial; port 0: the bound port. When it is not an address of one of the node's
	// own interfaces (a proxy, a balancer, address translation), evidence "refused" is not used for the node.
	Advertise string
}

// openHint is the remedy for a node that would be open to strangers.
const openHint = "`fencepost init` writes keys and certificates for a new group, `fencepost certs` certificates for one that is there"

func (e Endpoint) validate(field string, secured bool) error {
	var errs []error
	bad := func(name string, err error) { errs = append(errs, fmt.Errorf("%s.%s: %w", field, name, err)) }
	bind, err := parseAddr(e.Bind)
	if err != nil {
		bad("Bind", err)
	} else if err := closedTo(bind, secured); err != nil {
		bad("Bind", err)
	}
	if e.Advertise == "" {
		return errors.Join(errs...)
	}
	advertise, err := parseAddr(e.Advertise)
	switch {
	case err != nil:
		bad("Advertise", err)
	case !reachable(advertise.Addr()) && !advertise.Addr().IsLoopback():
		bad("Advertise", fmt.Errorf("%q is no address that others can dial", e.Advertise))
	default:
		if err := closedTo(advertise, secured); err != nil {
			bad("Advertise", err)
		}
	}
	return errors.Join(errs...)
}

// closedTo refuses an address that other machines may reach, unless who comes has to prove who it is.
func closedTo(a netip.AddrPort, secured bool) error {
	if secured || a.Addr().IsLoopback() {
		return nil
	}
	return withHint(fmt.Errorf("%v may be reached from other machines, which takes both GossipKeys and Certificates (on loopback neither is needed)", a), openHint)
}

// parseAddr reads IP:port; "localhost" stands for 127.0.0.1.
func parseAddr(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not IP:port", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	n, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil || ip.Zone() != "" {
		return netip.AddrPort{}, fmt.Errorf("%q is not IP:port, such as 10.0.0.1:7946 or [fd00::1]:7946", address)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

// reachable tells whether another machine could dial the address.
func reachable(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() // neither loopback, link-local, unspecified nor multicast
}

// chooseAdvertised decides what others dial; own are the addresses of the machine's interfaces, asked only when they count.
// The port may be 0 where the bound one is not known yet.
func (e Endpoint) chooseAdvertised(bound netip.AddrPort, own func() ([]netip.Addr, error)) (netip.AddrPort, error) {
	if e.Advertise != "" {
		a, err := parseAddr(e.Advertise)
		if err == nil && a.Port() == 0 {
			a = netip.AddrPortFrom(a.Addr(), bound.Port())
		}
		return a, err
	}
	if !bound.Addr().IsUnspecified() {
		return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port()), nil
	}
	all, err := own()
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("look for an address that others can dial: %w", err)
	}
	var fit []netip.Addr
	for _, ip := range all {
		ip = ip.Unmap()
		if reachable(ip) && (bound.Addr().Is6() || ip.Is4()) && !slices.Contains(fit, ip) {
			fit = append(fit, ip)
		}
	}
	if len(fit) == 1 {
		return netip.AddrPortFrom(fit[0], bound.Port()), nil
	}
	slices.SortFunc(fit, netip.Addr.Compare)
	names := make([]string, len(fit))
	for i, ip := range fit {
		names[i] = ip.String()
	}
	why := "this machine has no other address than loopback ones"
	if len(fit) > 1 {
		why = "this machine has several addresses: " + strings.Join(names, ", ")
	}
	return netip.AddrPort{}, fmt.Errorf("bound to %v, and %s", bound.Addr(), why)
}

// addresser is a Network that knows the addresses of the machine's interfaces.
type addresser interface {
	Addresses() ([]netip.Addr, error)
}

// advertised chooses for one port of this node, named as in the configuration.
func (g *Group) advertised(name string, e Endpoint, bound netip.AddrPort) (string, error) {
	own := func() ([]netip.Addr, error) {
		if n, ok := g.cfg.Network.(addresser); ok {
			return n.Addresses()
		}
		return nil, errors.New("this network does not tell its addresses")
	}
	a, err := e.chooseAdvertised(bound, own)
	if err != nil {
		return "", withHint(fmt.Errorf("advertise the %s port: %w", name, err), "say which address others dial: "+name+".advertise")
	}
	return a.String(), nil
}
