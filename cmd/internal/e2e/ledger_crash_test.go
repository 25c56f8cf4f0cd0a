package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// TestLedgerServerCrashesDuringBackup: the ledger's server crashes five times during a dump, and comes back each time by
// its log; the same attempt completes, and what it had reported before is not lost.
func TestLedgerServerCrashesDuringBackup(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 4))
	srv := pgtest.New(t, pgtest.Options{Durable: true})
	led := srv.Database(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly + fmt.Sprintf("ledger: {dsn: %q}\n", led)})
	c.up()
	task := c.backup("n1")
	first := c.reaches("n1", task.ID, "uploading", sent)
	read := first.Progress.Read
	for i := range 5 {
		pid := 0
		if _, err := fmt.Sscan(srv.Text(t, "postgres", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"), &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.until("the server has begun anew", func() bool {
			log, err := os.ReadFile(filepath.Join(srv.Dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = srv.Databases(c.ctx)
			return err == nil && strings.Count(string(log), "all server processes terminated; reinitializing") == i+1
		})
		c.until("the attempt goes on", func() bool {
			now, err := c.client("n1").Task(c.ctx, task.ID)
			if err != nil {
				return false
			}
			if now.Progress.Read < read {
				t.Errorf("after crash %d the ledger knows of %d bytes, before of %d", i+1, now.Progress.Read, read)
			}
			more := now.Progress.Read > read || now.Final
			read = now.Progress.Read
			return more
		})
	}
	if done := c.finishes("n1", task.ID); done.Attempt != 1 || done.Token != first.Token {
		t.Errorf("completed by attempt %d under token %d, begun under %d", done.Attempt, done.Token, first.Token)
	}
	c.oneBackup("n1")
	if got := srv.Text(t, nameIn(t, led), completions); got != "1" {
		t.Errorf("%s completions", got)
	}
}
