package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// peak is the most memory that a process ever had, in bytes.
func peak(t testing.TB, pid int) int64 {
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
		storages: fmt.Sprintf("- {name: disk, kind: local, path: %s}\n", disk) + startGateway(t).bucket(t, "cloud", "") + box})
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
