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

// TestStagingBesideProduction: a clone for staging, with production's configuration, its storages and a copy of its ledger, or
// none, runs while production does. It is not ready, says why, and changes no byte of either, whatever a person tries
// without saying that they are its own; production does not notice.
func TestStagingBesideProduction(t *testing.T) {
	t.Parallel()
	led, extra := ledgerIn(t)
	vault := t.TempDir()
	shared := options{nodes: 1, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}, storages: "- {name: a, kind: local, path: " + vault + "}\n"}
	production := shared
	production.extra = extra
	c := newCluster(t, production)
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}

	clone := pg.Server(t).Database(t)
	dump := exec.Command(pgTool(t, "pg_dump"), "-d", led)
	load := exec.Command(pgTool(t, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", clone)
	text, err := dump.Output()
	if load.Stdin = bytes.NewReader(text); err != nil {
		t.Fatal(err)
	}
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stored, kept, copied := filesOf(t, vault), print(t, led), print(t, clone)

	for name, x := range map[string]struct{ extra, says string }{
		"a copy of the ledger":    {fmt.Sprintf("ledger: {dsn: %q}\n", clone), "belongs to group"},
		"production's own ledger": {extra, "belongs to group"},
		"no ledger":               {"", "belongs to another cluster"},
	} {
		staging := shared
		staging.extra = x.extra
		s := newCluster(t, staging)
		s.start("n1")
		s.until(name+": it says whose they are", func() bool { return strings.Contains(string(s.logOf("n1")), x.says) })
		for _, args := range [][]string{
			{"backup", "create", "shop"}, {"prune", "shop", "--confirm"}, {"storage", "check", "a", "--fix"}, {"backup", "delete", list[0].ID, "--now"},
			{"ledger", "reconcile", "--apply"}, {"ledger", "adopt"}, {"storage", "adopt", "a"},
		} {
			if out, err := s.fencepost("n1", args...); err == nil && !strings.Contains(out, "--apply") {
				t.Errorf("%s: %v says %s", name, args, out)
			}
		}
		s.kill("n1")
		if now := filesOf(t, vault); !slices.Equal(now, stored) {
			t.Errorf("%s: the storage had\n%s\nand has\n%s", name, strings.Join(stored, "\n"), strings.Join(now, "\n"))
		}
		for _, d := range pgtest.Diff(copied, print(t, clone)) {
			t.Errorf("%s: the copy of the ledger: %s", name, d)
		}
	}
	same(t, "production's ledger", kept, print(t, led))

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
