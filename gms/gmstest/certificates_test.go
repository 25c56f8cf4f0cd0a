package gmstest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/certs"
)

// files are the nodes' certificates, which can be exchanged while the nodes run.
type files struct {
	t *testing.T

	mu    sync.Mutex
	pairs map[string]certs.Pair
	roots map[string][]byte
}

func newFiles(t *testing.T, ca *certs.Authority, valid map[string]time.Duration) *files {
	t.Helper()
	f := &files{t: t, pairs: map[string]certs.Pair{}, roots: map[string][]byte{}}
	for node, valid := range valid {
		pair, err := ca.Issue(certs.Name{Group: "test", Node: node}, valid)
		if err != nil {
			t.Fatal(err)
		}
		f.pairs[node], f.roots[node] = pair, ca.Certificate()
	}
	return f
}

// of gives a node its files, read anew each time.
func (f *files) of(node string, c *gms.Config) {
	part := func(of func() []byte) func() ([]byte, error) {
		return func() ([]byte, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return of(), nil
		}
	}
	c.Certificates = &certs.Source{
		Certificate: part(func() []byte { return f.pairs[node].Certificate }), Key: part(func() []byte { return f.pairs[node].Key }),
		CA: part(func() []byte { return f.roots[node] }),
	}
}

// renew exchanges a node's certificate.
func (f *files) renew(node string, by func(old []byte) ([]byte, error)) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	pair := f.pairs[node]
	renewed, err := by(pair.Certificate)
	if err != nil {
		f.t.Fatal(err)
	}
	f.pairs[node] = certs.Pair{Certificate: renewed, Key: pair.Key}
}

// believe has nodes believe these authorities.
func (f *files) believe(text []byte, nodes ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range nodes {
		f.roots[n] = text
	}
}

func newCA(t *testing.T) *certs.Authority {
	t.Helper()
	ca, err := certs.NewAuthority("test", 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

const weeks = 500 * time.Hour

// A certificate that runs out cuts its node off at its next connection. The others say whose it is, until when it was, and what
// to do; with a new one the node is back, and its process has never ended.
func TestACertificateRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ca := newCA(t)
		f := newFiles(t, ca, map[string]time.Duration{"n1": weeks, "n2": weeks, "n3": 10 * time.Minute})
		w := Cluster(t, 3, WithSecurity(), WithConfig(f.of))
		n3 := w.Node("n3")
		until, ok := n3.Group.CertificateUntil()
		if left := time.Until(until); !ok || left <= 0 || left > 10*time.Minute {
			t.Errorf("until %v, %v", until, ok)
		}
		Advance(10 * time.Minute)
		if got := w.Node("n1").Group.Distrusted(); len(got) != 0 { // what is connected stays so
			t.Errorf("before it met anybody: %v", got)
		}
		w.Isolate("n3")
		w.AwaitGone("n3")
		w.Heal()
		for _, by := range []string{"n1", "n2"} {
			w.Await(by+" to say why", func() bool { return w.Node(by).Group.Distrusted()["n3"] != nil })
			why := w.Node(by).Group.Distrusted()["n3"].Error()
			for _, want := range []string{"certificate has expired", "fencepost://test/n3", until.UTC().Format("2006-01-02 15:04"), "certs renew --node n3"} {
				if !strings.Contains(why, want) {
					t.Errorf("%s says %q, without %q", by, why, want)
				}
			}
		}
		f.renew("n3", func(old []byte) ([]byte, error) { return ca.Renew(old, weeks) })
		w.AwaitView("n1", "n2", "n3")
		w.Await("n1 to trust it", func() bool { return len(w.Node("n1").Group.Distrusted()) == 0 })
		if w.Node("n3") != n3 || n3.Group.Err() != nil {
			t.Errorf("n3 did not go on: %v", n3.Group.Err())
		}
	})
}

// One authority takes the place of another while the group runs: at no moment is there a node that cannot connect to each other
// one, as long as all have what one step gives before the next.
func TestAnAuthorityIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old, next := newCA(t), newCA(t)
		names := []string{"n1", "n2", "n3"}
		f := newFiles(t, old, map[string]time.Duration{"n1": weeks, "n2": weeks, "n3": weeks})
		w := Cluster(t, 3, WithSecurity(), WithConfig(f.of))
		meet := func(when string) { // each connection is made anew
			t.Helper()
			for _, n := range names {
				w.Isolate(n)
				w.AwaitGone(n)
				w.Heal()
				w.AwaitView(names...)
			}
			for _, n := range names {
				if got := w.Node(n).Group.Distrusted(); len(got) != 0 {
					t.Errorf("%s: %s distrusts %v", when, n, got)
				}
			}
		}
		both := slices.Concat(old.Certificate(), next.Certificate())
		f.believe(both, "n1")
		meet("n1 believes both")
		f.believe(both, names...)
		succeed := func(text []byte) ([]byte, error) { return next.Succeed(old, text, weeks) }
		f.renew("n2", succeed)
		meet("n2 is the next one's")
		f.renew("n1", succeed)
		f.renew("n3", succeed)
		f.believe(next.Certificate(), "n3")
		meet("n3 believes the next one alone")
		f.believe(next.Certificate(), names...)
		meet("all do")
	})
}
