package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestLimitsOfTasks: what a daemon holds tasks to: so many attempts with a wait between them, one at a time of a kind, none
// that deletes what another reads, and no restore that nobody began in its time.
func TestLimitsOfTasks(t *testing.T) {
	t.Parallel()
	dsn := database(t, append([]string{bulk("goods", 1)}, slowCheck...)...)
	away := fmt.Sprintf("postgres://nobody@127.0.0.1:%d/gone", freePort(t))
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn, "gone": away},
		extra: "backup: {max_attempts: 2, rate_limit: 500KiB}\nrestore: {start_within: 30s}\n"})
	c.targets = nil // of databases that are there
	c.up()
	plan := func(task api.Task, err error) api.Task {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	ask := c.client("n1")
	failing := plan(ask.CreateBackup(c.ctx, api.CreateBackup{Database: "gone"}))

	one := plan(ask.CreateBackup(c.ctx, api.CreateBackup{Database: "shop"}))
	two := plan(ask.CreateBackup(c.ctx, api.CreateBackup{Database: "shop"}))
	one, two = c.finishes("n1", one.ID), c.finishes("n1", two.ID)
	if two.Begun.Before(*one.Finished) && one.Begun.Before(*two.Finished) {
		t.Errorf("two backups of one database at once: %s to %s, and %s to %s", one.Begun, one.Finished, two.Begun, two.Finished)
	}

	expires := plan(ask.Restore(c.ctx, api.RestoreBackup{Backup: one.Backup, Target: "never made", Needs: []string{"nobody"}}))
	target := fmt.Sprintf("%d limits", time.Now().UnixNano())
	reading := plan(ask.Restore(c.ctx, api.RestoreBackup{Backup: one.Backup, Target: target}))
	c.reaches("n1", reading.ID, "restoring", nil)
	run(t, command, "--socket", c.socket("n1"), "backup", "delete", one.Backup, "--now").complains(t, 1, "reads backup")
	if _, err := ask.Cancel(c.ctx, reading.ID); err != nil {
		t.Fatal(err)
	}
	c.reaches("n1", reading.ID, "cancelled", nil)

	failed := c.reaches("n1", failing.ID, "failed", nil)
	if failed.Attempt != 2 || failed.Error == "" || failed.Hint == "" {
		t.Errorf("of a server that is away: %+v", failed)
	}
	var began []time.Time
	c.until("both attempts are told of", func() bool {
		log, err := ask.TaskLog(c.ctx, failing.ID)
		began = nil
		for _, l := range log.Lines {
			if strings.HasPrefix(l.Text, "attempt begins") {
				began = append(began, l.At)
			}
		}
		return err == nil && len(began) == 2 && strings.Contains(log.Lines[len(log.Lines)-1].Text, "state failed")
	})
	if waited := began[1].Sub(began[0]); waited < 4*time.Second {
		t.Errorf("the second attempt came %s after the first", waited)
	}
	if done := c.reaches("n1", expires.ID, "failed", nil); !strings.Contains(done.Error, "not begun in time") || done.Begun != nil {
		t.Errorf("a restore that nobody began: %+v", done)
	}
}

// TestTimeLimitOfADaemon: an attempt that takes longer than the configured minute is reverted, and its pg_dump is gone.
func TestTimeLimitOfADaemon(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (the shortest limit is a minute)")
	}
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	k := &cancels{dsn: dsn, cluster: newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, extra: "backup: {time_limit: 1m}\n"})}
	k.up()
	unlock := pg.Server(t).Hold(t, nameIn(t, dsn), "LOCK TABLE goods IN ACCESS EXCLUSIVE MODE")
	defer unlock()
	done := k.reaches("n1", k.cluster.backup("n1").ID, "failed", nil)
	if !strings.Contains(done.Error, "time limit") || done.Attempt != 1 || done.Hint == "" {
		t.Errorf("past its limit: %+v", done)
	}
	if took := done.Finished.Sub(*done.Begun); took < time.Minute {
		t.Errorf("it ended after %s", took)
	}
	k.until("its sessions are gone", func() bool { return k.sessions("true") == 0 })
	if all := k.lies(); len(all) > 0 {
		t.Errorf("left: %q", all)
	}
}

