package offline

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms/certs"
)

// Names of the files in a directory of certificates: ca.pem, ca.key, <node>.pem, <node>.key, gossip.key; while one authority
// takes the place of another, the key of the next one.
const (
	authorityName = "ca"
	nextName      = "ca-next"
	certSuffix    = ".pem"
	keySuffix     = ".key"
	gossipKeyName = "gossip.key"
)

// How long certificates last unless something else is asked for.
const (
	AuthorityValid = 10 * 365 * 24 * time.Hour
	NodeValid      = 365 * 24 * time.Hour
)

// ErrExpired: a certificate's time is over; of an authority, that none can be made by it any more.
var ErrExpired = certs.ErrExpired

// CertFile is one certificate of a file.
type CertFile struct {
	File string `json:"file"`
	certs.Info
	DaysLeft int `json:"days_left"` // negative: expired that long ago
}

// secrets makes what a new group needs beside its configurations.
func secrets(dir string, plans []plan) ([]output, error) {
	group := plans[0].config.Group
	ca, err := certs.NewAuthority(group, AuthorityValid)
	if err != nil {
		return nil, err
	}
	key, err := ca.Key()
	if err != nil {
		return nil, err
	}
	gossip, err := NewGossipKey()
	if err != nil {
		return nil, err
	}
	outputs := []output{
		{filepath.Join(dir, authorityName+certSuffix), string(ca.Certificate())},
		{filepath.Join(dir, authorityName+keySuffix), string(key)},
		{filepath.Join(dir, gossipKeyName), configs.FormatGossipKey(gossip)},
	}
	for _, p := range plans {
		pair, err := ca.Issue(certs.Name{Group: group, Node: p.config.Node}, NodeValid, p.config.AdminHosts()...)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs,
			output{p.config.Security.CertificateFile, string(pair.Certificate)},
			output{p.config.Security.KeyFile, string(pair.Key)})
	}
	return outputs, nil
}

// NewGossipKey draws a key.
func NewGossipKey() ([]byte, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("draw a key: %w", err)
	}
	return key, nil
}

// NewAuthority writes an authority's certificate and key into a directory, which is made when missing. It overwrites
// nothing.
func NewAuthority(dir, group string, valid time.Duration) ([]CertFile, error) {
	ca, err := certs.NewAuthority(group, valid)
	if err != nil {
		return nil, err
	}
	key, err := ca.Key()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, authorityName+certSuffix)
	err = writeAll(dir, []output{{path, string(ca.Certificate())}, {filepath.Join(dir, authorityName+keySuffix), string(key)}})
	if err != nil {
		return nil, err
	}
	return showFile(path, time.Now())
}

// IssueCert writes a node's certificate and key into the directory of the authority. hosts are names and addresses by which
// browsers call the node, beside its name. It overwrites nothing.
func IssueCert(dir, group, node string, valid time.Duration, hosts ...string) ([]CertFile, error) {
	ca, err := openAuthority(dir)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Issue(certs.Name{Group: group, Node: node}, valid, append([]string{node}, hosts...)...)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, node+certSuffix)
	if err := writeAll(dir, []output{{path, string(pair.Certificate)}, {filepath.Join(dir, node+keySuffix), string(pair.Key)}}); err != nil {
		return nil, err
	}
	return showFile(path, time.Now())
}

// RenewCert replaces a node's certificate in the directory of the authority by one with the same name and key and a new
// time, so that a running node takes it up by itself.
func RenewCert(dir, node string, valid time.Duration) ([]CertFile, error) {
	ca, err := openAuthority(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, node+certSuffix)
	old, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	renewed, err := ca.Renew(old, valid)
	if err != nil {
		return nil, err
	}
	if err := replace(path, renewed); err != nil {
		return nil, err
	}
	return showFile(path, time.Now())
}

func openAuthority(dir string) (*certs.Authority, error) { return authorityBy(dir, authorityName) }

// authorityBy is the one of the authorities of ca.pem that a key belongs to.
func authorityBy(dir, name string) (*certs.Authority, error) {
	key := filepath.Join(dir, name+keySuffix)
	keyText, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	if problem := configs.PrivateFile(key); problem != "" {
		return nil, fmt.Errorf("the authority's key: %s", problem)
	}
	text, err := os.ReadFile(filepath.Join(dir, authorityName+certSuffix))
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	return certs.ReadAuthority(text, keyText)
}

// replace writes a file so that after a crash it is either the old or the new one.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write a file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// ShowCerts tells what a file, or all *.pem files of a directory, hold.
func ShowCerts(path string, now time.Time) ([]CertFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at the certificates: %w", err)
	}
	if !info.IsDir() {
		return showFile(path, now)
	}
	paths, err := filepath.Glob(filepath.Join(path, "*"+certSuffix))
	if err != nil {
		return nil, fmt.Errorf("look at the certificates: %w", err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no *%s files: %w", path, certSuffix, fs.ErrNotExist)
	}
	var all []CertFile
	for _, p := range slices.Sorted(slices.Values(paths)) {
		list, err := showFile(p, now)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func showFile(path string, now time.Time) ([]CertFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	infos, err := certs.Describe(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	list := make([]CertFile, len(infos))
	for i, info := range infos {
		list[i] = CertFile{File: path, Info: info, DaysLeft: daysLeft(info.Until, now)}
	}
	return list, nil
}

// daysLeft counts whole days, down.
func daysLeft(until, now time.Time) int {
	const day = 24 * time.Hour
	left := until.Sub(now)
	days := int(left / day)
	if left < 0 && left%day != 0 {
		days--
	}
	return days
}
