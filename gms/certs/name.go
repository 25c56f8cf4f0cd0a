package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// scheme begins the URI that names a node.
const scheme = "fencepost"

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Name is whom a certificate is for: the Node of a Group. Both are 1 to 63 of a-z, 0-9 and "-", which is not at an end.
type Name struct{ Group, Node string }

// String is the name as it stands in a certificate.
func (n Name) String() string { return scheme + "://" + n.Group + "/" + n.Node }

// check refuses what could not be read back.
func (n Name) check() error {
	for what, s := range map[string]string{"group": n.Group, "node": n.Node} {
		if !label.MatchString(s) {
			return fmt.Errorf("%s %q cannot be in a certificate: want 1 to 63 of a-z, 0-9 and -, which is not at an end", what, s)
		}
	}
	return nil
}

func (n Name) url() *url.URL { return &url.URL{Scheme: scheme, Host: n.Group, Path: "/" + n.Node} }

// ParseName reads what String wrote, and nothing else. Its error says what is wrong.
func ParseName(uri string) (Name, error) {
	rest, ok := strings.CutPrefix(uri, scheme+"://")
	group, node, both := strings.Cut(rest, "/")
	n := Name{Group: group, Node: node}
	if !ok || !both || n.check() != nil {
		return Name{}, fmt.Errorf("%q names no node: want %s://<group>/<node>", cut(uri), scheme)
	}
	return n, nil
}

// NameOf is whom a certificate is for. One that names two nodes, or none, is nobody's. Then the error says so.
func NameOf(c *x509.Certificate) (Name, error) {
	if len(c.URIs) != 1 {
		return Name{}, fmt.Errorf("a node's certificate has one URI, this one has %d", len(c.URIs))
	}
	if c.IsCA {
		return Name{}, errors.New("it is an authority's certificate, not a node's")
	}
	return ParseName(c.URIs[0].String())
}

// cut bounds what others wrote before it gets into a message.
func cut(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
