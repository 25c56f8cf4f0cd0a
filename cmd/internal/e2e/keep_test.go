package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestVerifyPinDelete: what an operator does with backups after they were made, with real processes: read back, pinned,
// deleted from every storage, refused where it must be, mended where a copy is damaged.
func TestVerifyPinDelete(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, lab: true})
	c.up()
	cli := func(args ...string) said {
		return run(t, command, append([]string{"--socket", c.socket("n1")}, args...)...)
	}
	well := func(args ...string) said {
		t.Helper()
		s := cli(args...)
		if s.code != 0 {
			t.Fatalf("%q: %+v", args, s)
		}
		return s
	}
	well("backup", "create", "shop", "--wait")
	first := c.oneBackup("n1")
	cli("backup", "delete", first.ID, "--now").complains(t, 1, "last good")
	well("verify", first.ID, "--wait")
	well("verify", first.ID, "--scratch", "lab", "--wait")
	well("backup", "create", "shop", "--wait")
	well("backup", "pin", first.ID)
	cli("backup", "delete", first.ID, "--now").complains(t, 1, "pinned")
	well("backup", "unpin", first.ID)

	var damaged string
	err := filepath.WalkDir(filepath.Join(c.dir, "a"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "data" && strings.Contains(path, first.ID) {
			damaged = path
		}
		return err
	})
	if err != nil || damaged == "" {
		t.Fatalf("no object of the backup in storage a: %v", err)
	}
	raw, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.Chmod(damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cli("verify", first.ID, "--wait").complains(t, 1, "storage a: corrupt")
	cli("backup", "replicate", first.ID, "--wait") // or the prune component was first
	well("verify", first.ID, "--storage", "a", "--wait")

	planned := well("backup", "delete", first.ID)
	if !strings.Contains(planned.out, "begins in") {
		t.Errorf("delete says %q", planned.out)
	}
	well("backup", "undelete", first.ID)
	well("backup", "delete", first.ID, "--now", "--wait")
	if left := c.oneBackup("n1"); left.ID == first.ID {
		t.Errorf("left: %+v", left)
	}
	for _, storage := range []string{"a", "b"} {
		if _, err := os.Stat(filepath.Join(c.dir, storage, first.ID)); err == nil {
			entries, _ := filepath.Glob(filepath.Join(c.dir, storage, first.ID, "*", "*"))
			if len(entries) > 0 {
				t.Errorf("storage %s still holds %q", storage, entries)
			}
		}
	}
	var list []api.Component
	err = json.Unmarshal([]byte(well("component", "ls", "-o", "json").out), &list)
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "backup delete discover prune replicate restore schedule sweep tidy verify" {
		t.Errorf("components %s, %v", got, err)
	}
	if s := cli("component", "run", "backup"); s.code != 0 {
		t.Errorf("run of an idle component: %+v", s)
	}
	c.noStrays()
}
