package offline

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
)

// prepared is a configuration as Init writes it.
func prepared(t *testing.T) *configs.Config {
	t.Helper()
	files, err := Init(options(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.LoadWith(files[0].Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCheckSecurity: each thing that is wrong is one line with its key and the remedy, and none holds a secret.
func TestCheckSecurity(t *testing.T) {
	for _, x := range []struct {
		name   string
		damage func(t *testing.T, c *configs.Config)
		want   []string
	}{
		{"nothing", func(*testing.T, *configs.Config) {}, nil},
		{"no security at all", func(_ *testing.T, c *configs.Config) { c.Security = configs.Security{} }, nil},
		{"a readable key", func(t *testing.T, c *configs.Config) { chmod(t, c.Security.KeyFile, 0o640) },
			[]string{"security.key_file: ", "may be read or written by others (mode 0640): chmod 600"}},
		{"a readable gossip key", func(t *testing.T, c *configs.Config) { chmod(t, c.Security.GossipKeyFile, 0o604) },
			[]string{"security.gossip_key_file: ", "chmod 600"}},
		{"no key", func(t *testing.T, c *configs.Config) { remove(t, c.Security.KeyFile) }, []string{"security.key_file: ", "is not there"}},
		{"no certificate", func(t *testing.T, c *configs.Config) { remove(t, c.Security.CertificateFile) }, []string{"security.certificate_file: "}},
		{"another node", func(_ *testing.T, c *configs.Config) { c.Node = "n2" }, []string{"security.certificate_file: ", "for node n1, not n2", "certs issue"}},
		{"another group", func(_ *testing.T, c *configs.Config) { c.Group = "bank" }, []string{"for group fencepost, not bank"}},
		{"another's key", func(_ *testing.T, c *configs.Config) {
			c.Security.KeyFile = strings.Replace(c.Security.KeyFile, "n1.key", "n2.key", 1)
		}, []string{"the key does not belong to the certificate"}},
		{"another authority", func(t *testing.T, c *configs.Config) { c.Security.CAFile = prepared(t).Security.CAFile }, []string{"of another authority"}},
		{"garbage for a gossip key", func(t *testing.T, c *configs.Config) { write(t, c.Security.GossipKeyFile, "hunter2\n") },
			[]string{"security.gossip_key_file: ", "line 1 is not a key"}},
		{"expired", func(t *testing.T, c *configs.Config) { expired(t, c) }, []string{"security.certificate_file: ", "expired", "certs renew --node n1"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := prepared(t)
			x.damage(t, c)
			_, err := CheckSecurity(c, time.Now())
			var bad *configs.Error
			if len(x.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &bad) || len(bad.Problems) != 1 || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("%v, want one line", err)
			}
			for _, w := range x.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v has no %q", err, w)
				}
			}
		})
	}
}

// TestCheckSecurityWarns: a month before the end, and not earlier.
func TestCheckSecurityWarns(t *testing.T) {
	c := prepared(t)
	for days, want := range map[int]bool{330: false, 336: true, 364: true} {
		warnings, err := CheckSecurity(c, time.Now().Add(time.Duration(days)*24*time.Hour))
		if err != nil || (len(warnings) == 1) != want {
			t.Errorf("after %d days: %v, %v", days, warnings, err)
		}
	}
}

// expired puts a certificate that was valid yesterday in the place of the node's, with an authority of its own.
func expired(t *testing.T, c *configs.Config) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	node := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(-time.Hour),
		URIs: []*url.URL{{Scheme: "fencepost", Host: c.Group, Path: "/" + c.Node}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	encode := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	der, err := x509.CreateCertificate(nil, ca, ca, public, key)
	write(t, c.Security.CAFile, encode("CERTIFICATE", der, err))
	der, err = x509.CreateCertificate(nil, node, ca, public, key)
	write(t, c.Security.CertificateFile, encode("CERTIFICATE", der, err))
	der, err = x509.MarshalPKCS8PrivateKey(key)
	write(t, c.Security.KeyFile, encode("PRIVATE KEY", der, err))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
