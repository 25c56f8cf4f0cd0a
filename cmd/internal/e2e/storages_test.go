package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
)

// fencepost runs the command against a node.
func (c *cluster) fencepost(node string, args ...string) (out string, err error) {
	c.t.Helper()
	b, err := exec.CommandContext(c.ctx, command, append(args, "--socket", c.socket(node))...).CombinedOutput()
	return string(b), err
}

// shelf lists and restores a backup while no daemon runs: by the storage alone.
func (c *cluster) shelf(storage string, b api.Backup, dsn string) {
	c.t.Helper()
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(c.ctx, command, append(args, "--config", c.file("n1"))...).CombinedOutput()
		return string(out), err
	}
	if out, err := run("storage", "list", storage); err != nil || !strings.Contains(out, b.ID) || !strings.Contains(out, "completed") || strings.Contains(out, "foreign") {
		c.t.Errorf("%s%v", out, err)
	}
	restored := func(extra ...string) (name, out string, err error) {
		name = fmt.Sprintf("%d shelf", time.Now().UnixNano())
		c.targets = append(c.targets, name)
		out, err = run(append([]string{"storage", "restore", storage, b.ID, "--database", "shop", "--as", name}, extra...)...)
		return name, out, err
	}
	name, out, err := restored()
	if err != nil {
		c.t.Fatalf("%s%v", out, err)
	}
	same(c.t, "restored from the shelf", print(c.t, dsn), print(c.t, pg.Server(c.t).DSN(name)))
	if err := os.Remove(filepath.Join(c.dir, "n1", "signers.json")); err != nil {
		c.t.Fatal(err)
	}
	if out, err := run("storage", "list", storage); err != nil || !strings.Contains(out, "foreign") {
		c.t.Errorf("without a list of keys: %s%v", out, err)
	}
	if _, out, err := restored(); err == nil || !strings.Contains(out, "not made by this group") || !strings.Contains(out, "--accept-foreign") {
		c.t.Errorf("without a list of keys: %s%v", out, err)
	}
	if _, out, err := restored("--accept-foreign"); err != nil {
		c.t.Errorf("%s%v", out, err)
	}
	c.noStrays()
}

// TestStoragesOutliveTheLedger: a check finds what was never committed and removes it; a ledger that has lost everything
// learns the backups from the storages again, and they can be restored.
func TestStoragesOutliveTheLedger(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	_, led := ledgerIn(t)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, extra: led})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	b := c.oneBackup("n1")
	if out, err := c.fencepost("n1", "storage", "check", "a"); err != nil || !strings.Contains(out, "all is as it should be") {
		t.Fatalf("%s%v", out, err)
	}
	partial := filepath.Join(c.dir, "a", filepath.FromSlash(pipeline.ObjectPath("forgotten", 5, "data")))
	if err := os.MkdirAll(filepath.Dir(partial), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(partial, []byte("half a dump"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := c.fencepost("n1", "storage", "check", "a"); err == nil || !strings.Contains(out, "partial") || !strings.Contains(out, "forgotten") {
		t.Errorf("%s%v", out, err)
	}
	if out, err := c.fencepost("n1", "storage", "check", "a", "--fix"); err != nil {
		t.Errorf("%s%v", out, err)
	}
	if _, err := os.Stat(partial); !os.IsNotExist(err) {
		t.Errorf("the partial object is still there: %v", err)
	}

	c.end()
	c.shelf("a", b, dsn)
	empty := pg.Server(t).Database(t)
	c.write("n1", "lan", fmt.Sprintf("ledger: {dsn: %q}\n", empty)) // another ledger, which knows nothing
	c.start("n1")
	c.until("the node waits for a ledger", func() bool {
		st, err := c.client("n1").Status(c.ctx)
		return err == nil && !st.Ready && st.Lease == "held" && strings.Contains(strings.Join(st.Problems, "\n"), "ledger")
	})
	away := func(name string, from, to string) { // out of sight of the one who begins a ledger, and back
		t.Helper()
		if err := os.Rename(filepath.Join(c.dir, name+from, b.ID), filepath.Join(c.dir, name+to, b.ID)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(c.dir, name+".away"), 0o700); err != nil {
			t.Fatal(err)
		}
		away(name, "", ".away")
	}
	if out, err := c.fencepost("n1", "ledger", "init", "--apply"); err != nil {
		t.Fatalf("begin a ledger: %s%v", out, err)
	}
	c.ready("n1")
	away("a", ".away", "")
	away("b", ".away", "")
	if list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{}); err != nil || len(list) != 0 {
		t.Fatalf("an empty ledger lists %+v, %v", list, err)
	}
	if out, err := c.fencepost("n1", "storage", "check", "b"); err == nil || !strings.Contains(out, "unknown") || !strings.Contains(out, b.ID) {
		t.Errorf("%s%v", out, err)
	}
	if out, err := c.fencepost("n1", "catalog", "rebuild"); err != nil || !strings.Contains(out, b.ID) {
		t.Fatalf("%s%v", out, err)
	}
	again := c.oneBackup("n1")
	if again.ID != b.ID || again.Token != b.Token || again.SHA256 != b.SHA256 {
		t.Errorf("the ledger says %+v, it was %+v", again, b)
	}
	for _, name := range []string{"a", "b"} {
		if out, err := c.fencepost("n1", "storage", "check", name); err != nil {
			t.Errorf("%s: %s%v", name, out, err)
		}
	}
	c.restored("n1", b.ID, dsn)
}
