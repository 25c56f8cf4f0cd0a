package e2e

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestRollingRestart: three nodes are restarted one after the other, each while it makes a backup: two are drained first,
// the third only gets its SIGTERM. No backup is begun a second time, and nobody else may be restarted meanwhile.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	dsns := map[string]string{}
	for _, name := range []string{"shop", "mall", "fair"} {
		dsns[name] = database(t, bulk("goods", 2))
	}
	c := newCluster(t, options{nodes: 3, watched: true, dsns: dsns, extra: "backup: {rate_limit: 500KiB, max_concurrent: 1}\nstop: {grace: 1m}\n"})
	c.up()
	made := map[string]bool{}
	for i, node := range c.names {
		last, by := i == len(c.names)-1, c.names[(i+1)%len(c.names)]
		task := c.busyWith(by, node, made)
		c.until(node+" may be restarted", func() bool {
			out, err := c.fencepost(by, "node", "may-restart", node)
			return c.exits(out, err, 0, 3) == 0
		})
		if !last {
			out, err := c.fencepost(by, "node", "drain", node)
			if c.exits(out, err, 3) != 3 || !strings.Contains(out, "create "+task) {
				t.Errorf("drain of a busy node: %s", out)
			}
			if out, err := c.fencepost(by, "node", "may-restart", by); c.exits(out, err, 3) != 3 || !strings.Contains(out, node+" is drained") {
				t.Errorf("another may restart: %s", out)
			}
			if out, err := c.fencepost(by, "node", "drain", node, "--wait", "--deadline", "2m"); c.exits(out, err, 0) != 0 {
				t.Fatalf("drain: %s", out)
			}
			d, err := c.client(by).Drain(c.ctx, node)
			if err != nil || d.State != api.DrainIdle || d.Leads || d.Claims != 0 || len(d.Tasks) != 0 {
				t.Errorf("drained: %+v, %v", d, err)
			}
		}
		p := c.proc(node)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if last { // it says so, and goes on with its backup
			c.until(node+" says that it stops", func() bool {
				m, err := c.client(by).MayRestart(c.ctx, by)
				return err == nil && slices.Contains(m.Why, node+" stops just now")
			})
		}
		select {
		case <-p.done:
		case <-c.ctx.Done():
			t.Fatalf("%s does not end", node)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s ended with %d", node, code)
		}
		c.start(node)
		c.ready(node)
		if out, err := c.fencepost(by, "node", "undrain", node); err != nil {
			t.Errorf("undrain: %s", out)
		}
	}
	for id := range made {
		if task := c.finishes("n1", id); task.Attempt != 1 {
			t.Errorf("task %s of %s: attempt %d", id, task.Database, task.Attempt)
		}
	}
	c.clean("n1", "a", "b")
}

// busyWith keeps a backup of each database going until the node works on one, whose task it returns.
func (c *cluster) busyWith(by, node string, made map[string]bool) (task string) {
	c.t.Helper()
	c.until(node+" makes a backup", func() bool {
		active, err := c.client(by).Tasks(c.ctx, api.TaskFilter{Active: true})
		if err != nil {
			return false
		}
		rest := map[string]bool{}
		for name := range c.dsns {
			rest[name] = true
		}
		for _, t := range active {
			delete(rest, t.Database)
			if t.Node == node && t.State != "planned" && t.Progress.Read < 1_000_000 {
				task = t.ID
			}
		}
		for name := range rest {
			t, err := c.client(by).CreateBackup(c.ctx, api.CreateBackup{Database: name})
			if err != nil {
				c.t.Fatal(err)
			}
			made[t.ID] = true
		}
		return task != ""
	})
	return task
}

// exits is the exit code of a command, which must be one of those.
func (c *cluster) exits(out string, err error, want ...int) int {
	c.t.Helper()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if !slices.Contains(want, code) {
		c.t.Fatalf("exit code %d, want %v: %s", code, want, out)
	}
	return code
}
