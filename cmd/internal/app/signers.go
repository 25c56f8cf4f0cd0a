package app

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
)

// Manifests are signed with the key of the node that makes them, which never leaves its home: there is no secret to hand
// over, and who steals one node's key has one node's. The group's own record of a home follows the node, and changes when
// it is replaced; backups outlive that. So each key that ever stood is kept here too, under signers/<key> in the state
// cache, for good; and a copy of the list lies in each home, for when there is no group to ask.

// signersComponent is theirs in the cache.
const signersComponent = "signers"

// signerFormat is that of the records below.
const signerFormat = 1

func signerKey(key ed25519.PublicKey) gms.Key {
	return gms.Key{Component: signersComponent, Key: hex.EncodeToString(key)}
}

// signerRecord is what the group keeps of a key.
type signerRecord struct {
	Format int    `json:"format"`
	Node   string `json:"node"`
	// Cluster is the id of a lost group that the key has signed for, whose state this one has taken over; empty: this group.
	Cluster string `json:"cluster,omitempty"`
}

// of is the id of the group that the key has signed for.
func (r signerRecord) of(own string) string { return cmp.Or(r.Cluster, own) }

// addSigner has the group know this node's key. It changes nothing when it does already.
func addSigner(ctx context.Context, g *gms.Group, node string) error {
	key := signerKey(g.NodeKey())
	if _, err := g.Cache().Get(ctx, key); !errors.Is(err, gms.ErrNotFound) {
		return err
	}
	_, err := g.Cache().Commit(ctx, gms.Txn{Conditions: []gms.Condition{gms.VersionIs(key, 0)}, Puts: []gms.Put{putOf(key, signerRecord{Format: signerFormat, Node: node})}})
	if errors.Is(err, gms.ErrConflict) {
		return nil // an earlier try, whose answer was lost
	}
	return err
}

// trust judges manifests by what the group knows.
func trust(g *gms.Group) func(context.Context, pipeline.Manifest) error {
	return func(ctx context.Context, m pipeline.Manifest) error {
		var asked error
		of := func(key ed25519.PublicKey) (r signerRecord, known bool) {
			e, err := g.Cache().Get(ctx, signerKey(key))
			if err != nil {
				if !errors.Is(err, gms.ErrNotFound) {
					asked = err
				}
				return r, false
			}
			return r, json.Unmarshal(e.Value, &r) == nil
		}
		cluster := g.ClusterID()
		if m.Cluster != cluster && len(m.Key) > 0 {
			if r, known := of(m.Key); known && r.Cluster == m.Cluster { // a lost group's, and the key is on record as that one's
				cluster = r.Cluster
			}
		}
		err := pipeline.Judge(m, cluster, func(node string, key ed25519.PublicKey) bool {
			r, known := of(key)
			return known && r.Node == node && r.of(g.ClusterID()) == cluster
		})
		if asked != nil {
			return fmt.Errorf("ask the group whose key it is: %w: %w", pipeline.ErrUnavailable, asked)
		}
		return err
	}
}

// signer signs for this node.
func signer(g *gms.Group, node string) *pipeline.Signer {
	return &pipeline.Signer{Cluster: g.ClusterID(), Node: node, Key: g.NodeKey(), Sign: g.Sign}
}

// keepSigners writes the list of keys beside the home's other files. It writes only when something has changed.
func (a *App) keepSigners(ctx context.Context) error {
	entries, err := a.group.Cache().List(ctx, signersComponent, "", "")
	if err != nil {
		return fmt.Errorf("ask the group who signs: %w", err)
	}
	list := offline.Signers{Cluster: a.group.ClusterID(), Keys: map[string]string{}}
	for _, e := range entries {
		var r signerRecord
		if err := json.Unmarshal(e.Value, &r); err != nil {
			continue
		}
		if r.Cluster == "" {
			list.Keys[e.Key.Key] = r.Node
			continue
		}
		if list.Before == nil {
			list.Before = map[string]map[string]string{}
		}
		if list.Before[r.Cluster] == nil {
			list.Before[r.Cluster] = map[string]string{}
		}
		list.Before[r.Cluster][e.Key.Key] = r.Node
	}
	return list.Write(filepath.Join(a.cfg.Home, offline.SignersName))
}
