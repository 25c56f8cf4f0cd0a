package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// TestFullDisk: the disk of a storage is full in the middle of a dump, and all storages must have it: the backup has failed,
// with the storage and the disk in one sentence, and nothing is left in any.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := newFull(t, "all")
	failed := f.reaches("n1", f.backup("n1").ID, "failed", nil)
	if !strings.Contains(failed.Error, "storage disk: ") || !strings.Contains(failed.Error, "disk full") || strings.Contains(failed.Error, "\n") ||
		failed.Attempt != 1 || failed.Hint == "" {
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

// TestFullHome: the disk of a node's home is full where its log begins another segment: the node gives up the room that it kept
// for that, ends in order, waits and says so in one line, and goes on when there is room. Nothing that was answered is lost.
func TestFullHome(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true})
	home := filepath.Join(c.dir, "n1")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	seen := c.startOn("n1", home, "32m")
	filler := filepath.Join(seen, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if closed := f.Close(); !errors.Is(err, syscall.ENOSPC) || closed != nil {
		t.Fatalf("the disk is not full: %v, %v", err, closed)
	}
	const waiting = "the disk of the home is full: the node starts when there is room"
	log := func() string {
		text, err := os.ReadFile(filepath.Join(c.dir, "n1.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	data, answered := json.RawMessage(`"`+strings.Repeat("x", 40<<10)+`"`), []string{}
	for i := 0; i < 350 && !strings.Contains(log(), waiting); i++ {
		id := fmt.Sprintf("i%03d", i)
		if _, err := c.client("n1").PutItem(c.ctx, api.PutItem{ID: id, Type: "file", Data: data}); err != nil {
			break
		}
		answered = append(answered, id)
	}
	c.until("n1 waits for room", func() bool { return strings.Contains(log(), waiting) })
	for _, bad := range []string{"panic", "could not leave in order"} {
		if strings.Contains(log(), bad) {
			t.Errorf("the log has %q", bad)
		}
	}
	t.Logf("%d items were put", len(answered))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.ready("n1")
	if n := strings.Count(log(), waiting); n != 1 {
		t.Errorf("it said so %d times", n)
	}
	items, err := api.Get[[]api.Item](c.ctx, c.client("n1"), api.ItemsPath(api.ItemQuery{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range answered {
		if !slices.ContainsFunc(items, func(it api.Item) bool { return it.ID == id }) {
			t.Errorf("item %s is lost", id)
		}
	}
}
