package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// SetKeys replaces the keys while it runs: the first one encrypts from now on, all decrypt. It returns at once. Those who
// have not got the first key must get it before.
func (g *Gossip) SetKeys(keys [][]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.list == nil:
		return ErrNotStarted
	case g.ring == nil:
		return ErrNotEncrypted
	case len(keys) == 0:
		return errors.New("gossip: no keys to set")
	}
	return setKeys(g.ring, keys)
}

// setKeys makes a ring out of another while packets are opened with it. The library shifts its list in place when it takes
// out a key before the last one, under the eyes of those who read it; so keys go from the end, and those that stay come back.
func setKeys(r *memberlist.Keyring, keys [][]byte) error {
	for _, k := range keys {
		if err := r.AddKey(bytes.Clone(k)); err != nil {
			return fmt.Errorf("add a gossip key: %w", err)
		}
	}
	if err := r.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use a gossip key: %w", err)
	}
	has := slices.Clone(r.GetKeys())
	first := slices.IndexFunc(has, func(k []byte) bool {
		return !slices.ContainsFunc(keys, func(w []byte) bool { return bytes.Equal(k, w) })
	})
	if first < 0 {
		return nil
	}
	for _, k := range slices.Backward(has[first:]) {
		if err := r.RemoveKey(k); err != nil {
			return fmt.Errorf("remove a gossip key: %w", err)
		}
	}
	for _, k := range keys {
		if err := r.AddKey(bytes.Clone(k)); err != nil {
			return fmt.Errorf("add a gossip key: %w", err)
		}
	}
	return nil
}
