package gms

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// ring is a node's gossip keys: the first encrypts, all decrypt. Each change makes the next version, and of two rings the
// higher version counts; version 0 is the configuration's.
type ring struct {
	version uint64
	keys    [][]byte
}

// KeyFingerprint names a gossip key without telling it: 16 hex digits.
func KeyFingerprint(key []byte) string {
	sum := sha256.Sum256(append([]byte("fencepost gossip key\n"), key...))
	return hex.EncodeToString(sum[:8])
}

// String is the ring without its secrets.
func (r ring) String() string { return fmt.Sprintf("version %d: %v", r.version, r.fingerprints()) }

func (r ring) fingerprints() []string {
	list := make([]string, len(r.keys))
	for i, k := range r.keys {
		list[i] = KeyFingerprint(k)
	}
	return list
}

func (r ring) index(fingerprint string) int { return slices.Index(r.fingerprints(), fingerprint) }

func (r ring) equal(o ring) bool {
	return r.version == o.version && slices.EqualFunc(r.keys, o.keys, bytes.Equal)
}

// next is the ring with other keys.
func (r ring) next(keys ...[]byte) ring { return ring{version: r.version + 1, keys: keys} }

// Changes of a ring. One that changes nothing gives the same version, so that it can be repeated for those who missed it.

func (r ring) adding(key []byte) (ring, error) {
	if r.index(KeyFingerprint(key)) >= 0 {
		return r, nil
	}
	keys := append(slices.Clone(r.keys), key)
	return r.next(keys...), checkKeys(keys)
}

func (r ring) using(fingerprint string) (ring, error) {
	i := r.index(fingerprint)
	switch {
	case i < 0:
		return r, fmt.Errorf("%w: key %s", ErrNotFound, fingerprint)
	case i == 0:
		return r, nil
	}
	keys := slices.Delete(slices.Clone(r.keys), i, i+1)
	return r.next(append([][]byte{r.keys[i]}, keys...)...), nil
}

func (r ring) removing(fingerprint string) (ring, error) {
	i := r.index(fingerprint)
	switch {
	case i < 0:
		return r, nil
	case i == 0:
		return r, withHint(fmt.Errorf("%w: key %s", ErrKeyInUse, fingerprint), "use another key first: `fencepost keyring use`")
	}
	return r.next(slices.Delete(slices.Clone(r.keys), i, i+1)...), nil
}

// newest is the ring that counts among those of the members. Two that differ under one version come from changes that did
// not know of each other; what is made of them has the keys of both, so that it cuts nobody off.
func newest(rings []ring) (ring, error) {
	if len(rings) == 0 {
		return ring{}, errors.New("nobody tells a ring")
	}
	best := slices.MaxFunc(rings, func(a, b ring) int { return cmp.Compare(a.version, b.version) })
	merged, differ := best, false
	for _, r := range rings {
		if r.version != best.version || r.equal(best) {
			continue
		}
		differ = true
		for _, k := range r.keys {
			if merged.index(KeyFingerprint(k)) < 0 {
				merged.keys = append(slices.Clone(merged.keys), k)
			}
		}
	}
	if differ {
		merged.version++
	}
	return merged, checkKeys(merged.keys)
}

func (r ring) wire() *wire.KeyRing { return &wire.KeyRing{Version: r.version, Keys: r.keys} }

// ringOf reads what a member told; an error when it is of no use.
func ringOf(w *wire.KeyRing) (ring, error) {
	r := ring{version: w.GetVersion(), keys: w.GetKeys()}
	if len(r.keys) == 0 {
		return r, errors.New("it has no gossip keys")
	}
	return r, checkKeys(r.keys)
}
