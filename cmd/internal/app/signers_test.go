package app

import (
	"crypto/ed25519"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
)

// The group knows the keys of its nodes, and the home keeps them for when there is no group.
func TestSigners(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	g := a.group
	signed := pipeline.Tombstone("b1", 7, "test", time.Now())
	s := signer(g, "n1")
	sign := func(node string) pipeline.Manifest {
		m := signed
		m.Cluster, m.Node, m.Key = s.Cluster, node, s.Key
		m.Signature = g.Sign([]byte("any"))
		return m
	}
	judge := trust(g)
	if err := judge(t.Context(), sign("n1")); err != nil {
		t.Error(err)
	}
	if err := judge(t.Context(), sign("n2")); err == nil || !strings.Contains(err.Error(), `as node "n2"'s`) {
		t.Errorf("another node with this key: %v", err)
	}
	list, err := offline.ReadSigners(filepath.Join(c.Home, offline.SignersName))
	if err != nil || list.Cluster != g.ClusterID() || len(list.Keys) != 1 || list.Keys[hex.EncodeToString(g.NodeKey())] != "n1" {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := list.Trust(t.Context(), sign("n1")); err != nil {
		t.Error(err)
	}
	if err := addSigner(t.Context(), g, "n1"); err != nil {
		t.Errorf("once more: %v", err)
	}
	begun, another := time.Now(), signerKey(make([]byte, ed25519.PublicKeySize))
	if _, err := g.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{putOf(another, signerRecord{Format: signerFormat, Node: "n2"})}}); err != nil {
		t.Fatal(err)
	}
	until(t, a, "the home's list has the other node's key", func() bool {
		now, err := offline.ReadSigners(filepath.Join(c.Home, offline.SignersName))
		return err == nil && len(now.Keys) == 2
	})
	if took := time.Since(begun); took > lookEvery/2 {
		t.Errorf("it was written after %v: not when the key came", took)
	}
	list.Keys = nil
	if err := list.Trust(t.Context(), sign("n1")); err == nil {
		t.Error("a list without the key trusts it")
	}
}
