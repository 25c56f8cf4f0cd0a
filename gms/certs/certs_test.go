package certs

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const day = 24 * time.Hour

func authority(t *testing.T, group string) *Authority {
	t.Helper()
	ca, err := NewAuthority(group, 100*day)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *Authority, group, node string, valid time.Duration) Pair {
	t.Helper()
	pair, err := ca.Issue(Name{Group: group, Node: node}, valid)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// in is a source whose parts can be exchanged.
func in(pair *Pair, ca *[]byte) Source {
	return Source{
		Certificate: func() ([]byte, error) { return pair.Certificate, nil },
		Key:         func() ([]byte, error) { return pair.Key, nil },
		CA:          func() ([]byte, error) { return *ca, nil },
	}
}

func TestEachReasonIsAnErrorOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := authority(t, "shop"), authority(t, "shop")
		pair := issue(t, ca, "shop", "n1", 10*day)
		for _, c := range []struct {
			name  string
			ca    *Authority
			group string
			node  string
			after time.Duration
			want  error
			text  string
		}{
			{"good", ca, "shop", "n1", 0, nil, ""},
			{"any node", ca, "shop", "", 0, nil, ""},
			{"other authority", other, "shop", "n1", 0, ErrStranger, "fencepost://shop/n1"},
			{"other group", ca, "bank", "n1", 0, ErrOtherName, "for group shop, not bank"},
			{"other node", ca, "shop", "n2", 0, ErrOtherName, "for node n1, not n2"},
			{"too early", ca, "shop", "n1", -day, ErrExpired, "valid from"},
			{"expired", ca, "shop", "n1", 11 * day, ErrExpired, "2000-01-11"},
			{"expired, of another authority", other, "shop", "n1", 11 * day, ErrStranger, "fencepost://shop/n1"},
			{"the authority's expired", ca, "shop", "n1", 101 * day, ErrExpired, "fencepost://shop/n1"},
		} {
			m, err := load([3][]byte{pair.Certificate, pair.Key, c.ca.Certificate()})
			if err != nil {
				t.Fatal(err)
			}
			chain, err := chainOf(m)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Verify(chain, m.Roots, Name{c.group, c.node}, time.Now().Add(c.after))
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

// An authority's certificate is not a node's, and one of a node signs nothing.
func TestOnlyNodesAreNodes(t *testing.T) {
	ca := authority(t, "shop")
	list, err := parseAll(ca.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NameOf(list[0]); err == nil {
		t.Error("the authority passes for a node")
	}
	pair := issue(t, ca, "shop", "n1", day)
	if _, err := ReadAuthority(pair.Certificate, pair.Key); err == nil {
		t.Error("a node's certificate passes for an authority")
	}
	if key, err := ca.Key(); err != nil {
		t.Fatal(err)
	} else if _, err := ReadAuthority(ca.Certificate(), pair.Key); err == nil {
		t.Error("an authority with another key")
	} else if _, err := ReadAuthority(ca.Certificate(), key); err != nil {
		t.Error(err)
	}
	for _, n := range []Name{{"shop", ""}, {"", "n"}, {"shop", "N"}, {"a/b", "n"}, {"shop", "n-"}} {
		if _, err := ca.Issue(n, day); err == nil {
			t.Errorf("%q was issued", n)
		}
	}
}

func TestRenewedKeepsNameAndKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := authority(t, "shop")
		pair, roots := issue(t, ca, "shop", "n1", day), ca.Certificate()
		var warned []error
		k, err := NewKeeper(Name{"shop", "n1"}, in(&pair, &roots), func(err error) { warned = append(warned, err) })
		if err != nil {
			t.Fatal(err)
		}
		first := k.Material()
		<-time.After(2 * day) // it expires while the node runs: said once, and still given
		if m := k.Material(); m != first || k.Material() != first {
			t.Error("an expired certificate was taken away")
		}
		if len(warned) != 1 || !errors.Is(warned[0], ErrExpired) {
			t.Errorf("warned of %v", warned)
		}
		if pair.Certificate, err = ca.Renew(pair.Certificate, day); err != nil {
			t.Fatal(err)
		}
		if m := k.Material(); m == first || !m.Until().Equal(time.Now().Add(day)) {
			t.Error("the renewed one is not in use")
		}
		if _, err := authority(t, "shop").Renew(pair.Certificate, day); !errors.Is(err, ErrStranger) {
			t.Errorf("another authority renewed it: %v", err)
		}
	})
}

