package e2e

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// emulator is a Dropbox of the test's own, and the YAML of a storage in it.
func emulator(t *testing.T, o dropboxtest.Options) (box *dropboxtest.Server, yaml string) {
	t.Helper()
	o.Dir = t.TempDir()
	box, err := dropboxtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(box)
	t.Cleanup(web.Close)
	token := filepath.Join(o.Dir, "token")
	if err := os.WriteFile(token, []byte(dropboxtest.DefaultRefreshToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return box, fmt.Sprintf("- {name: box, kind: dropbox, app_key: %s, refresh_token: \"file:%s\", folder: Backups, part_size: 4MiB, endpoint: %q}\n",
		dropboxtest.DefaultAppKey, token, web.URL)
}

// manifests are those in the emulator, by path.
func manifests(t *testing.T, box *dropboxtest.Server) map[string]*pipeline.Manifest {
	t.Helper()
	found := map[string]*pipeline.Manifest{}
	for _, path := range box.Files() {
		if !strings.HasSuffix(path, "/manifest.json") {
			continue
		}
		b, err := box.Content(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := pipeline.DecodeManifest(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		found[path] = &m
	}
	return found
}

// TestDropbox: backup, list and restore through an account whose tokens are short-lived, whose pages are small, and that
// asks to wait now and then.
func TestDropbox(t *testing.T) {
	t.Parallel()
	box, yaml := emulator(t, dropboxtest.Options{PageSize: 2, TokenCalls: 10})
	box.Inject(dropboxtest.RateLimit(0).OneIn(15, 1), dropboxtest.Unsure().OneIn(40, 2), dropboxtest.Lose().OneIn(40, 3))
	dsn := database(t, bulk("goods", 6), "SELECT lo_from_bytea(7, decode(repeat('ab', 100000), 'hex'))")
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, storages: yaml})
	c.up()
	task := c.backup("n1")
	c.finishes("n1", task.ID)
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 1 || list[0].State != "completed" || len(list[0].Storages) != 1 {
		t.Fatalf("backups: %+v, %v", list, err)
	}
	found := manifests(t, box)
	if len(found) != 1 {
		t.Errorf("manifests %v in %q", found, box.Files())
	}
	c.clean("n1", "box")
	c.restored("n1", list[0].ID, dsn)
}

// TestDropboxLateOwner: the node that makes a backup dies when the finish of its manifest is on its way; the finish comes
// days later, so to say, and is refused by the tombstone.
func TestDropboxLateOwner(t *testing.T) {
	t.Parallel()
	box, yaml := emulator(t, dropboxtest.Options{})
	gate := dropboxtest.NewGate()
	box.Inject(dropboxtest.Late(gate).On("upload_session/finish").Of("manifest.json"))
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, storages: yaml})
	c.up()
	task := c.backup("n1")
	<-gate.Reached()
	first, err := c.client("n1").Task(c.ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.kill(first.Node)
	box.Heal()
	by := c.survivor(first.Node)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 || done.Token <= first.Token {
		t.Errorf("completed by attempt %d, token %d after %d", done.Attempt, done.Token, first.Token)
	}
	c.recovered(by)
	before := manifests(t, box)
	gate.Release() // all that the dead node had asked for
	after := manifests(t, box)
	void, whole := 0, 0
	for path, m := range after {
		if before[path] == nil || before[path].Void != m.Void {
			t.Errorf("%s was %+v, is %+v", path, before[path], m)
		}
		if m.Void {
			void++
		} else {
			whole++
		}
	}
	if void != 1 || whole != 1 {
		t.Errorf("%d void and %d whole manifests: %v", void, whole, after)
	}
	list, err := c.client(by).Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 1 || list[0].Token != done.Token {
		t.Fatalf("backups: %+v, %v", list, err)
	}
	c.clean(by, "box")
	c.restored(by, list[0].ID, dsn)
}
