package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Remote is a daemon on another machine.
type Remote struct {
	URL   string // https://host:port, or on loopback http://host:port
	Token string // of fencepost token create
	// Authority is the certificate of the group's authority, or of whoever signed the daemon's, as PEM; empty: whom the
	// system believes. A certificate of a node of the group, which names the node and not its address, is believed only
	// with its authority here.
	Authority []byte
}

// nodeScheme is that of the name in a node's certificate.
const nodeScheme = "fencepost"

// NewRemote makes a client of a daemon on another machine; it connects at the first call. The owner calls Close. A *Error
// says what of r makes no sense.
func NewRemote(r Remote) (*Client, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &Error{Code: CodeUsage, Message: "the server's address makes no sense", Hint: "want https://host:port, such as https://n1.example.org:7948"}
	}
	if u.Scheme == "http" && !onLoopback(u.Hostname()) {
		return nil, &Error{Code: CodeUsage, Message: "a token is sent to other machines over https only", Hint: "want https://host:port"}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(r.Authority) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(r.Authority) {
			return nil, &Error{Code: CodeUsage, Message: "the authority's file has no certificate in it (PEM)"}
		}
		secure.InsecureSkipVerify = true // verify does it all
		secure.VerifyConnection = verify(pool)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &Client{where: u.Host, base: u.Scheme + "://" + u.Host, token: r.Token, away: true, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: secure, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the daemon redirects, which it never does")
		},
	}}, nil
}

func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// verify believes a certificate that the pool has signed, when it is for the host that was called, or of a node.
func verify(pool *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		own := s.PeerCertificates[0]
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		if _, err := own.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			return err
		}
		for _, name := range own.URIs {
			if name.Scheme == nodeScheme {
				return nil
			}
		}
		return own.VerifyHostname(s.ServerName)
	}
}

// inner is the error below those that repeat the address.
func inner(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// remoteHint is what to do when a daemon on another machine does not answer.
func remoteHint(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	if errors.As(err, &unknown) || errors.As(err, &name) {
		return "name the certificate of the group's authority (ca.pem of fencepost init) with --server-ca-file or FENCEPOST_SERVER_CA_FILE"
	}
	return "look at admin.bind of the node's configuration, and at the address given with --server or FENCEPOST_SERVER"
}
