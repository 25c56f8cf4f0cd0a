package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// authorityOf and the group's name are what an authority's certificate calls itself.
const authorityOf = "fencepost authority of "

// backdate is how much slower another machine's clock may be without refusing a fresh certificate.
const backdate = time.Hour

// Authority signs the certificates of one group.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Pair is a node's Certificate and Key, both PEM. The key is secret.
type Pair struct{ Certificate, Key []byte }

// NewAuthority makes an authority; valid is how long its certificate lasts. Errors: a group's name that cannot be in a
// certificate, or no random numbers.
func NewAuthority(group string, valid time.Duration) (*Authority, error) {
	if err := (Name{Group: group, Node: "n"}).check(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template, err := newTemplate(authorityOf+group, valid)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key}, nil
}

// ReadAuthority takes an authority's certificate and key, as Certificate and Key gave them. Of several certificates, as while
// one authority replaces another, it is the one that the key fits. Errors: not PEM, not an authority's certificate, or a key
// that fits none.
func ReadAuthority(certificate, key []byte) (*Authority, error) {
	list, err := parseAll(certificate)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	for _, cert := range list {
		if samePublic(cert.PublicKey, signer) {
			if !cert.IsCA {
				return nil, errors.New("read the authority's certificate: it is one that may not sign others")
			}
			return &Authority{cert: cert, key: signer}, nil
		}
	}
	return nil, ErrOtherKey
}

// Group is the group whose certificates the authority signs, as its own certificate says.
func (a *Authority) Group() string { return strings.TrimPrefix(a.cert.Subject.CommonName, authorityOf) }

// Until is when the authority expires, and with it all that it has signed.
func (a *Authority) Until() time.Time { return a.cert.NotAfter }

// Signed tells whether the first certificate of a text is one that this authority has signed, whatever its time. The error is
// one of reading it.
func (a *Authority) Signed(certificate []byte) (bool, error) {
	list, err := parseAll(certificate)
	if err != nil {
		return false, fmt.Errorf("read the certificate: %w", err)
	}
	return list[0].CheckSignatureFrom(a.cert) == nil, nil
}

// Certificate is the authority's certificate as PEM: every node has it.
func (a *Authority) Certificate() []byte { return encodeCert(a.cert) }

// Key is the authority's key as PEM. Whoever has it can speak for every node. The error is one of encoding.
func (a *Authority) Key() ([]byte, error) { return encodeKey(a.key) }

// Issue makes a node's key and certificate. It lasts for valid, but no longer than the authority. hosts are names and addresses
// by which browsers call the node; members of the group do not look at them. Errors: a name that cannot be in a certificate,
// ErrExpired when the authority has expired.
func (a *Authority) Issue(n Name, valid time.Duration, hosts ...string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of node %s: %w", n.Node, err)
	}
	cert, err := a.issue(n, key.Public(), valid, hosts)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := encodeKey(key)
	return Pair{Certificate: encodeCert(cert), Key: encoded}, err
}

// Renew makes a new certificate for the name, the hosts and the key of an old one, which may have expired but must be this
// authority's. The key stays, so that a node never finds a certificate and a key that do not fit together. Errors: no
// certificate, or not one of this authority.
func (a *Authority) Renew(certificate []byte, valid time.Duration) ([]byte, error) {
	return a.Succeed(a, certificate, valid)
}

// Succeed is Renew for a certificate of another authority, which this one takes the place of. Errors as there.
func (a *Authority) Succeed(former *Authority, certificate []byte, valid time.Duration) ([]byte, error) {
	list, err := parseAll(certificate)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	old := list[0]
	n, err := NameOf(old)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if err := old.CheckSignatureFrom(former.cert); err != nil {
		return nil, fmt.Errorf("renew the certificate of node %s: %w", n.Node, ErrStranger)
	}
	hosts := old.DNSNames
	for _, ip := range old.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	cert, err := a.issue(n, old.PublicKey, valid, hosts)
	if err != nil {
		return nil, err
	}
	return encodeCert(cert), nil
}

func (a *Authority) issue(n Name, public any, valid time.Duration, hosts []string) (*x509.Certificate, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	template, err := newTemplate(n.Node, valid)
	if err != nil {
		return nil, err
	}
	if !time.Now().Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("issue the certificate of node %s: %w: the authority's, on %s", n.Node, ErrExpired, date(a.cert.NotAfter))
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.BasicConstraintsValid = true
	template.URIs = []*url.URL{n.url()}
	for _, h := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if h != "" {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return sign(template, a.cert, public, a.key)
}

func newTemplate(common string, valid time.Duration) (*x509.Certificate, error) {
	if valid < time.Minute {
		return nil, fmt.Errorf("a certificate of %v is of no use: at least 1m", valid)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: common},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(valid),
	}, nil
}

func sign(template, parent *x509.Certificate, public any, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}
