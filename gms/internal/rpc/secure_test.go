package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// issuer is a group's authority.
type issuer struct {
	*certs.Authority
	group string
}

func newIssuer(t testing.TB, group string) issuer {
	t.Helper()
	a, err := certs.NewAuthority(group, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{a, group}
}

// keeper gives a node its certificate; what it is for may differ from who uses it.
func (i issuer) keeper(t testing.TB, node string) *certs.Keeper {
	t.Helper()
	pair, err := i.Issue(certs.Name{Group: i.group, Node: node}, 100*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return keeperOf(t, certs.Name{Group: i.group, Node: node}, pair.Certificate, pair.Key, i.Certificate())
}

func keeperOf(t testing.TB, name certs.Name, texts ...[]byte) *certs.Keeper {
	t.Helper()
	part := func(i int) func() ([]byte, error) { return func() ([]byte, error) { return texts[i], nil } }
	k, err := certs.NewKeeper(name, certs.Source{Certificate: part(0), Key: part(1), CA: part(2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// lines collects warnings.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	some chan struct{} // closed by the first
}

func newLines() *lines { return &lines{some: make(chan struct{})} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() == 0 {
		close(l.some)
	}
	return l.text.Write(b)
}

// await waits for a first line.
func (l *lines) await(t *testing.T) {
	t.Helper()
	select {
	case <-l.some:
	case <-bounded(t).Done():
		t.Error("nothing is said")
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// secureNode is a node with certificates on a network.
type secureNode struct {
	srv        *Server
	d          *Dialer
	heard, did *lines // as server, as dialler
}

type network interface {
	Network
	ProbeDial
}

func newSecureNode(t *testing.T, n network, bind string, id Identity, k *certs.Keeper, resolve func(string) (string, error)) *secureNode {
	t.Helper()
	s := &secureNode{heard: newLines(), did: newLines()}
	who := func() Identity { return id }
	var err error
	s.srv, err = NewServer(ServerConfig{Network: n, BindAddr: bind, Identity: who, Handler: newEcho(), Certificates: k, Logger: s.heard.logger()})
	if err != nil {
		t.Fatal(err)
	}
	s.d, err = NewDialer(DialerConfig{Network: n, Identity: who, Resolve: resolve, Certificates: k, Logger: s.did.logger()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.d.Stop(); s.srv.Stop() })
	return s
}

// Whoever cannot prove who it is gets no further, and one line on each side says why, once.
func TestOnlyTheProvenAreServed(t *testing.T) {
	shop, other, bank := newIssuer(t, "shop"), newIssuer(t, "shop"), newIssuer(t, "bank")
	bankByShop, err := shop.Issue(certs.Name{Group: "bank", Node: "a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		dialler       *certs.Keeper
		claims, dials string // the node that the dialler says it is, and the one that it wants
		server        *certs.Keeper
		want          error
		here, there   string // in the dialler's line, in the server's
	}{
		{"good", shop.keeper(t, "a"), "a", "b", shop.keeper(t, "b"), nil, "", ""},
		{"another node's certificate", shop.keeper(t, "c"), "a", "b", shop.keeper(t, "b"), ErrRefused, "", `calls itself \"a\" has the certificate of fencepost://shop/c`},
		{"another authority's", other.keeper(t, "a"), "a", "b", shop.keeper(t, "b"), ErrUntrusted, "of another authority: that of fencepost://shop/b", "refuses this node's certificate"},
		{"another group's", keeperOf(t, certs.Name{Group: "bank", Node: "a"}, bankByShop.Certificate, bankByShop.Key, shop.Certificate()), "a", "b", shop.keeper(t, "b"), ErrUntrusted, "for group shop, not bank", "refuses this node's certificate"},
		{"another group's authority", bank.keeper(t, "a"), "a", "b", shop.keeper(t, "b"), ErrUntrusted, "another authority", "refuses this node's certificate"},
		{"the wrong node answers", shop.keeper(t, "a"), "a", "c", shop.keeper(t, "b"), ErrWrongNode, "for node b, not c", "refuses this node's certificate"},
		{"the dialler is plain", nil, "a", "b", shop.keeper(t, "b"), ErrUntrusted, "this node has no certificate", "does not speak TLS"},
		{"the server is plain", shop.keeper(t, "a"), "a", "b", nil, nil, "", "speaks TLS and this node has no certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newSecureNode(t, system{}, "127.0.0.1:0", Identity{Group: "shop", Node: "b", Run: id16(2)}, c.server, nil2)
			where := func(string) (string, error) { return b.srv.Addr().String(), nil }
			a := newSecureNode(t, system{}, "127.0.0.1:0", Identity{Group: "shop", Node: c.claims, Run: id16(1)}, c.dialler, where)
			client, err := a.d.Client(c.dials)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Ping(bounded(t), &wire.PingRequest{})
			if (err == nil) != (c.name == "good") {
				t.Fatalf("the call ended with %v", err)
			}
			if why := a.d.LastError(c.dials); c.want != nil && !errors.Is(why, c.want) {
				t.Errorf("the dialler's error is %v", why)
			}
			_, _ = client.Ping(bounded(t), &wire.PingRequest{}) // again: nothing more is said
			for l, want := range map[*lines]string{a.did: c.here, b.heard: c.there} {
				if want != "" {
					l.await(t)
				}
			}
			a.d.Stop()
			b.srv.Stop() // all is said
			checkLines(t, "the dialler", a.did, c.here)
			checkLines(t, "the server", b.heard, c.there)
		})
	}
}

func nil2(string) (string, error) { return "", errors.New("nowhere") }

func checkLines(t *testing.T, who string, l *lines, want string) {
	t.Helper()
	text := l.String()
	if want == "" {
		return
	}
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, want) {
		t.Errorf("%s says, instead of one line with %q:\n%s", who, want, text)
	}
}

// A node that answers with another one's hello than its certificate's is found out also by who wants any node.
func TestAnAnswerMustBeTheCertificates(t *testing.T) {
	shop := newIssuer(t, "shop")
	liar := newSecureNode(t, system{}, "127.0.0.1:0", Identity{Group: "shop", Node: "b", Run: id16(2)}, shop.keeper(t, "c"), nil2)
	a := newSecureNode(t, system{}, "127.0.0.1:0", Identity{Group: "shop", Node: "a"}, shop.keeper(t, "a"), nil2)
	if h, err := a.d.Hello(bounded(t), "", liar.srv.Addr().String()); !errors.Is(err, ErrWrongNode) || !errors.Is(err, ErrUntrusted) {
		t.Errorf("the hello of a liar: %v, %v", h, err)
	}
	good := newSecureNode(t, system{}, "127.0.0.1:0", Identity{Group: "shop", Node: "c", Run: id16(2)}, shop.keeper(t, "c"), nil2)
	if _, err := a.d.Hello(bounded(t), "", good.srv.Addr().String()); err != nil {
		t.Error(err)
	}
}

// A certificate that expires while both run is named as the cause on both sides, and a renewed one needs no restart.
func TestExpiredAndRenewed(t *testing.T) {
	for _, stale := range []string{"dialler", "server"} {
		t.Run(stale, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { expire(t, stale) })
		})
	}
}

func expire(t *testing.T, stale string) {
	shop := newIssuer(t, "shop")
	nodes := map[string]string{"dialler": "a", "server": "b"}
	short, err := shop.Issue(certs.Name{Group: "shop", Node: nodes[stale]}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text := short.Certificate
	var mu sync.Mutex
	name := certs.Name{Group: "shop", Node: nodes[stale]}
	k, err := certs.NewKeeper(name, certs.Source{
		Certificate: func() ([]byte, error) { mu.Lock(); defer mu.Unlock(); return text, nil },
		Key:         func() ([]byte, error) { return short.Key, nil },
		CA:          func() ([]byte, error) { return shop.Certificate(), nil },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ka, kb := shop.keeper(t, "a"), k
	if stale == "dialler" {
		ka, kb = k, shop.keeper(t, "b")
	}
	e := &ether{ports: map[string]*etherPort{}, buffered: true}
	b := newSecureNode(t, e, "10.0.0.2:1", Identity{Group: "shop", Node: "b"}, kb, nil2)
	a := newSecureNode(t, e, "10.0.0.1:1", Identity{Group: "shop", Node: "a"}, ka, func(string) (string, error) { return "10.0.0.2:1", nil })
	hello := func() error {
		_, err := a.d.Raft(t.Context(), "b")
		return err
	}
	b.srv.Streams(b.d)
	if err := hello(); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Hour)
	err = hello()
	if !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "renew --node "+name.Node) {
		t.Errorf("the dialler's error: %v", err)
	}
	synctest.Wait()
	if said := b.heard.String(); !strings.Contains(said, "expired") || !strings.Contains(said, "renew --node "+name.Node) {
		t.Errorf("the server says %q", said)
	}
	renewed, err := shop.Renew(text, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	text = renewed
	mu.Unlock()
	if err := hello(); err != nil {
		t.Errorf("with a renewed certificate: %v", err)
	}
}

// The proof of a death works below TLS: a run that lives answers, one that is gone is refused, and somebody else in its
// place is neither.
func TestRefusedBelowTLS(t *testing.T) {
	shop := newIssuer(t, "shop")
	id := Identity{Group: "shop", Node: "b", Run: id16(2)}
	b := newSecureNode(t, system{}, "127.0.0.1:0", id, shop.keeper(t, "b"), nil2)
	target := ProbeTarget{Node: "b", ClusterAddr: b.srv.Addr().String(), GossipAddr: closedPort(t), Run: id16(2)}
	p := Prober{Identity: Identity{Group: "shop", Node: "a"}, Network: system{}, Certificates: shop.keeper(t, "a")}
	if v := p.Refused(t.Context(), target); !v.Alive || v.Refused {
		t.Errorf("while it lives: %+v", v)
	}
	plain := p
	plain.Certificates = nil
	if v := plain.Refused(t.Context(), target); v.Alive || v.Refused {
		t.Errorf("without a certificate: %+v", v)
	}
	b.srv.Stop()
	if v := p.Refused(t.Context(), target); v.Alive || !v.Refused {
		t.Errorf("when it is gone: %+v", v)
	}
	thief := newSecureNode(t, system{}, target.ClusterAddr, id, newIssuer(t, "shop").keeper(t, "b"), nil2)
	if v := p.Refused(t.Context(), target); v.Alive || v.Refused {
		t.Errorf("somebody else in its place: %+v", v)
	}
	thief.srv.Stop()
	other := newSecureNode(t, system{}, target.ClusterAddr, Identity{Group: "shop", Node: "c", Run: id16(2)}, shop.keeper(t, "c"), nil2)
	if v := p.Refused(t.Context(), target); v.Alive || v.Refused {
		t.Errorf("another node of the group in its place: %+v", v)
	}
	other.srv.Stop()
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A stranger that says nothing, or nothing of TLS, is gone after the limit of a hello.
func TestSilentStrangersBelowTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ether{ports: map[string]*etherPort{}, buffered: true}
		k := newIssuer(t, "shop").keeper(t, "b")
		newSecureNode(t, e, "10.0.0.2:1", Identity{Group: "shop", Node: "b"}, k, nil2)
		for _, first := range []string{"", "\x16\x03\x01\x02\x00", "\x16\x03\x01\xff\xff"} {
			conn, err := e.Dial(context.Background(), "tcp", "10.0.0.2:1")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := conn.Write([]byte(first)); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = conn.Read(make([]byte, 64))
			}
			if took := time.Since(start); took > helloLimit {
				t.Errorf("%q: gone after %v", first, took)
			}
		}
	})
}