// TestRetentionStops: what a daemon's retention does not do by itself: let most backups go at once, or let any go beside a
// suspect one; each until a person says so.
func TestRetentionStops(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn},
		extra: "backup: {delete_delay: 0s}\nretention:\n- {database: shop, last: 1, unverified: true, max_percent: 60}\n"})
	c.up()
	cli := func(args ...string) said {
		return run(t, command, append([]string{"--socket", c.socket("n1")}, args...)...)
	}
	kept := func() (ids []string) {
		list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			ids = append(ids, b.ID)
		}
		return ids
	}
	// Pinned, the first two stay until there are three; then two of three are too many at once.
	var made []string
	for range 3 {
		id := c.finishes("n1", c.backup("n1").ID).Backup
		if s := cli("backup", "pin", id); s.code != 0 {
			t.Fatalf("pin: %+v", s)
		}
		made = append(made, id)
	}
	if s := cli("component", "pause", "prune"); s.code != 0 {
		t.Fatalf("pause: %+v", s)
	}
	for _, id := range made {
		if s := cli("backup", "unpin", id); s.code != 0 {
			t.Fatalf("unpin: %+v", s)
		}
	}
	if s := cli("component", "resume", "prune"); s.code != 0 {
		t.Fatalf("resume: %+v", s)
	}
	c.until("it says that it is too many", func() bool { return strings.Contains(cli("prune", "shop").out, "nothing goes: ") })
	c.looked("shop")
	if got := kept(); len(got) != 3 {
		t.Errorf("kept without a word: %q of %q", got, made)
	}
	if s := cli("prune", "shop", "--confirm"); s.code != 0 {
		t.Fatalf("confirm: %+v", s)
	}
	c.until("one is left", func() bool { return slices.Equal(kept(), made[2:]) })

	execute(t, dsn, "DELETE FROM goods WHERE id > 10")
	tiny := c.finishes("n1", c.backup("n1").ID).Backup
	var shown api.Backup
	if err := json.Unmarshal([]byte(cli("backup", "show", tiny, "-o", "json").out), &shown); err != nil || len(shown.Suspect) == 0 {
		t.Fatalf("the tiny one: %+v, %v", shown, err)
	}
	c.looked("shop")
	if got := kept(); len(got) != 2 {
		t.Errorf("kept beside a suspect one: %q", got)
	}
	if s := cli("backup", "accept", tiny); s.code != 0 {
		t.Fatalf("accept: %+v", s)
	}
	c.until("the accepted one is left", func() bool { return slices.Equal(kept(), []string{tiny}) })
}

// TestRetentionTrustsNoFalseTimes: nothing goes while a backup is of the future, or while a storage cannot be looked at: the
// daemon says which and why, and goes on by itself when that is over.
func TestRetentionTrustsNoFalseTimes(t *testing.T) {
	t.Parallel()
	led, extra := ledgerIn(t)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": database(t, bulk("goods", 1))},
		extra: "backup: {delete_delay: 0s, require: any}\nretention:\n- {database: shop, last: 1, unverified: true, max_percent: 100}\n" + extra})
	c.up()
	cli := func(args ...string) said {
		return run(t, command, append([]string{"--socket", c.socket("n1")}, args...)...)
	}
	kept := func() string { return entries(t, led, completedBackups) }
	says := func(part string) {
		t.Helper()
		c.until("it says why nothing goes", func() bool { return strings.Contains(cli("prune", "shop").out, "nothing goes: "+part) })
		c.looked("shop")
	}
	c.finishes("n1", c.backup("n1").ID)
	asOf := func(time string) {
		execute(t, led, "UPDATE fencepost_ledger.backups SET detail = jsonb_set(detail::jsonb, '{as_of}', to_jsonb("+time+"))::json")
	}
	asOf("now() + interval '1 day'")
	c.finishes("n1", c.backup("n1").ID)
	says("time in the future: backup ")
	if n := kept(); n != "2" {
		t.Errorf("%s backups are left beside one of the future", n)
	}
	asOf("least((detail ->> 'as_of')::timestamptz, now() - interval '1 minute')")

	away := filepath.Join(c.dir, "b away")
	if err := os.Rename(filepath.Join(c.dir, "b"), away); err != nil {
		t.Fatal(err)
	}
	if s := cli("prune", "shop", "--confirm"); s.code != 0 {
		t.Fatalf("confirm: %+v", s)
	}
	says("listing failed: the backups could not be listed: storage b")
	if n := kept(); n != "2" {
		t.Errorf("%s backups are left on the back of a listing that failed", n)
	}
	if err := os.Rename(away, filepath.Join(c.dir, "b")); err != nil {
		t.Fatal(err)
	}
	if s := cli("prune", "shop", "--confirm"); s.code != 0 {
		t.Fatalf("confirm: %+v", s)
	}
	c.until("one is left", func() bool { return kept() == "1" })
}

// looked waits until prune has looked at what is there of a database now.
func (c *cluster) looked(database string) {
	c.t.Helper()
	c.until("prune has looked", func() bool {
		it, err := api.Get[api.Item](c.ctx, c.client("n1"), api.ItemPath(api.ItemQuery{Component: "prune"}, "database:"+database))
		return err == nil && len(it.Events) > 0 && !it.Wanted
	})
}
