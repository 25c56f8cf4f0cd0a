package configs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Security is what keeps strangers out: all of it, or, on loopback only, none. Secrets are in files, which nobody but the
// node's user may read (0600).
type Security struct {
	// CertificateFile, KeyFile and CAFile are this node's certificate, its key, and the certificate of the group's
	// authority, as PEM; absolute paths, all three or none. They are read again for each connection, so that a renewed
	// certificate needs no restart. Default none.
	CertificateFile string `yaml:"certificate_file"`
	KeyFile         string `yaml:"key_file"`
	CAFile          string `yaml:"ca_file"`
	// GossipKeyFile has the keys of gossip, one a line, the one that is used first; an absolute path. Default none.
	GossipKeyFile string `yaml:"gossip_key_file"`
}

// Certified tells whether certificates are configured.
func (s Security) Certified() bool {
	return s.CertificateFile != "" && s.KeyFile != "" && s.CAFile != ""
}

// complete tells whether strangers are kept out of all ports.
func (s Security) complete() bool { return s.Certified() && s.GossipKeyFile != "" }

func (c *Config) checkSecurity(ps *problems) {
	s := c.Security
	files := []struct{ path, value string }{
		{"security.certificate_file", s.CertificateFile}, {"security.key_file", s.KeyFile}, {"security.ca_file", s.CAFile},
		{"security.gossip_key_file", s.GossipKeyFile},
	}
	for _, f := range files {
		if f.value != "" && !filepath.IsAbs(f.value) {
			ps.add(f.path, "is %q, want an absolute path: begin with /", f.value)
		}
	}
	if s.CertificateFile+s.KeyFile+s.CAFile != "" {
		for _, f := range files[:3] {
			if f.value == "" {
				ps.add(f.path, "is missing: certificate_file, key_file and ca_file belong together: `fencepost certs` makes them")
			}
		}
	}
}

// maxGossipKeys is the most that a node keeps.
const maxGossipKeys = 8

// GossipKeys reads GossipKeyFile; none without one. Errors are *Error and never show a key.
func (s Security) GossipKeys() ([][]byte, error) {
	const path = "security.gossip_key_file"
	if s.GossipKeyFile == "" {
		return nil, nil
	}
	var ps problems
	if problem := PrivateFile(s.GossipKeyFile); problem != "" {
		ps.add(path, "%s", problem)
		return nil, ps.err("")
	}
	text, err := os.ReadFile(s.GossipKeyFile)
	if err != nil {
		ps.add(path, "%v", err)
		return nil, ps.err("")
	}
	keys, err := ParseGossipKeys(text)
	if err != nil {
		ps.add(path, "%s: %v", s.GossipKeyFile, err)
	}
	return keys, ps.err("")
}

// ParseGossipKeys reads keys as GossipKeyFile has them: base64 of 16, 24 or 32 bytes each, one a line; empty lines and
// those that begin with # say nothing. At least one, no two alike. Errors never show a key.
func ParseGossipKeys(text []byte) ([][]byte, error) {
	var keys [][]byte
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if n := len(key); err != nil || n != 16 && n != 24 && n != 32 {
			return nil, fmt.Errorf("line %d is not a key: want 16, 24 or 32 random bytes in base64, such as `head -c 32 /dev/urandom | base64` gives", number)
		}
		for _, other := range keys {
			if bytes.Equal(other, key) {
				return nil, fmt.Errorf("line %d repeats a key", number)
			}
		}
		if keys = append(keys, key); len(keys) > maxGossipKeys {
			return nil, fmt.Errorf("there are more than %d keys", maxGossipKeys)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return keys, nil
}

// FormatGossipKey is a key as one line of GossipKeyFile.
func FormatGossipKey(key []byte) string { return base64.StdEncoding.EncodeToString(key) + "\n" }

// PrivateFile is why a file with a secret cannot be used, in words; empty when nobody but its owner may read it.
func PrivateFile(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is not there"
	case err != nil:
		return err.Error()
	case info.IsDir():
		return path + " is a directory"
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Sprintf("%s may be read or written by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return ""
}
