package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Why a certificate does not count. The text around them names the node, the group and the date.
var (
	// ErrExpired: its time is over, or has not come: renew it (`fencepost certs renew`), or set the clock.
	ErrExpired = errors.New("certificate has expired")
	// ErrStranger: another authority has signed it.
	ErrStranger = errors.New("certificate is of another authority")
	// ErrOtherName: it is for another node or another group.
	ErrOtherName = errors.New("certificate is for somebody else")
	// ErrOtherKey: the key of an authority fits none of its certificates.
	ErrOtherKey = errors.New("the authority's key does not belong to its certificate")
	// ErrNone: it is not a node's certificate, or there is none.
	ErrNone = errors.New("no certificate of a node")
)

// Verify decides whether a chain, the node's own certificate first, proves a name of the group. With a node it must be that
// one. Errors: ErrNone, ErrExpired, ErrStranger, ErrOtherName.
func Verify(chain []*x509.Certificate, roots *x509.CertPool, want Name, now time.Time) (Name, error) {
	if len(chain) == 0 {
		return Name{}, fmt.Errorf("%w: none was shown", ErrNone)
	}
	leaf := chain[0]
	name, err := NameOf(leaf)
	if err != nil {
		return Name{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	signed := func(at time.Time) error {
		_, err := leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		return err
	}
	switch { // anybody may write an expired certificate with any name: it must be the authority's to be called expired
	case now.After(leaf.NotAfter) && signed(leaf.NotAfter) == nil:
		return name, fmt.Errorf("%w: that of %s, on %s", ErrExpired, name, date(leaf.NotAfter))
	case now.Before(leaf.NotBefore) && signed(leaf.NotBefore) == nil:
		return name, fmt.Errorf("%w: that of %s is valid from %s on: is the clock right?", ErrExpired, name, date(leaf.NotBefore))
	}
	err = signed(now)
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != leaf:
		return name, fmt.Errorf("%w: that of the authority of %s, on %s", ErrExpired, name, date(invalid.Cert.NotAfter))
	case err != nil:
		return name, fmt.Errorf("%w: that of %s", ErrStranger, name)
	case name.Group != want.Group:
		return name, fmt.Errorf("%w: for group %s, not %s", ErrOtherName, name.Group, want.Group)
	case want.Node != "" && name.Node != want.Node:
		return name, fmt.Errorf("%w: for node %s, not %s", ErrOtherName, name.Node, want.Node)
	}
	return name, nil
}
