package offline

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/fencepost/fencepost/pipeline"
)

// SignersName is the file of a home that lists who may have signed manifests.
const SignersName = "signers.json"

const signersFormat = 1

// Signers are the keys that ever signed for a group: what makes a manifest one of its own. Nothing in it is secret, but
// who can write it decides what is believed.
type Signers struct {
	Format  int               `json:"format"`
	Cluster string            `json:"cluster"`
	Keys    map[string]string `json:"keys"` // public key, hex → name of the node
	// Before are those of lost groups whose state this one has taken over, by their ids.
	Before map[string]map[string]string `json:"before,omitempty"`
}

// Know tells whether a key is that of a node of a group: this one, or one before it.
func (s Signers) Know(cluster, node string, key ed25519.PublicKey) bool {
	keys := s.Keys
	if cluster != s.Cluster {
		keys = s.Before[cluster]
	}
	name, known := keys[hex.EncodeToString(key)]
	return known && name == node
}

// ReadSigners reads a list.
func ReadSigners(path string) (Signers, error) {
	var s Signers
	text, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read the list of signers: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read the list of signers %s: %w", path, err)
	}
	if s.Format != signersFormat {
		return s, fmt.Errorf("the list of signers %s has format %d, this program knows %d", path, s.Format, signersFormat)
	}
	return s, nil
}

// Write writes the list, all or nothing, unless it says the same already.
func (s Signers) Write(path string) error {
	s.Format = signersFormat
	old, err := ReadSigners(path)
	switch {
	case err == nil && old.Cluster == s.Cluster && maps.Equal(old.Keys, s.Keys) && maps.EqualFunc(old.Before, s.Before, maps.Equal[map[string]string, map[string]string]):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && old.Format > signersFormat:
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(path, string(text)+"\n"); err != nil {
		return fmt.Errorf("write the list of signers: %w", err)
	}
	return nil
}

// Trust judges manifests by the list.
func (s Signers) Trust(_ context.Context, m pipeline.Manifest) error {
	cluster := s.Cluster
	if _, before := s.Before[m.Cluster]; before {
		cluster = m.Cluster
	}
	return pipeline.Judge(m, cluster, func(node string, key ed25519.PublicKey) bool { return s.Know(cluster, node, key) })
}
