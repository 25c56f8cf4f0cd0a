package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Source is where a node's certificate comes from. Each function gives PEM; it is called whenever a connection is made, from
// any goroutine, and may block for as long as reading a local file does.
type Source struct {
	Certificate func() ([]byte, error) // the node's own, followed by those between it and the authority, if any
	Key         func() ([]byte, error) // of the certificate
	CA          func() ([]byte, error) // the authorities that are believed; two while one replaces the other
}

// Files is the source that reads three files.
func Files(certificate, key, ca string) *Source {
	file := func(path string) func() ([]byte, error) { return func() ([]byte, error) { return os.ReadFile(path) } }
	return &Source{Certificate: file(certificate), Key: file(key), CA: file(ca)}
}

// Material is what was read at one moment, checked to fit together.
type Material struct {
	Certificate tls.Certificate // with its Leaf
	Roots       *x509.CertPool  // the authorities that are believed
}

// Until is when the certificate expires.
func (m *Material) Until() time.Time { return m.Certificate.Leaf.NotAfter }

// Keeper gives a node's certificate for each connection.
type Keeper struct {
	name   Name
	source Source
	warn   func(error)

	mu       sync.Mutex
	texts    [3][]byte // what last was read
	last     *Material // the last that was good
	verified time.Time // when the texts were last found to count
	failed   string    // why the last reading was not
}

// verifyEvery is how long it counts that the own certificate was verified, while nothing of it changes and it has not expired:
// each connection asks for it, and signatures are most of what that costs.
const verifyEvery = time.Minute

// NewKeeper reads the source for the first time, and fails when it is of no use: the parts do not fit together, it is for
// another name, or it has expired. warn is told of later readings that fail, once for each reason; nil: nobody is.
func NewKeeper(name Name, source Source, warn func(error)) (*Keeper, error) {
	if source.Certificate == nil || source.Key == nil || source.CA == nil {
		return nil, errors.New("a certificate, its key and the authority's certificate are needed")
	}
	k := &Keeper{name: name, source: source, warn: warn}
	m, err := k.read()
	if err != nil {
		return nil, err
	}
	k.last = m
	return k, nil
}

// Name is whom the certificate is for.
func (k *Keeper) Name() Name { return k.name }

// Material reads the source anew. While that fails, it gives the last that was good: a certificate that is being replaced
// must not cut the node off; one that has expired is given too, so that the other side can say so.
func (k *Keeper) Material() *Material {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, err := k.read()
	if err == nil {
		k.last, k.failed = m, ""
		return m
	}
	if why := err.Error(); why != k.failed && k.warn != nil {
		k.failed = why
		k.warn(err)
	}
	return k.last
}

// read is one reading; texts that have not changed are not decoded again.
func (k *Keeper) read() (*Material, error) {
	var texts [3][]byte
	for i, part := range []struct {
		what string
		get  func() ([]byte, error)
	}{{"certificate", k.source.Certificate}, {"key of the certificate", k.source.Key}, {"certificate of the authority", k.source.CA}} {
		var err error
		if texts[i], err = part.get(); err != nil {
			return nil, fmt.Errorf("read the %s: %w", part.what, err)
		}
	}
	same := func(i int) bool { return bytes.Equal(texts[i], k.texts[i]) }
	m, now := k.last, time.Now()
	if m == nil || !same(0) || !same(1) || !same(2) {
		var err error
		if m, err = load(texts); err != nil {
			return nil, err
		}
	} else if age := now.Sub(k.verified); age >= 0 && age < verifyEvery && now.Before(m.Until()) {
		return m, nil
	}
	chain, err := chainOf(m)
	if err != nil {
		return nil, err
	}
	if _, err := Verify(chain, m.Roots, k.name, now); err != nil {
		return nil, fmt.Errorf("the own certificate: %w", err)
	}
	k.texts, k.verified = texts, now
	return m, nil
}

func load(texts [3][]byte) (*Material, error) {
	chain, err := parseAll(texts[0])
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	key, err := parseKey(texts[1])
	if err != nil {
		return nil, fmt.Errorf("read the key of the certificate: %w", err)
	}
	if !samePublic(chain[0].PublicKey, key) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	roots, err := parseAll(texts[2])
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	m := &Material{Certificate: tls.Certificate{PrivateKey: key, Leaf: chain[0]}, Roots: x509.NewCertPool()}
	for _, c := range chain {
		m.Certificate.Certificate = append(m.Certificate.Certificate, c.Raw)
	}
	for _, c := range roots {
		m.Roots.AddCert(c)
	}
	return m, nil
}

func chainOf(m *Material) ([]*x509.Certificate, error) {
	chain := []*x509.Certificate{m.Certificate.Leaf}
	for _, raw := range m.Certificate.Certificate[1:] {
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, errors.New("a certificate cannot be decoded")
		}
		chain = append(chain, c)
	}
	return chain, nil
}
