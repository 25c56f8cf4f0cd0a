package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// TestLedgerOfOneNodeIsAnother: the file of one node of three names another database than the group uses. That node is not ready
// and says why, and does nothing; the others go on; with the right name it is one of them again.
func TestLedgerOfOneNodeIsAnother(t *testing.T) {
	t.Parallel()
	led, extra := ledgerIn(t)
	stray, other := ledgerIn(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}, extra: extra})
	c.up()
	c.halt("n3")
	c.write("n3", "lan", other)
	c.start("n3")
	c.problem("n3", "the group uses another one")
	for range 2 {
		c.finishes("n1", c.backup("n1").ID)
	}
	if s, err := c.client("n3").Status(c.ctx); err != nil || s.Ready {
		t.Errorf("n3: %+v, %v", s, err)
	}
	if _, err := c.fencepost("n3", "backup", "create", "shop"); err == nil {
		t.Error("n3 takes a backup on")
	}
	if n := entries(t, stray, `SELECT count(*) FROM pg_namespace WHERE nspname = 'fencepost_ledger'`); n != "0" {
		t.Error("a second ledger was made")
	}
	if n := entries(t, led, `SELECT count(*) FROM fencepost_ledger.task_states WHERE node = 'n3' AND at > now() - interval '1 hour'`); n != "0" {
		t.Errorf("n3 wrote %s states of tasks", n)
	}
	c.halt("n3")
	c.write("n3", "lan", extra)
	c.start("n3")
	c.ready("n3")
	c.finishes("n3", c.backup("n3").ID)
}

// TestStagingBesideProduction: a clone for staging, with production's configuration, runs while production does. With
// production's storages it ends; with storages of its own and production's ledger, or a copy of it, it waits. It says why, and
// changes no byte of either, whatever a person tries without saying that they are its own; production does not notice.
func TestStagingBesideProduction(t *testing.T) {
	t.Parallel()
	led, extra := ledgerIn(t)
	vault := t.TempDir()
	shop := map[string]string{"shop": database(t, bulk("goods", 1))}
	productions := "- {name: a, kind: local, path: " + vault + "}\n"
	c := newCluster(t, options{nodes: 1, dsns: shop, storages: productions, extra: extra})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	c.until("production has stored the group's own state, and rests", func() bool {
		states, err := filepath.Glob(filepath.Join(vault, "_fencepost", "group", "*"))
		return err == nil && len(states) > 0
	})
	clone := pg.Server(t).Database(t)
	text, err := exec.CommandContext(c.ctx, pgTool(t, "pg_dump"), "-d", led).Output()
	if err != nil {
		t.Fatal(err)
	}
	load := exec.CommandContext(c.ctx, pgTool(t, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", clone)
	load.Stdin = bytes.NewReader(text)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stored, kept, copied := filesOf(t, vault), print(t, led), print(t, clone)
	untouched := func(by string) {
		t.Helper()
		if now := filesOf(t, vault); !slices.Equal(now, stored) {
			t.Errorf("%s: the storage had\n%s\nand has\n%s", by, strings.Join(stored, "\n"), strings.Join(now, "\n"))
		}
		same(t, by+": the copy of the ledger", copied, print(t, clone))
		for _, d := range pgtest.Diff(kept, print(t, led)) {
			if !strings.HasPrefix(d, "table fencepost_ledger.item") { // those are what production itself notes when it looks around
				t.Errorf("%s: production's ledger: %s", by, d)
			}
		}
	}
	itsCopy := fmt.Sprintf("ledger: {dsn: %q}\n", clone)

	for by, ledger := range map[string]string{"its storages": "", "its storages and its ledger": extra, "its storages and a copy of its ledger": itsCopy} {
		s := newCluster(t, options{nodes: 1, dsns: shop, storages: productions, extra: ledger})
		s.start("n1")
		s.endsByItself("n1")
		if log := string(s.logOf("n1")); !strings.Contains(log, "storage a") || !strings.Contains(log, "belongs to another cluster") {
			t.Errorf("%s: it does not say why it ended: %s", by, lastLine(log))
		}
		untouched(by)
	}
	for by, ledger := range map[string]string{"its ledger": extra, "a copy of its ledger": itsCopy} {
		s := newCluster(t, options{nodes: 1, dsns: shop, extra: ledger})
		s.start("n1")
		s.problem("n1", "belongs to group")
		for _, args := range [][]string{
			{"backup", "create", "shop"}, {"restore", "shop", "--yes"}, {"prune", "shop", "--confirm"}, {"backup", "delete", list[0].ID, "--now"},
			{"ledger", "reconcile", "--apply"},
		} {
			if out, err := s.fencepost("n1", args...); err == nil {
				t.Errorf("%s: %v says %s", by, args, out)
			}
		}
		s.kill("n1")
		untouched(by)
	}
	c.finishes("n1", c.backup("n1").ID)
	c.backups("n1", 2)
	if s, err := c.client("n1").Status(c.ctx); err != nil || !s.Ready || len(s.Problems) > 0 {
		t.Errorf("production: %+v, %v", s, err)
	}
}

// filesOf lists what is below a directory: names, times, contents.
func filesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			list = append(list, path)
			return err
		}
		data, err := os.ReadFile(path)
		list = append(list, fmt.Sprintf("%s %v %x", path, info.ModTime(), sha256.Sum256(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
