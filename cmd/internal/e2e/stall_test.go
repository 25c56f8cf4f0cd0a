package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// stalling is a daemon with a folder and an account that takes the first bytes of a dump and then nothing more, until the
// gate opens.
func stalling(t *testing.T, backup string) (c *cluster, gate *dropboxtest.Gate, box *dropboxtest.Server) {
	t.Helper()
	box, yaml := emulator(t, dropboxtest.Options{})
	gate = dropboxtest.NewGate()
	box.Inject(dropboxtest.Stall(gate).On("upload_session/append_v2"))
	root := t.TempDir()
	c = newCluster(t, options{
		nodes: 1, dsns: map[string]string{"shop": database(t, bulk("goods", 20))},
		storages: fmt.Sprintf("- {name: disk, kind: local, path: %s}\n", root) + yaml, extra: "processors: []\nbackup: {" + backup + "}\n",
	})
	c.up()
	t.Cleanup(gate.Release)
	return c, gate, box
}

// TestStallOfADaemon: a storage that takes nothing for the configured ten seconds is left behind where the others are
// enough; its copy is missing, with the reason, and made good as soon as the storage takes bytes again.
func TestStallOfADaemon(t *testing.T) {
	t.Parallel()
	c, gate, box := stalling(t, "stall_after: 10s, require: any")
	task := c.backup("n1")
	<-gate.Reached()
	stalled := time.Now()
	done := c.finishes("n1", task.ID)
	if took := time.Since(stalled); took < 9*time.Second || done.Attempt != 1 {
		t.Errorf("left behind after %s, by attempt %d", took, done.Attempt)
	}
	said := run(t, command, "--socket", c.socket("n1"), "tasks", task.ID, "--log")
	if !strings.Contains(said.out, "takes no data for 10s") || !strings.Contains(said.out, "box") {
		t.Errorf("the log does not say why the copy is missing:\n%s%s", said.out, said.err)
	}
	b, err := c.client("n1").Backup(c.ctx, done.Backup)
	if err != nil || b.State != api.Completed || len(b.Storages) != 2 {
		t.Fatalf("backup: %+v, %v", b, err)
	}
	box.Heal()
	gate.Release()
	c.until("the missing copy is made good", func() bool {
		b, err := c.client("n1").Backup(c.ctx, done.Backup)
		if err != nil {
			return false
		}
		for _, copied := range b.Storages {
			if copied.State != "present" {
				return false
			}
		}
		return len(b.Storages) == 2
	})
	for _, name := range []string{"disk", "box"} {
		c.clean("n1", name)
	}
}

// TestStallWithoutAnother: one that cannot be spared has ten times as long; then the attempt has failed, says so, and
// leaves nothing behind.
func TestStallWithoutAnother(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (the shortest limit is 100 seconds)")
	}
	t.Parallel()
	c, gate, box := stalling(t, "stall_after: 10s, max_attempts: 1")
	task := c.backup("n1")
	<-gate.Reached()
	stalled := time.Now()
	done := c.reaches("n1", task.ID, "failed", nil)
	if took := time.Since(stalled); took < 95*time.Second || !strings.Contains(done.Error, "storage box: takes no data for 1m40s") {
		t.Errorf("ended after %s: %s", took, done.Error)
	}
	if list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{}); err != nil || len(list) != 0 {
		t.Errorf("backups: %+v, %v", list, err)
	}
	box.Heal()
	gate.Release()
	for _, name := range []string{"disk", "box"} {
		c.clean("n1", name)
	}
}
