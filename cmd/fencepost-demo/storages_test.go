package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline"
)

const backupID = "06h2ouj1jumad0ntaouqrdkcug"

// put writes a file of a storage.
func put(t *testing.T, s store, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func putManifest(t *testing.T, s store, m pipeline.Manifest) {
	t.Helper()
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, pipeline.ManifestPath(m.Backup, m.Token), string(text))
}

// attemptOf is the manifest of an attempt whose data is text.
func attemptOf(token uint64, text string) pipeline.Manifest {
	sum := sha256.Sum256([]byte(text))
	o := pipeline.Object{Name: "data", RawBytes: 9, RawSHA256: hex.EncodeToString(sum[:]), StoredBytes: int64(len(text)), StoredSHA256: hex.EncodeToString(sum[:])}
	return pipeline.Manifest{Format: 1, Backup: backupID, Token: token, Objects: []pipeline.Object{o}}
}

// good is a storage after a recovery: a tombstone of attempt 7, attempt 9 whole.
func good(t *testing.T) store {
	s := store{"near", t.TempDir()}
	put(t, s, "_fencepost/owner.json", "{}")
	putManifest(t, s, pipeline.Tombstone(backupID, 7, "it died", time.Now()))
	putManifest(t, s, attemptOf(9, "whole"))
	put(t, s, pipeline.ObjectPath(backupID, 9, "data"), "whole")
	return s
}

func TestLook(t *testing.T) {
	c, err := look(good(t))
	if err != nil || len(c.problems) > 0 || len(c.valid) != 1 || c.valid[0].Token != 9 || len(c.void) != 1 || c.void[0].Token != 7 {
		t.Fatalf("contents %+v, error %v", c, err)
	}
}

// TestLookFinds: whatever a recovery may not leave is a problem or a second manifest.
func TestLookFinds(t *testing.T) {
	for _, x := range []struct {
		name  string
		spoil func(t *testing.T, s store)
		want  string
		valid int
	}{
		{"part of the dead attempt", func(t *testing.T, s store) { put(t, s, pipeline.ObjectPath(backupID, 7, "data"), "who") }, "object without a valid manifest", 1},
		{"temporary file", func(t *testing.T, s store) { put(t, s, "_fencepost/tmp/put-1", "who") }, "temporary file", 1},
		{"cut object", func(t *testing.T, s store) { put(t, s, pipeline.ObjectPath(backupID, 9, "data"), "who") }, "not what its manifest says", 0},
		{"other bytes", func(t *testing.T, s store) { put(t, s, pipeline.ObjectPath(backupID, 9, "data"), "wholE") }, "not what its manifest says", 0},
		{"object that the manifest does not name", func(t *testing.T, s store) { put(t, s, pipeline.ObjectPath(backupID, 9, "more"), "x") }, "object without a valid manifest", 1},
		{"a second commit", func(t *testing.T, s store) {
			putManifest(t, s, attemptOf(11, "again"))
			put(t, s, pipeline.ObjectPath(backupID, 11, "data"), "again")
		}, "", 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := good(t)
			x.spoil(t, s)
			c, err := look(s)
			if err != nil || !strings.Contains(strings.Join(c.problems, "; "), x.want) || len(c.valid) != x.valid {
				t.Fatalf("contents %+v, error %v; want %d valid and %q", c, err, x.valid, x.want)
			}
		})
	}
	s := good(t)
	put(t, s, pipeline.ManifestPath(backupID, 12), "{")
	if _, err := look(s); err == nil {
		t.Fatal("half a manifest was taken for one")
	}
}
