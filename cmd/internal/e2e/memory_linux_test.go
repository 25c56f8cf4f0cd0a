package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// bucket is a server of buckets of the test's own, and the YAML of a storage in it.
func bucket(t *testing.T) (yaml string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "backups"), 0o700); err != nil { // to the server, a folder is a bucket
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	cmd := exec.Command(filepath.Join(cache, "fencepost", "tools", "versitygw-v1.8.0"), "--access", "id", "--secret", "a secret",
		"--port", address, "--quiet", "--health", "/health", "posix", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the S3 server for tests (make deps builds it): %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		res, err := http.Get("http://" + address + "/health")
		if err == nil {
			_ = res.Body.Close()
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal(errors.Join(err, context.Cause(ctx)))
		case <-time.After(10 * time.Millisecond):
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("- {name: cloud, kind: s3, endpoint: \"http://%s\", bucket: backups, access_key: id, secret_key: \"file:%s\", path_style: true}\n", address, secret)
}

// peak is the most memory that a process ever had, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// TestPeakMemory: two gigabytes to three storages of three kinds at once, uncompressed, in less than 128 MB.
func TestPeakMemory(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (two gigabytes to three storages)")
	}
	const size = 2 << 30
	dsn := database(t, `CREATE TABLE goods AS SELECT i AS id, repeat(md5(i::text), 32) AS body FROM generate_series(1, 2200000) i`)
	_, box := emulator(t, dropboxtest.Options{})
	disk := t.TempDir()
	c := newCluster(t, options{nodes: 1, lasting: 20 * time.Minute, dsns: map[string]string{"shop": dsn}, extra: "processors: []\n",
		storages: fmt.Sprintf("- {name: disk, kind: local, path: %s}\n", disk) + bucket(t) + box})
	c.up()
	began := time.Now()
	task := c.finishes("n1", c.backup("n1").ID)
	used := peak(t, c.proc("n1").cmd.Process.Pid)
	t.Logf("%d MB to 3 storages in %s, at most %d MB of memory", task.Progress.Read>>20, time.Since(began).Round(time.Second), used>>20)
	if task.Progress.Read < size {
		t.Fatalf("only %d bytes were dumped", task.Progress.Read)
	}
	for _, name := range []string{"disk", "cloud", "box"} {
		if task.Progress.Stored[name] < size {
			t.Errorf("%s holds %d bytes", name, task.Progress.Stored[name])
		}
	}
	c.clean("n1", "disk", "cloud", "box")
	if used > 128<<20 {
		t.Errorf("it took %d MB of memory, want at most 128", used>>20)
	}
}
