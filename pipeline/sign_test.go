package pipeline

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// signerOf is a node's; its key follows from the name.
func signerOf(cluster, node string) *Signer {
	seed := bytes.Repeat([]byte(node[:1]), ed25519.SeedSize)
	key := ed25519.NewKeyFromSeed(seed)
	return &Signer{Cluster: cluster, Node: node, Key: key.Public().(ed25519.PublicKey), Sign: func(m []byte) []byte { return ed25519.Sign(key, m) }}
}

// knows is what a group with these signers knows.
func knows(signers ...*Signer) func(string, ed25519.PublicKey) bool {
	return func(node string, key ed25519.PublicKey) bool {
		for _, s := range signers {
			if s.Node == node && s.Key.Equal(key) {
				return true
			}
		}
		return false
	}
}

func TestSignedManifests(t *testing.T) {
	n1 := signerOf("c1", "n1")
	for _, m := range []Manifest{goodManifest(), Tombstone("b1", 7, "its node died", noon)} {
		text, err := n1.sign(m).Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeManifest(bytes.NewReader(text))
		if err != nil || back.Node != "n1" || back.Cluster != "c1" || len(back.Signature) == 0 {
			t.Fatalf("%+v, %v", back, err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("encoded again it is\n%s%v", again, err)
		}
		if err := Judge(back, "c1", knows(n1)); err != nil {
			t.Error(err)
		}
		// One bit of any byte that means something: it is refused, or it is as if it had never been signed, or by another.
		for i := range text {
			harmed := bytes.Clone(text)
			harmed[i] ^= 1
			m, err := DecodeManifest(bytes.NewReader(harmed))
			if err == nil && Judge(m, "c1", knows(n1)) == nil {
				t.Fatalf("byte %d (%q to %q) makes no difference", i, text[i], harmed[i])
			}
		}
	}
}

func TestJudge(t *testing.T) {
	n1, n2, other := signerOf("c1", "n1"), signerOf("c1", "n2"), signerOf("c2", "n1")
	for want, m := range map[string]Manifest{
		"":                           n1.sign(goodManifest()),
		"is not signed":              goodManifest(),
		`node "n1" of another group`: other.sign(goodManifest()),
		`not know as node "n2"'s`:    n2.sign(goodManifest()),
	} {
		err := Judge(m, "c1", knows(n1))
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (!errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%v, want %q in one line", err, want)
		}
	}
	m := n1.sign(goodManifest())
	m.Node = "n2"
	if text, err := m.Encode(); err != nil {
		t.Error(err)
	} else if _, err := DecodeManifest(bytes.NewReader(text)); err == nil {
		t.Error("another node's name under a signature")
	}
	if m := m.Unsigned(); len(m.Key)+len(m.Signature)+len(m.Cluster)+len(m.Node) > 0 {
		t.Errorf("left: %+v", m)
	}
}

// What is not this group's is not restored, unless a person says so; and it does not stand in the way of what is.
func TestRestoreOfForeignManifests(t *testing.T) {
	inRig(t, func(r *rig) {
		n1 := signerOf("c1", "n1")
		r.start("n1", func(c *Config) {
			c.Signer = n1
			c.Catalog.Trust = func(_ context.Context, m Manifest) error { return Judge(m, "c1", knows(n1)) }
		}, nil)
		made := r.awaitState(r.backup("all").ID, ledger.Completed)
		copies := 0
		restore := func(accept bool, want ledger.State) ledger.Task {
			t.Helper()
			copies++
			task, err := r.planner(nil).PlanRestore(r.Context(), RestoreRequest{Backup: made.Backup, Target: fmt.Sprint("copy", copies), Foreign: accept})
			r.must(err)
			return r.awaitState(task.ID, want)
		}
		restore(false, ledger.Completed)

		m, err := readManifest(r.Context(), r.disks["one"], made.Backup, made.Token)
		r.must(err)
		forged := m.Manifest.Unsigned()
		forged.Token++ // newer than the real one
		text, err := forged.Encode()
		r.must(err)
		for _, disk := range []string{"one", "two"} {
			r.must(discard2(r.disks[disk].Put(r.Context(), ManifestPath(forged.Backup, forged.Token), bytes.NewReader(text), storage.Condition{})))
		}
		restore(false, ledger.Completed)

		for _, disk := range []string{"one", "two"} {
			r.must(r.disks[disk].Delete(r.Context(), ManifestPath(made.Backup, made.Token)))
			r.must(r.disks[disk].Delete(r.Context(), ManifestPath(forged.Backup, forged.Token)))
			forged.Token = made.Token
			text, err := forged.Encode()
			r.must(err)
			r.must(discard2(r.disks[disk].Put(r.Context(), ManifestPath(forged.Backup, forged.Token), bytes.NewReader(text), storage.Condition{})))
			forged.Token++
		}
		refused := restore(false, ledger.Failed)
		if !strings.Contains(refused.Error, "its manifest is not signed") || !strings.Contains(refused.Hint, "--accept-foreign") || refused.Attempt != 1 {
			t.Errorf("%s (%s), attempt %d", refused.Error, refused.Hint, refused.Attempt)
		}
		restore(true, ledger.Completed)
	})
}

// What is not this group's is not copied into another storage either.
func TestReplicateDoesNotSpreadForeignManifests(t *testing.T) {
	inRig(t, func(r *rig) {
		n1 := signerOf("c1", "n1")
		r.start("n1", func(c *Config) {
			c.Signer = n1
			c.Catalog.Trust = func(_ context.Context, m Manifest) error { return Judge(m, "c1", knows(n1)) }
		}, nil)
		made := r.awaitState(r.backup("all").ID, ledger.Completed)
		path := ManifestPath(made.Backup, made.Token)
		m, err := readManifest(r.Context(), r.disks["one"], made.Backup, made.Token)
		r.must(err)
		text, err := m.Manifest.Unsigned().Encode()
		r.must(err)
		r.must(discard2(r.disks["one"].Put(r.Context(), path, bytes.NewReader(text), storage.Condition{Version: m.Version})))
		r.must(r.disks["two"].Delete(r.Context(), path))
		task, err := r.planner(nil).PlanReplicate(r.Context(), CopyRequest{Backup: made.Backup, Storages: []string{"two"}})
		r.must(err)
		if refused := r.awaitState(task.ID, ledger.Failed); !strings.Contains(refused.Error, "its manifest is not signed") {
			t.Errorf("error: %s", refused.Error)
		}
		if _, err := r.disks["two"].Stat(r.Context(), path); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("it was copied: %v", err)
		}
	})
}

func discard2[T any](_ T, err error) error { return err }
