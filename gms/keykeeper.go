package gms

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/fencepost/fencepost/gms/internal/gossip"
)

// keyKeeper has the gossip keys of this node. Once the group's keys have been changed, the home keeps its own list,
//
//	home/gossip.keys  0600: {"version": 1, "ring": 3, "keys": ["base64", …]}, rewritten by rename
//
// which counts instead of the configuration's from then on. Without the file the configuration counts again: that is the
// way back for a node that was away for so long that none of its keys is known any more.
type keyKeeper struct {
	home *homeDir

	mu   sync.Mutex
	ring ring
	live *gossip.Gossip // of the present run; nil between two
}

type keyFile struct {
	Version int      `json:"version"`
	Ring    uint64   `json:"ring"`
	Keys    [][]byte `json:"keys"`
}

const keyFileVersion = 1

// openKeys reads the home's list, else takes the configuration's.
func openKeys(home *homeDir, configured [][]byte) (*keyKeeper, error) {
	k := &keyKeeper{home: home, ring: ring{keys: configured}}
	data, err := os.ReadFile(home.path("gossip.keys"))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	var f keyFile
	switch {
	case err != nil:
		return nil, fmt.Errorf("read gossip.keys: %w", err)
	case json.Unmarshal(data, &f) != nil: // its error could show a part of a key
		return nil, errors.New("gossip.keys cannot be decoded: remove it to use the configured keys")
	case f.Version > keyFileVersion:
		return nil, fmt.Errorf("gossip.keys has format %d, this build reads up to %d: use a newer build", f.Version, keyFileVersion)
	case len(f.Keys) == 0:
		return nil, errors.New("gossip.keys has no keys: remove it to use the configured ones")
	}
	if err := checkKeys(f.Keys); err != nil {
		return nil, fmt.Errorf("gossip.keys: %w", err)
	}
	k.ring = ring{version: f.Ring, keys: f.Keys}
	return k, nil
}

func (k *keyKeeper) now() ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring
}

// attach has a gossip instance, which was started with some ring, follow the changes; nil: none does.
func (k *keyKeeper) attach(g *gossip.Gossip) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live = g
	if g == nil || len(k.ring.keys) == 0 {
		return nil
	}
	return g.SetKeys(k.ring.keys)
}

// take makes a newer ring this node's: on disk first, then in use. taken is also said of the one that it has.
func (k *keyKeeper) take(r ring) (taken bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(k.ring.keys) == 0:
		return false, errors.New("gossip is not encrypted on this node: give it the keys in its configuration and restart it")
	case r.equal(k.ring):
		return true, nil
	case r.version <= k.ring.version:
		return false, fmt.Errorf("this node has %v already", k.ring)
	}
	data, err := json.Marshal(keyFile{Version: keyFileVersion, Ring: r.version, Keys: r.keys})
	if err != nil {
		return false, fmt.Errorf("encode gossip.keys: %w", err)
	}
	if err := writeFile(k.home.path("gossip.keys"), data); err != nil {
		return false, fmt.Errorf("write gossip.keys: %w", err)
	}
	k.ring = r
	if k.live == nil {
		return true, nil
	}
	return true, k.live.SetKeys(r.keys)
}
