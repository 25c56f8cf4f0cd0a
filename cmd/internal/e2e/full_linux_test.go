package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// startOn starts a node for which dir is a disk of its own, of so many bytes. It returns where others see what lies there.
func (c *cluster) startOn(name, dir, size string) (seen string) {
	c.t.Helper()
	rights := "-m"
	if os.Geteuid() != 0 {
		rights = "-rm"
	}
	mount := `mount -t tmpfs -o size="$1" tmpfs "$2" || exit; shift 2; exec "$@"`
	if out, err := exec.CommandContext(c.ctx, "unshare", rights, "sh", "-c", mount, "sh", size, dir, "true").CombinedOutput(); err != nil {
		c.t.Skipf("this machine does not let the test mount a file system: %v %s", err, out)
	}
	args := []string{rights, "sh", "-c", mount, "sh", size, dir, daemon, "--config", c.file(name)}
	if !c.watched {
		args = append(args, "--no-warden")
	}
	p := startCommand(c.t, filepath.Join(c.dir, name+".log"), exec.Command("unshare", args...))
	c.mu.Lock()
	c.procs[name] = p
	c.mu.Unlock()
	c.ready(name)
	return fmt.Sprintf("/proc/%d/root%s", p.cmd.Process.Pid, dir)
}

// objects are the files below a storage's folder that are neither the storage's own, nor the group's, nor void manifests.
func objects(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		private := filepath.Join(root, "_fencepost")
		own := strings.HasPrefix(path, filepath.Join(private, "owner.json")) || strings.HasPrefix(path, filepath.Join(private, "group")) || d != nil && d.Name() == "lock"
		if err == nil && !d.IsDir() && !own {
			found = append(found, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// full is a daemon one of whose storages is on a disk of four megabytes, and a database of eight.
type full struct {
	*cluster
	big         string // its DSN
	disk, other string // folders of the storages
	root        string // where the disk is mounted, for the node alone
}

func newFull(t *testing.T, require string) *full {
	t.Helper()
	root, other := t.TempDir(), t.TempDir()
	big, small := database(t, bulk("goods", 8)), database(t, "CREATE TABLE coins AS SELECT generate_series(1, 100) AS i")
	f := &full{big: big, other: other, cluster: newCluster(t, options{
		nodes: 1, dsns: map[string]string{"shop": big, "till": small}, extra: "processors: []\nbackup: {require: " + require + "}\n",
		storages: fmt.Sprintf("- {name: disk, kind: local, path: %s}\n- {name: other, kind: local, path: %s}\n", root, other),
	})}
	f.root, f.disk = root, f.startOn("n1", root, "4m")
	return f
}

// fits makes a small backup, which has room on the disk where nothing was left.
func (f *full) fits() {
	f.t.Helper()
	task, err := f.client("n1").CreateBackup(f.ctx, api.CreateBackup{Database: "till"})
	if err != nil {
		f.t.Fatal(err)
	}
	done := f.finishes("n1", task.ID)
	for _, name := range []string{"disk", "other"} {
		if done.Progress.Stored[name] == 0 {
			f.t.Errorf("a backup that fits is not in storage %s: %+v", name, done)
		}
		f.clean("n1", name)
	}
}

// TestFullDisk: the disk of a storage is full in the middle of a dump, and all storages must have it: the backup is tried
// again, and has failed after the third attempt, with the storage and the disk in one sentence, and nothing is left in any.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := newFull(t, "all")
	failed := f.reaches("n1", f.backup("n1").ID, "failed", nil)
	if !strings.Contains(failed.Error, "storage disk: ") || !strings.Contains(failed.Error, "disk full") || strings.Contains(failed.Error, "\n") ||
		failed.Attempt != 3 || failed.Hint == "" {
		t.Errorf("a backup to a full disk: %+v", failed)
	}
	t.Logf("error: %s, hint: %s", failed.Error, failed.Hint)
	if list, err := f.client("n1").Backups(f.ctx, api.BackupFilter{}); err != nil || len(list) != 0 {
		t.Errorf("backups: %+v, %v", list, err)
	}
	for _, root := range []string{f.disk, f.other} {
		if found := objects(t, root); len(found) != 0 {
			t.Errorf("left in %s: %q", root, found)
		}
	}
	f.fits()
}

// TestFullDiskOfOneStorage: the same where one storage is enough: the backup is good, its copy on the full disk missing for
// that reason, and nothing of it left there.
func TestFullDiskOfOneStorage(t *testing.T) {
	t.Parallel()
	f := newFull(t, "any")
	done := f.finishes("n1", f.backup("n1").ID)
	b, err := f.client("n1").Backup(f.ctx, done.Backup)
	if err != nil || len(b.Storages) != 2 || b.Storages[0].State != "missing" || !strings.Contains(b.Storages[0].Error, "disk full") || b.Storages[1].State != "present" {
		t.Errorf("backup: %+v, %v", b, err)
	}
	f.until("its mending has failed as well", func() bool {
		tasks, err := f.client("n1").Tasks(f.ctx, api.TaskFilter{Database: "shop", Internal: true})
		return err == nil && len(tasks) == 2 && tasks[0].State == "failed" && strings.Contains(tasks[0].Error, "disk full")
	})
	if found := objects(t, f.disk); len(found) != 0 {
		t.Errorf("left on the full disk: %q", found)
	}
	f.restored("n1", b.ID, f.big)
	f.fits()
	grow := func() {
		args := []string{"-t", fmt.Sprint(f.proc("n1").cmd.Process.Pid), "-m"}
		if os.Geteuid() != 0 {
			args = append(args, "-U", "--preserve-credentials")
		}
		if out, err := exec.CommandContext(f.ctx, "nsenter", append(args, "mount", "-o", "remount,size=40m", f.root)...).CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
	}
	rehearsal{c: f.cluster, words: map[string]string{"near": "disk"}, env: []string{"BACKUP=" + b.ID}, hands: map[string]func(){"lvextend -r -L +100G /dev/data/disk": grow}}.follow("storage-full")
	if b, err := f.client("n1").Backup(f.ctx, b.ID); err != nil || b.Storages[0].State != "present" {
		t.Errorf("the copy that was missed: %+v, %v", b, err)
	}
}
