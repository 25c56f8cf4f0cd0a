package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/recovery/home"
)

// TestHundredCrashes: the node of a group of one is killed a hundred times, each time right after it has answered; its home is
// swept a hundred times, and its log and votes hold all that was answered.
func TestHundredCrashes(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (a hundred restarts)")
	}
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true, level: "info", lasting: 15 * time.Minute})
	c.up()
	const rounds = 100
	for i := range rounds {
		c.steady()
		if _, err := c.client("n1").PutItem(c.ctx, api.PutItem{ID: fmt.Sprintf("i%03d", i), Type: "file"}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(c.nodeOf("n1"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	c.steady()
	items, err := api.Get[[]api.Item](c.ctx, c.client("n1"), api.ItemsPath(api.ItemQuery{}))
	mine := 0
	for _, it := range items {
		if it.Type == "file" {
			mine++
		}
	}
	if err != nil || mine != rounds {
		t.Errorf("%d items are there, %v", mine, err)
	}
	if st, err := home.Look(home.Config{Dir: filepath.Join(c.dir, "n1", "env")}); err != nil || st.Seal.Generation <= rounds {
		t.Errorf("generation %d, %v", st.Seal.Generation, err)
	}
}

// uploading is a group of three with their wardens, one of which, owner, is in the middle of a backup.
func uploading(t *testing.T) (c *cluster, task api.Task, owner string) {
	t.Helper()
	c = newCluster(t, options{nodes: 3, watched: true, lasting: 8 * time.Minute, dsns: map[string]string{"shop": database(t, bulk("goods", 5))}, extra: slowly})
	c.up()
	task = c.backup("n1")
	return c, task, c.reaches("n1", task.ID, "uploading", sent).Node
}

// gone waits until processes have ended.
func (c *cluster) gone(pids ...int) {
	c.t.Helper()
	for _, pid := range pids {
		c.until(fmt.Sprintf("process %d has ended", pid), func() bool {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return err != nil || len(data) == 0
		})
	}
}

// TestHungNode: a node that is stopped in the middle of a backup for longer than its warden is patient: the others recover its
// run, its warden ends it and all below it, and starts it again; the backup is there once.
func TestHungNode(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (minutes until a warden takes its node for hung)")
	}
	t.Parallel()
	c, task, owner := uploading(t)
	node := c.nodeOf(owner)
	all := append(descendants(node), node)
	if err := syscall.Kill(node, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	by := c.survivor(owner)
	c.finishes(by, task.ID)
	c.gone(all...)
	c.ready(owner)
	c.recovered(by)
	c.oneBackup(by)
	if log, err := os.ReadFile(c.proc(owner).log); err != nil || !bytes.Contains(log, []byte("the node makes no progress")) {
		t.Errorf("its warden does not say why it ended the node: %v", err)
	}
}

// TestOrphanedNode: the warden of a node is killed in the middle of a backup, and none comes in its place: the node ends by
// itself, in order, with all below it; the backup is there once.
func TestOrphanedNode(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (a minute until an orphan stops itself)")
	}
	t.Parallel()
	c, task, owner := uploading(t)
	by, node := c.survivor(owner), c.nodeOf(owner)
	all := append(descendants(node), node)
	if err := c.proc(owner).cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.gone(all...)
	c.until("it is no member", func() bool { return len(c.view(by).Members) == 2 })
	c.finishes(by, task.ID)
	c.recovered(by)
	c.oneBackup(by)
}