// While a file is gone, torn or somebody else's, the last good certificate stays.
func TestKeeperKeepsTheLastGood(t *testing.T) {
	ca := authority(t, "shop")
	pair, roots := issue(t, ca, "shop", "n1", day), ca.Certificate()
	var warned []error
	k, err := NewKeeper(Name{"shop", "n1"}, in(&pair, &roots), func(err error) { warned = append(warned, err) })
	if err != nil {
		t.Fatal(err)
	}
	good, first := pair, k.Material()
	next := issue(t, ca, "shop", "n1", day)
	for name, p := range map[string]Pair{
		"torn":             {next.Certificate, good.Key},
		"cut":              {good.Certificate[:40], good.Key},
		"another node's":   issue(t, ca, "shop", "n2", day),
		"of another":       issue(t, authority(t, "shop"), "shop", "n1", day),
		"key in its place": {good.Key, good.Certificate},
	} {
		pair = p
		if k.Material() != first {
			t.Errorf("%s: it is in use", name)
		}
	}
	if len(warned) != 5 {
		t.Errorf("warned of %v", warned)
	}
	secret := bytes.TrimSpace(good.Key)[30:60]
	for _, err := range warned {
		if strings.Contains(err.Error(), string(secret)) {
			t.Errorf("a key is in %v", err)
		}
	}
	pair = next
	if k.Material() == first {
		t.Error("the new pair is not in use")
	}
	if _, err := NewKeeper(Name{"shop", "n2"}, in(&pair, &roots), nil); !errors.Is(err, ErrOtherName) {
		t.Errorf("a keeper with another's certificate: %v", err)
	}
	if _, err := NewKeeper(Name{"shop", "n1"}, Source{}, nil); err == nil {
		t.Error("a keeper of nothing")
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("fencepost://shop/n1")
	f.Add("fencepost://shop/n1/x")
	f.Add("fencepost://user@shop:1/n1?x#y")
	f.Add("FENCEPOST://shop/n1")
	f.Fuzz(func(t *testing.T, uri string) {
		n, err := ParseName(uri)
		if err == nil && (n.String() != uri || len(n.Group) > 63 || len(n.Node) > 63) {
			t.Errorf("%q became %v", uri, n)
		}
	})
}

// Certificates come from strangers; reading them must never fail but with an error.
func FuzzRead(f *testing.F) {
	ca, err := NewAuthority("shop", day)
	if err != nil {
		f.Fatal(err)
	}
	pair, err := ca.Issue(Name{"shop", "n1"}, day)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pair.Certificate, pair.Key)
	f.Add(ca.Certificate(), []byte{})
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("x"))
	f.Fuzz(func(t *testing.T, text, key []byte) {
		list, err := parseAll(text)
		if err == nil {
			for _, c := range list {
				if n, err := NameOf(c); err == nil && n.check() != nil {
					t.Errorf("%v is a name", n)
				}
			}
		}
		if _, err := Describe(text); (err == nil) != (len(list) > 0) {
			t.Errorf("described: %v, parsed: %d", err, len(list))
		}
		_, _ = load([3][]byte{text, key, text})
	})
}

// TestForBrowsers: a node's key is of a kind that browsers take, and its certificate says the hosts by which they call it,
// renewed ones, too.
func TestForBrowsers(t *testing.T) {
	ca := authority(t, "shop")
	pair, err := ca.Issue(Name{Group: "shop", Node: "n1"}, day, "n1", "10.0.0.1", "::1")
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := ca.Renew(pair.Certificate, 2*day)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Certificate()) {
		t.Fatal("the authority's certificate is none")
	}
	for what, text := range map[string][]byte{"issued": pair.Certificate, "renewed": renewed} {
		list, err := parseAll(text)
		if err != nil {
			t.Fatal(err)
		}
		c := list[0]
		if c.PublicKeyAlgorithm != x509.ECDSA || c.SignatureAlgorithm != x509.ECDSAWithSHA256 || len(c.URIs) != 1 {
			t.Errorf("%s: %s, %s, %v", what, c.PublicKeyAlgorithm, c.SignatureAlgorithm, c.URIs)
		}
		for host, want := range map[string]bool{"n1": true, "10.0.0.1": true, "[::1]": true, "n2": false, "10.0.0.2": false} {
			if _, err := c.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); (err == nil) != want {
				t.Errorf("%s, called %s: %v", what, host, err)
			}
		}
	}
}
