package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
)

// ErrUntrusted: one of the two sides does not believe the other's certificate, or has none.
var ErrUntrusted = errors.New("no trust")

// distrust is an ErrUntrusted that tells whose certificate does not count.
type distrust struct {
	node string
	err  error
}

// Error implements error.
func (d *distrust) Error() string { return d.err.Error() }

// Unwrap implements the errors package's.
func (d *distrust) Unwrap() error { return d.err }

// secured is a connection below TLS 1.3. Both sides show a certificate of the group's authority; peer is whom the other's
// names, once the handshake, which the first read or write makes, is through.
type secured struct {
	*tls.Conn
	raw  net.Conn
	own  *certs.Material
	self certs.Name
	peer certs.Name
}

// secureServer is the side that was dialled.
func secureServer(raw net.Conn, k *certs.Keeper) *secured {
	s := &secured{raw: raw, own: k.Material(), self: k.Name()}
	cfg := s.config(certs.Name{Group: s.self.Group})
	cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, s.own.Roots
	s.Conn = tls.Server(raw, cfg)
	return s
}

// secureClient is the side that dials. The other one must be the node that is meant; empty: any of the group.
func secureClient(raw net.Conn, k *certs.Keeper, node string) *secured {
	s := &secured{raw: raw, own: k.Material(), self: k.Name()}
	cfg := s.config(certs.Name{Group: s.self.Group, Node: node})
	cfg.InsecureSkipVerify = true // host names prove nothing here: VerifyConnection looks at the chain and the name
	s.Conn = tls.Client(raw, cfg)
	return s
}

func (s *secured) config(want certs.Name) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{s.own.Certificate}, SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			name, err := certs.Verify(state.PeerCertificates, s.own.Roots, want, time.Now())
			if err != nil {
				return s.untrusted(name, err)
			}
			s.peer = name
			return nil
		},
	}
}

// untrusted says why the other side's certificate does not count, and what to do.
func (s *secured) untrusted(name certs.Name, err error) error {
	if errors.Is(err, certs.ErrOtherName) && name.Group == s.self.Group {
		err = fmt.Errorf("%w: %w", ErrWrongNode, err)
	}
	return &distrust{node: name.Node, err: fmt.Errorf("%w: %w%s", ErrUntrusted, err, remedy(name, err))}
}

func remedy(name certs.Name, err error) string {
	switch {
	case errors.Is(err, certs.ErrExpired):
		return fmt.Sprintf(": `fencepost certs renew --node %s`", name.Node)
	case errors.Is(err, certs.ErrStranger):
		return ": all nodes of a group need certificates of one authority"
	}
	return ""
}

// explain translates what a failed handshake says, once, into words for people; other errors stay as they are.
func (s *secured) explain(err error) error {
	var bad *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrUntrusted):
		return err
	case errors.As(err, &bad):
		return s.explainChain(bad.UnverifiedCertificates)
	case errors.As(err, &header):
		return fmt.Errorf("%w: the other side does not speak TLS: has it no certificate (`fencepost certs`)?", ErrUntrusted)
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Errorf("%w: the other side refuses this node's certificate (%w): %s", ErrUntrusted, op.Err, s.ownState())
	}
	return err
}

func (s *secured) explainChain(chain []*x509.Certificate) error {
	name, err := certs.Verify(chain, s.own.Roots, certs.Name{Group: s.self.Group}, time.Now())
	if err == nil { // what the library refused for a reason of its own
		err = certs.ErrNone
	}
	return s.untrusted(name, err)
}

// ownState tells what may be wrong with the own certificate.
func (s *secured) ownState() string {
	until := s.own.Until().UTC().Format("2006-01-02 15:04 UTC")
	if time.Now().After(s.own.Until()) {
		return fmt.Sprintf("that of %s expired on %s: `fencepost certs renew --node %s`", s.self, until, s.self.Node)
	}
	return fmt.Sprintf("that of %s is valid until %s: has it the authority of the others?", s.self, until)
}

// spokePlain tells whether a handshake failed because the other side opened with a hello that is not below TLS.
func spokePlain(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) && string(header.RecordHeader[:len(magic)]) == magic
}

// firstBytes says of bytes that are no hello what they may be.
func firstBytes(head []byte) error {
	switch {
	case head[0] == 0x16 && head[1] == 3: // a TLS handshake
		return fmt.Errorf("%w: the other side speaks TLS and this node has no certificate: `fencepost certs`", ErrUntrusted)
	case head[0] == 0x15 && head[1] == 3: // a TLS alert
		return fmt.Errorf("%w: the other side wants TLS and this node has no certificate: `fencepost certs`", ErrUntrusted)
	}
	return fmt.Errorf("%w: the first bytes are %q", ErrProtocol, head)
}
