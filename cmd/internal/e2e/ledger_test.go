package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ledgerIn makes a database for a ledger, and the configuration that names it.
func ledgerIn(t testing.TB) (dsn, extra string) {
	t.Helper()
	dsn = pg.Server(t).Database(t)
	return dsn, fmt.Sprintf("ledger: {dsn: %q}\n", dsn)
}

// entries is what the tables of a ledger hold.
func entries(t *testing.T, dsn, query string) string {
	t.Helper()
	return pg.Server(t).Text(t, nameIn(t, dsn), query)
}

const (
	completedBackups = `SELECT count(*) FROM fencepost_ledger.backups WHERE state = 'completed'`
	completions      = `SELECT count(*) FROM fencepost_ledger.task_states WHERE state = 'completed'`
	shutOuts         = `SELECT count(*) FROM fencepost_ledger.runs WHERE shut_out IS NOT NULL`
)

// once checks that the ledger saw one completion, and shut one run out.
func once(t *testing.T, dsn string) {
	t.Helper()
	for query, want := range map[string]string{completedBackups: "1", completions: "1", shutOuts: "1"} {
		if got := entries(t, dsn, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestKillWhileUploadingPostgresLedger: TestKillWhileUploading with the ledger in a database, which all nodes share.
func TestKillWhileUploadingPostgresLedger(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 2))
	led, extra := ledgerIn(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly + extra})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	c.kill(owner)
	c.start(owner)
	by := c.survivor(owner)
	done := c.finishes(by, task.ID)
	if done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	c.recovered(by)
	b := c.oneBackup(by)
	if b.Token != done.Token {
		t.Errorf("the backup counts token %d, the task ended with %d", b.Token, done.Token)
	}
	once(t, led)
	c.restored(by, b.ID, dsn)
}

// TestPausedOwnerPostgresLedger: the owner is stopped for longer than its lease, its successor shuts it out of the ledger
// and finishes; when the owner goes on, it writes nothing.
func TestPausedOwnerPostgresLedger(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 3))
	led, extra := ledgerIn(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly + extra})
	c.up()
	task := c.backup("n1")
	first := c.reaches("n1", task.ID, "uploading", sent)
	by := c.survivor(first.Node)
	c.stop(first.Node)
	done := c.finishes(by, task.ID)
	c.resume(first.Node)
	c.until("the resumed node stands as a new run", func() bool {
		s, err := c.client(first.Node).Status(c.ctx)
		return err == nil && s.Lease == "held" && s.Run != first.Run
	})
	c.recovered(by)
	c.oneBackup(by)
	once(t, led)
	if got, err := c.client(by).Task(c.ctx, task.ID); err != nil || got.State != "completed" || got.Token != done.Token {
		t.Errorf("task after the late owner came back: %+v, %v", got, err)
	}
}

// TestLedgerRestartedDuringBackup: the ledger's database ends all sessions and takes none, five times during a dump; the
// same attempt completes.
func TestLedgerRestartedDuringBackup(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 4))
	led, extra := ledgerIn(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly + extra})
	c.up()
	task := c.backup("n1")
	c.reaches("n1", task.ID, "uploading", sent)
	name := nameIn(t, led)
	for range 5 {
		pg.Server(t).Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE "%s" ALLOW_CONNECTIONS false`, name))
		pg.Server(t).Exec(t, "postgres", fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, name))
		c.until("a node misses the ledger", func() bool {
			_, err := c.client("n1").Task(c.ctx, task.ID)
			return err != nil
		})
		pg.Server(t).Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE "%s" ALLOW_CONNECTIONS true`, name))
		c.until("the ledger is back", func() bool {
			_, err := c.client("n1").Task(c.ctx, task.ID)
			return err == nil
		})
	}
	if done := c.finishes("n1", task.ID); done.Attempt != 1 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	c.oneBackup("n1")
	if got := entries(t, led, completions); got != "1" {
		t.Errorf("%s completions", got)
	}
}

// TestBadLedgers: a ledger that cannot be used ends the node with one line and a hint; one that is away, or another group's, is
// waited for: a person is at work on it, or has to be.
func TestBadLedgers(t *testing.T) {
	t.Parallel()
	_, foreign := ledgerIn(t)
	first := newCluster(t, options{nodes: 1, extra: foreign})
	first.up()
	for _, test := range []struct {
		name, dsn string
		words     []string
	}{
		{"wrong password", pg.Server(t).DSNFor("postgres", "wr0ng-passw0rd", "postgres"), []string{"ledger", "password"}},
		{"no such database", pg.Server(t).DSN("nope"), []string{"ledger", "does not exist"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, options{nodes: 1, extra: fmt.Sprintf("ledger: {dsn: %q}\n", test.dsn)})
			s := run(t, daemon, "--config", c.file("n1"))
			s.complains(t, 1, test.words...)
			if strings.Contains(s.err, "wr0ng") || strings.Contains(s.err, pg.Server(t).Password) {
				t.Error("the password is shown")
			}
		})
	}
	t.Run("another group's", func(t *testing.T) {
		c := newCluster(t, options{nodes: 1, extra: foreign})
		c.start("n1")
		c.until("the node says that it waits, and why", func() bool {
			s, err := c.client("n1").Status(c.ctx)
			return err == nil && !s.Ready && len(s.Problems) > 0 && strings.Contains(strings.Join(s.Problems, "\n"), "belongs to group")
		})
		if out, err := c.fencepost("n1", "ledger", "adopt"); err != nil || !strings.Contains(out, "--apply") {
			t.Errorf("adopt without being told to do it: %s%v", out, err)
		}
		if out, err := c.fencepost("n1", "ledger", "adopt", "--apply"); err != nil {
			t.Fatalf("adopt: %s%v", out, err)
		}
		c.ready("n1")
	})
	t.Run("away", func(t *testing.T) {
		led, extra := ledgerIn(t)
		allow := func(yes bool) {
			pg.Server(t).Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE "%s" ALLOW_CONNECTIONS %v`, nameIn(t, led), yes))
		}
		c := newCluster(t, options{nodes: 1, extra: extra})
		c.up() // forms its group
		c.kill("n1")
		allow(false)
		c.start("n1")
		c.until("the node says that it waits", func() bool {
			s, err := c.client("n1").Status(c.ctx)
			return err == nil && s.State == "waiting for the ledger" && len(s.Problems) > 0
		})
		if _, err := c.client("n1").Backups(c.ctx, api.BackupFilter{}); err == nil {
			t.Error("backups are listed without a ledger")
		}
		allow(true)
		c.ready("n1")
	})
}
