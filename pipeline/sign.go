package pipeline

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
)

// A manifest says which node of which group has made it, and carries that node's public key and a signature of all that
// stands before the signature, byte by byte: `,\n  "signature": "..."\n}\n` is its end. So it is checked as it lies there,
// whatever a later version of this program would make of its fields. The signature alone says only that nothing was
// changed; whether the key is one of ours is judged by what the group, or a list that was kept, knows of it.

// ErrForeign: a manifest is not signed, or not by a node of this group. Nothing is restored from it unless a person says so.
var ErrForeign = errors.New("not made by this group")

// ErrUnknownKey: a manifest says that it is this group's own, and its key is none that is known: that of a node which joined
// later than the list was written, or a stranger's. Such a manifest is ErrForeign too.
var ErrUnknownKey = errors.New("its manifest is signed with a key that the group does not know")

// Signer signs the manifests that a node makes.
type Signer struct {
	Cluster string            // id of the group
	Node    string            // name of the node
	Key     ed25519.PublicKey // of the node
	Sign    func(message []byte) []byte
}

// signPurpose begins what is signed: a signature of anything else is none of a manifest.
const signPurpose = "fencepost manifest\n"

// sign returns m signed. A nil Signer, and a manifest that cannot be encoded, leave it as it is.
func (s *Signer) sign(m Manifest) Manifest {
	if s == nil {
		return m
	}
	m.Cluster, m.Node, m.Key, m.Signature = s.Cluster, s.Node, s.Key, nil
	if text, err := m.Encode(); err == nil {
		m.Signature = s.Sign(append([]byte(signPurpose), text...))
	}
	return m
}

// Unsigned returns m without a signature.
func (m Manifest) Unsigned() Manifest {
	m.Cluster, m.Node, m.Key, m.Signature = "", "", nil, nil
	return m
}

// signed says whether text, which m was read from, is what its signature says. An unsigned one is.
func (m Manifest) signed(text []byte) error {
	if len(m.Signature) == 0 && len(m.Key) == 0 {
		return nil
	}
	if len(m.Key) != ed25519.PublicKeySize || len(m.Signature) != ed25519.SignatureSize {
		return errors.New("signature or key is not of its length")
	}
	end := []byte(",\n  \"signature\": \"" + base64.StdEncoding.EncodeToString(m.Signature) + "\"\n}\n")
	before, ok := bytes.CutSuffix(text, end)
	if !ok {
		return errors.New("signature is not at the end")
	}
	message := append(append([]byte(signPurpose), before...), "\n}\n"...)
	if !ed25519.Verify(m.Key, message, m.Signature) {
		return errors.New("it was changed after it was signed")
	}
	return nil
}

// Judge says whether a manifest that DecodeManifest has read was made by a node of the group with the id cluster: nil, or
// ErrForeign and why, in one line. known tells which keys are those of its nodes, or once were.
func Judge(m Manifest, cluster string, known func(node string, key ed25519.PublicKey) bool) error {
	var why error
	switch {
	case len(m.Signature) == 0:
		why = errors.New("its manifest is not signed")
	case m.Cluster != cluster:
		why = fmt.Errorf("its manifest is signed by node %q of another group (%.40s)", m.Node, m.Cluster)
	case !known(m.Node, m.Key):
		why = fmt.Errorf("%w as node %q's", ErrUnknownKey, m.Node)
	default:
		return nil
	}
	return &foreignError{fmt.Errorf("backup %s, token %d, is %w: %w", m.Backup, m.Token, ErrForeign, why)}
}

// foreignError is an ErrForeign with its remedy.
type foreignError struct{ error }

func (e *foreignError) Unwrap() error { return e.error }

// Hint is what a person can do.
func (e *foreignError) Hint() string {
	return "if you know where it comes from, restore it with --accept-foreign"
}

// trusts judges a manifest, if the catalog does.
func (c Catalog) trusts(ctx context.Context, m Manifest) error {
	if c.Trust == nil {
		return nil
	}
	return c.Trust(ctx, m)
}
