package app

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/offline"
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
	list.Keys = nil
	if err := list.Trust(t.Context(), sign("n1")); err == nil {
		t.Error("a list without the key trusts it")
	}
}
