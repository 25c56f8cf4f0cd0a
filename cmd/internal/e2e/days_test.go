package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// here names what pages call otherwise in a cluster of these tests.
func here() map[string]string { return map[string]string{"near": "a", "far": "b"} }

// problem waits until a node says that something is wrong.
func (c *cluster) problem(node, word string) {
	c.t.Helper()
	c.until(node+" says "+word, func() bool {
		s, err := c.client(node).Status(c.ctx)
		return err == nil && strings.Contains(strings.Join(s.Problems, "\n"), word)
	})
}

// TestDaysOfAGroup: days on which the group goes on, one after the other in one group.
func TestDaysOfAGroup(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (six bad days in a row)")
	}
	t.Parallel()
	dsn := pg.Server(t).NamedDatabase(t, "shop") // as the pages call it
	execute(t, dsn, bulk("goods", 1))
	role := fmt.Sprintf("days_%d", time.Now().UnixNano()) // that a new server lacks
	execute(t, dsn, "CREATE ROLE "+role)
	t.Cleanup(func() { pg.Server(t).Exec(t, "postgres", "DROP ROLE "+role) })
	c := newCluster(t, options{nodes: 3, lasting: 8 * time.Minute, watched: true, dsns: map[string]string{"shop": dsn}, extra: "stop: {grace: 1h}\n"})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	r := rehearsal{c: c, words: here()}

	t.Log("a database is spoilt")
	before := print(t, dsn)
	execute(t, dsn, "DROP TABLE goods")
	copied := fmt.Sprintf("copy_%d", time.Now().UnixNano())
	t.Cleanup(func() { pg.Server(t).Exec(t, "postgres", "DROP DATABASE IF EXISTS "+copied) })
	r.words["shop_copy"] = copied
	r.follow("database-dropped")
	same(t, "the restored database", before, print(t, dsn))
	same(t, "the copy beside it", before, print(t, pg.Server(t).DSN(copied)))

	t.Log("a storage is not mounted")
	mounted, aside := filepath.Join(c.dir, "a"), filepath.Join(c.dir, "a.aside")
	swap := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	swap(mounted, aside)
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	r.hands = map[string]func(){"mount /srv/a": func() {
		if err := os.Remove(mounted); err != nil { // which fails when anybody has written there
			t.Fatal(err)
		}
		swap(aside, mounted)
	}}
	r.follow("storage-away")

	t.Log("the authority and the gossip keys are replaced")
	r.follow("authority-seen")
	r.follow("gossip-key-seen")

	t.Log("the server is lost")
	srv := pgtest.New(t, pgtest.Options{})
	if err := os.WriteFile(filepath.Join(c.dir, "new.dsn"), []byte(srv.DSN("postgres")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.words["pg1"] = "shop"
	r.follow("server-lost")
	same(t, "the shop of the lost server", before, print(t, srv.DSN("shop")))

	c.finishes("n2", c.backup("n2").ID)
	c.recovered("n1")
}

// TestDaysOfALedger: the ledger's database is put back to a copy, another one is named by mistake, it moves, and all homes are
// lost.
func TestDaysOfALedger(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (five bad days in a row)")
	}
	t.Parallel()
	srv := pgtest.New(t, pgtest.Options{})
	led, stray := srv.NamedDatabase(t, "tasks"), srv.NamedDatabase(t, "stray")
	moved := srv.NamedDatabase(t, "moved")
	c := newCluster(t, options{nodes: 1, lasting: 8 * time.Minute, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}, extra: fmt.Sprintf("ledger: {dsn: %q}\n", led)})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	r := rehearsal{c: c, words: here()}
	r.words["n3"] = "n1"

	t.Log("the ledger is put back to a copy of last night")
	c.halt("n1")
	srv.Exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tasks'`)
	srv.Exec(t, "postgres", `CREATE DATABASE night TEMPLATE tasks`)
	c.start("n1")
	c.ready("n1")
	c.finishes("n1", c.backup("n1").ID)
	c.halt("n1")
	srv.Exec(t, "postgres", `DROP DATABASE tasks WITH (FORCE)`)
	srv.Exec(t, "postgres", `ALTER DATABASE night RENAME TO tasks`)
	c.start("n1")
	c.problem("n1", "older copy")
	r.follow("ledger-old")
	c.backups("n1", 2)

	t.Log("the file names another ledger; it moves")
	c.halt("n1")
	text, err := os.ReadFile(c.file("n1"))
	if err == nil {
		err = os.WriteFile(c.file("n1"), []byte(strings.Replace(string(text), led, stray, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start("n1")
	c.problem("n1", "the group uses another one")
	next := filepath.Join(c.dir, "moved.dsn")
	if err := os.WriteFile(next, []byte(moved+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = []string{fmt.Sprintf("LEDGER=ledger: {dsn: \"%s\"}", led), "ELSEWHERE=file:" + next}
	r.follow("ledger-elsewhere")
	c.halt("n1")
	text, err = os.ReadFile(c.file("n1"))
	if err == nil {
		err = os.WriteFile(c.file("n1"), []byte(strings.Replace(string(text), led, moved, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start("n1")
	c.ready("n1")
	c.backups("n1", 2)

	t.Log("the ledger's database is gone")
	c.halt("n1")
	srv.Exec(t, "postgres", `DROP DATABASE moved WITH (FORCE)`)
	srv.Exec(t, "postgres", `CREATE DATABASE moved`)
	c.start("n1")
	c.problem("n1", "ledger")
	r.follow("ledger-lost")
	c.backups("n1", 2)

	t.Log("all homes are lost")
	c.kill("n1")
	if err := os.RemoveAll(c.home("n1")); err != nil {
		t.Fatal(err)
	}
	r.before = map[string]func(){
		"journalctl -u fencepostd -n 4":  func() { c.endsByItself("n1") },
		"fencepost ledger adopt --apply": func() { c.problem("n1", "belongs to group") },
	}
	r.follow("homes-lost")
	c.backups("n1", 2)
	c.finishes("n1", c.backup("n1").ID)
}

// backups checks how many good ones a node lists.
func (c *cluster) backups(by string, want int) {
	c.t.Helper()
	if good, err := c.good(by); err != nil || good != want {
		c.t.Errorf("%d good backups, want %d: %v", good, want, err)
	}
}

// good is how many good backups a node lists.
func (c *cluster) good(by string) (n int, err error) {
	list, err := c.client(by).Backups(c.ctx, api.BackupFilter{})
	for _, b := range list {
		if b.State == api.Completed {
			n++
		}
	}
	return n, err
}

// endsByItself waits for the end of a node that must not go on.
func (c *cluster) endsByItself(node string) {
	c.t.Helper()
	select {
	case <-c.proc(node).done:
	case <-c.ctx.Done():
		c.t.Fatalf("%s does not end", node)
	}
}

// TestForeignStorageIsAdopted: the storage of a group that is no more is another one's, by the page.
func TestForeignStorageIsAdopted(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (two groups, one after the other)")
	}
	t.Parallel()
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}, storages: "- {name: a, kind: local, path: " + t.TempDir() + "}\n"})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	c.halt("n1")
	if err := os.RemoveAll(c.home("n1")); err != nil {
		t.Fatal(err)
	}
	c.start("n1")
	c.endsByItself("n1")
	rehearsal{c: c, words: here()}.follow("storage-foreign")
}
