package gms

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
)

// A port that others may reach takes keys and certificates, both; on loopback neither is needed, and each works alone.
func TestOpenPortsNeedKeysAndCertificates(t *testing.T) {
	key := [][]byte{make([]byte, 32)}
	proof := certs.Files("/none", "/none", "/none")
	for _, c := range []struct {
		name                     string
		gossip, cluster          string
		gossipAdvert, clusterAdv string
		keys                     [][]byte
		certs                    *certs.Source
		want                     string // empty: it is taken
	}{
		{"loopback", "127.0.0.1:1", "[::1]:2", "", "", nil, nil, ""},
		{"by name", "localhost:1", "localhost:2", "", "", nil, nil, ""},
		{"loopback with keys", "127.0.0.1:1", "127.0.0.1:2", "", "", key, nil, ""},
		{"loopback with certificates", "127.0.0.1:1", "127.0.0.1:2", "", "", nil, proof, ""},
		{"any", "0.0.0.0:1", "127.0.0.1:2", "", "", nil, nil, "Gossip.Bind: 0.0.0.0:1 may be reached"},
		{"any of six", "127.0.0.1:1", "[::]:2", "", "", nil, nil, "Cluster.Bind: [::]:2 may be reached"},
		{"mapped", "127.0.0.1:1", "[::ffff:10.0.0.1]:2", "", "", nil, nil, "Cluster.Bind: 10.0.0.1:2 may be reached"},
		{"an address with keys only", "10.0.0.1:1", "127.0.0.1:2", "", "", key, nil, "Gossip.Bind"},
		{"an address with certificates only", "127.0.0.1:1", "10.0.0.1:2", "", "", nil, proof, "Cluster.Bind"},
		{"advertised", "127.0.0.1:1", "127.0.0.1:2", "10.0.0.1:1", "", key, nil, "Gossip.Advertise"},
		{"advertised cluster", "127.0.0.1:1", "127.0.0.1:2", "", "[fd00::1]:1", nil, proof, "Cluster.Advertise"},
		{"both", "0.0.0.0:1", "[::]:2", "10.0.0.1:1", "[fd00::1]:1", key, proof, ""},
		{"a name", "host:1", "127.0.0.1:2", "", "", key, proof, `Gossip.Bind: "host:1" is not IP:port`},
		{"a zone", "[fe80::1%eth0]:1", "127.0.0.1:2", "", "", key, proof, "Gossip.Bind"},
		{"no port", "127.0.0.1", "127.0.0.1:2", "", "", key, proof, "Gossip.Bind"},
		{"any is not to be dialled", "0.0.0.0:1", "127.0.0.1:2", "0.0.0.0:1", "", key, proof, "Gossip.Advertise"},
		{"link-local is not to be dialled", "0.0.0.0:1", "127.0.0.1:2", "[fe80::1]:1", "", key, proof, "Gossip.Advertise"},
		{"a short key", "127.0.0.1:1", "127.0.0.1:2", "", "", [][]byte{{1, 2, 3}}, nil, "GossipKeys: key 1 has 3 bytes"},
		{"a key twice", "127.0.0.1:1", "127.0.0.1:2", "", "", [][]byte{key[0], key[0]}, nil, "GossipKeys: key 2 is there twice"},
	} {
		cfg := Config{
			Node: "n1", Home: t.TempDir(), GossipKeys: c.keys, Certificates: c.certs,
			Gossip:  Endpoint{Bind: c.gossip, Advertise: c.gossipAdvert},
			Cluster: Endpoint{Bind: c.cluster, Advertise: c.clusterAdv},
		}
		_, err := New(cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		var h interface{ Hint() string }
		if strings.Contains(c.want, "reached") && (!errors.As(err, &h) || !strings.Contains(h.Hint(), "fencepost init")) {
			t.Errorf("%s: no remedy in %v", c.name, err)
		}
	}
}

func TestWhatOthersDial(t *testing.T) {
	one := []string{"127.0.0.1", "::1", "fe80::1", "169.254.1.1", "10.0.0.1"}
	for _, c := range []struct {
		bound, advertise string
		own              []string
		want             string // an address, or a part of the error
	}{
		{"10.0.0.7:1", "", nil, "10.0.0.7:1"},
		{"[fd00::7]:1", "", nil, "[fd00::7]:1"},
		{"127.0.0.1:1", "192.0.2.1:9", nil, "192.0.2.1:9"},
		{"0.0.0.0:1", "192.0.2.1:0", nil, "192.0.2.1:1"},
		{"0.0.0.0:1", "", one, "10.0.0.1:1"},
		{"[::]:1", "", one, "10.0.0.1:1"},
		{"[::]:1", "", append(one, "fd00::1"), "several addresses: 10.0.0.1, fd00::1"},
		{"0.0.0.0:1", "", append(one, "fd00::1"), "10.0.0.1:1"},
		{"0.0.0.0:1", "", append(one, "172.17.0.1"), "several addresses: 10.0.0.1, 172.17.0.1"},
		{"[::]:1", "", []string{"::1", "fd00::1"}, "[fd00::1]:1"},
		{"0.0.0.0:1", "", []string{"127.0.0.1", "fd00::1"}, "no other address than loopback"},
		{"0.0.0.0:1", "", append(one, "10.0.0.1"), "10.0.0.1:1"},
	} {
		own := func() (list []netip.Addr, err error) {
			for _, a := range c.own {
				list = append(list, netip.MustParseAddr(a))
			}
			return list, nil
		}
		got, err := Endpoint{Advertise: c.advertise}.chooseAdvertised(netip.MustParseAddrPort(c.bound), own)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.String() != c.want {
			t.Errorf("bound to %s, advertised %q, on %v: %v, %v; want %s", c.bound, c.advertise, c.own, got, err, c.want)
		}
	}
}

// A certificate that is not this node's, or of no use, ends the start with a remedy, and nothing stays open.
func TestStartNeedsItsOwnCertificate(t *testing.T) {
	tg := newTestGroup(t, 1)
	a, err := certs.NewAuthority("g", 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue(certs.Name{Group: "g", Node: "n2"}, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	part := func(b []byte) func() ([]byte, error) { return func() ([]byte, error) { return b, nil } }
	cfg := tg.config("n1")
	cfg.Group = "g"
	cfg.Certificates = &certs.Source{Certificate: part(pair.Certificate), Key: part(pair.Key), CA: part(a.Certificate())}
	for range 2 { // the home and the ports are free again
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Start(context.Background())
		var h interface{ Hint() string }
		if !errors.Is(err, certs.ErrOtherName) || !errors.As(err, &h) {
			t.Errorf("started with another node's certificate: %v", err)
		}
	}
}
