package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestNeedsAndLogs: labels decide which node does a task; one that nobody can do says on every node why it waits; and what
// happened to a task can be read on every node, whoever did it.
func TestNeedsAndLogs(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	c := newCluster(t, options{nodes: 2, dsns: map[string]string{"shop": dsn}})
	c.write("n2", "lan", "labels: [eu]\nlog: {level: debug, format: json}\n")
	c.up()
	cli := func(by string, args ...string) said {
		return run(t, command, append([]string{"--socket", c.socket(by)}, args...)...)
	}
	for range 5 {
		task, err := c.client("n1").CreateBackup(c.ctx, api.CreateBackup{Database: "shop", Needs: []string{"eu"}})
		if err != nil {
			t.Fatal(err)
		}
		done := c.finishes("n1", task.ID)
		if done.Node != "n2" || done.Begun == nil || done.Needs == nil {
			t.Errorf("done: %+v", done)
		}
		for _, words := range []string{"attempt begins", "uploading", "task completed", "n2"} { // the last lines come after the end
			c.until("the log says "+words, func() bool { return strings.Contains(cli("n1", "tasks", task.ID, "--log").out, words) })
		}
	}
	second, err := c.client("n2").CreateBackup(c.ctx, api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	c.finishes("n1", second.ID)

	waiting, err := c.client("n1").CreateBackup(c.ctx, api.CreateBackup{Database: "shop", Needs: []string{"gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range c.names {
		c.until(by+" says why", func() bool {
			s := cli(by, "tasks", waiting.ID)
			return strings.Contains(s.out, "n1 has no label gpu") && strings.Contains(s.out, "n2 has no label gpu")
		})
	}
	var shown api.Task
	if err := json.Unmarshal([]byte(cli("n2", "tasks", waiting.ID, "-o", "json").out), &shown); err != nil || len(shown.Waits) != 2 || shown.Needs.Client < 13 {
		t.Errorf("as JSON: %+v, %v", shown, err)
	}
	cli("n2", "cancel", waiting.ID, "--wait")
	if got, err := c.client("n1").Task(c.ctx, waiting.ID); err != nil || got.State != "cancelled" || len(got.Waits) != 0 {
		t.Errorf("after its cancel: %+v, %v", got, err)
	}
	cli("n1", "tasks", "nope", "--log").complains(t, 1, "no task")
}

// TestOnFailureRevert: whoever does not want a second attempt gets none; the task says what became of it.
func TestOnFailureRevert(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 3))
	c := newCluster(t, options{nodes: 2, dsns: map[string]string{"shop": dsn}, extra: "backup: {rate_limit: 500KiB, on_failure: revert}\n"})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	c.kill(owner)
	c.start(owner)
	c.ready(owner)
	by := c.survivor(owner)
	done := c.reaches(by, task.ID, "reverted", nil)
	if done.Attempt > 2 || done.Error == "" {
		t.Errorf("reverted: %+v", done)
	}
	c.recovered(by)
	for _, name := range []string{"a", "b"} {
		if s := c.storage(name); len(s.whole)+len(s.loose) > 0 {
			t.Errorf("storage %s: %+v", name, s)
		}
	}
	if list, err := c.client(by).Backups(c.ctx, api.BackupFilter{}); err != nil || len(list) != 0 {
		t.Errorf("backups: %+v, %v", list, err)
	}
}
