package certs

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
	maxPEM         = 256 << 10 // bytes of one source
	maxChain       = 16        // certificates in one source
)

// parseAll reads the certificates of a PEM text, at least one.
func parseAll(text []byte) ([]*x509.Certificate, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("%d bytes are too many", len(text))
	}
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != pemCertificate {
			return nil, fmt.Errorf("there is a %q among the certificates", cut(block.Type))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate cannot be decoded")
		}
		if list = append(list, c); len(list) > maxChain {
			return nil, fmt.Errorf("more than %d certificates", maxChain)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("there is no certificate in it (PEM)")
	}
	return list, nil
}

// parseKey reads a private key. Its errors say nothing of what it holds.
func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if len(text) > maxPEM || block == nil || block.Type != pemKey {
		return nil, fmt.Errorf("there is no %s in it (PEM, PKCS 8)", pemKey)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key cannot be decoded")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return signer, nil
}

func samePublic(public any, signer crypto.Signer) bool {
	p, ok := public.(interface{ Equal(crypto.PublicKey) bool })
	return ok && p.Equal(signer.Public())
}

// Info is what a certificate says, for people.
type Info struct {
	Name      string    `json:"name"`      // fencepost://<group>/<node>, or whose authority it is
	Authority bool      `json:"authority"` // it may sign others
	From      time.Time `json:"from"`      // not valid before
	Until     time.Time `json:"until"`     // not valid after
}

// Describe tells what the certificates of a PEM text say. It verifies nothing. An error is a block that is no certificate,
// or none at all.
func Describe(text []byte) ([]Info, error) {
	list, err := parseAll(text)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(list))
	for i, c := range list {
		infos[i] = Info{Name: cut(c.Subject.CommonName), Authority: c.IsCA, From: c.NotBefore, Until: c.NotAfter}
		if n, err := NameOf(c); err == nil {
			infos[i].Name = n.String()
		}
	}
	return infos, nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
