package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

// ageKey makes a key with the public tool: the recipient, and the identity's file.
func ageKey(t testing.TB) (recipient, identity string) {
	t.Helper()
	secret := processortest.Tool(t, nil, "age-keygen")
	identity = filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(identity, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(processortest.Tool(t, secret, "age-keygen", "-y"))), identity
}

func encrypted(recipient, identity string) string {
	return fmt.Sprintf("processors:\n- {kind: zstd}\n- {kind: age, recipients: [%s], identity_file: %s}\n", recipient, identity)
}

func pgTool(t testing.TB, program string) string {
	t.Helper()
	dir, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, program)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TestThePublicToolsAndAnEncryptedBackup: a backup is restored with age, zstd and PostgreSQL's programs alone; one whose
// object was made by them is restored by the daemon; and with another key nothing happens but a clear error.
func TestThePublicToolsAndAnEncryptedBackup(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 2), "CREATE TABLE plain AS SELECT 'a marker that nobody may see'::text AS body",
		"SELECT lo_from_bytea(7, decode(repeat('ab', 100000), 'hex'))")
	recipient, identity := ageKey(t)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, extra: encrypted(recipient, identity)})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	m := c.manifest("a")
	object := c.read("a", m, "data")
	if bytes.Contains(object, []byte("a marker")) || bytes.Contains(object, []byte("PGDMP")) || strings.Join(m.Processors, " ") != "zstd age" {
		t.Errorf("the object is not encrypted: processors %q", m.Processors)
	}

	dump := processortest.Tool(t, processortest.Tool(t, object, "age", "-d", "-i", identity), "zstd", "-d", "-q", "-c")
	if hash(dump) != m.Objects[0].RawSHA256 {
		t.Fatal("what the tools make of the object is not what the manifest says")
	}
	byHand := pg.Server(t).Database(t)
	processortest.Tool(t, dump, pgTool(t, "pg_restore"), "--exit-on-error", "-d", byHand)
	same(t, "restored by the tools", print(t, dsn), print(t, byHand))

	c.replaceData(m, processortest.Tool(t, nil, pgTool(t, "pg_dump"), "-Fc", "-Z0", "-d", dsn), func(dump []byte) []byte {
		return processortest.Tool(t, processortest.Tool(t, dump, "zstd", "-q", "-c", "-5"), "age", "-r", recipient)
	})
	task, err := c.client("n1").Restore(c.ctx, api.RestoreBackup{Backup: b.ID, Target: "never"})
	if err != nil {
		t.Fatal(err)
	}
	foreign := c.reaches("n1", task.ID, "failed", nil)
	if !strings.Contains(foreign.Error, "not made by this group: its manifest is not signed") || !strings.Contains(foreign.Hint, "--accept-foreign") {
		t.Errorf("a manifest that somebody wrote: %s (%s)", foreign.Error, foreign.Hint)
	}
	c.restoredAs("n1", api.RestoreBackup{Backup: b.ID, AcceptForeign: true}, dsn)

	other, otherIdentity := ageKey(t)
	c.end()
	c.write("n1", "lan", "log: {level: debug, format: json}\n"+encrypted(other, otherIdentity))
	c.up()
	target := fmt.Sprintf("never_%d", time.Now().UnixNano())
	task, err = c.client("n1").Restore(c.ctx, api.RestoreBackup{Backup: b.ID, Target: target, AcceptForeign: true})
	if err != nil {
		t.Fatal(err)
	}
	failed := c.reaches("n1", task.ID, "failed", nil)
	if !strings.Contains(failed.Error, processor.ErrKey.Error()) || !strings.Contains(failed.Error, "other keys") {
		t.Errorf("with another key: %s", failed.Error)
	}
	names, err := pg.Server(t).Databases(t.Context())
	if err != nil || strings.Contains(strings.Join(names, " "), target) {
		t.Errorf("databases %q, %v", names, err)
	}
}

// manifest is the only one in a storage.
func (c *cluster) manifest(storage string) pipeline.Manifest {
	c.t.Helper()
	found := c.storage(storage)
	if len(found.whole) != 1 {
		c.t.Fatalf("storage %s: %+v", storage, found)
	}
	f, err := os.Open(filepath.Join(found.whole[0], "manifest.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	m, err := pipeline.DecodeManifest(f)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *cluster) read(storage string, m pipeline.Manifest, part string) []byte {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, storage, pipeline.ObjectPath(m.Backup, m.Token, part)))
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// replaceData puts another dump into both storages, wrapped by wrap, and has their manifests say so. They are not signed any
// more: restores of them accept what is foreign.
func (c *cluster) replaceData(m pipeline.Manifest, dump []byte, wrap func([]byte) []byte) {
	c.t.Helper()
	object := wrap(dump)
	m = m.Unsigned()
	m.Objects[0].RawBytes, m.Objects[0].RawSHA256 = int64(len(dump)), hash(dump)
	m.Objects[0].StoredBytes, m.Objects[0].StoredSHA256 = int64(len(object)), hash(object)
	text, err := m.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, storage := range []string{"a", "b"} {
		for name, b := range map[string][]byte{pipeline.ObjectPath(m.Backup, m.Token, m.Objects[0].Name): object, pipeline.ManifestPath(m.Backup, m.Token): text} {
			if err := os.WriteFile(filepath.Join(c.dir, storage, name), b, 0o600); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}
