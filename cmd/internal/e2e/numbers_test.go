package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestGroupRolledBack: all homes of a group are put back to a copy that is older than its last work. Storages and ledger have
// seen higher numbers than the group remembers: it begins nothing, says so and what to do, and after that command goes on
// with numbers above all that were ever given out.
func TestGroupRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database bool // keeps the ledger
		problem  string
	}{
		"storages":        {problem: "storage is ahead of the group"},
		"ledger database": {database: true, problem: "ledger: it has seen token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extra := ""
			if c.database {
				_, extra = ledgerIn(t)
			}
			g := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}, extra: extra})
			g.up()
			first := g.finishes("n1", g.backup("n1").ID)
			g.halt("n1")
			home := filepath.Join(g.dir, "n1")
			copied := g.copyHome("n1")
			g.start("n1")
			g.ready("n1")
			last := g.finishes("n1", g.backup("n1").ID)
			g.halt("n1")
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(copied, home); err != nil {
				t.Fatal(err)
			}

			g.start("n1")
			g.until("the status says what is wrong", func() bool {
				s, err := g.client("n1").Status(g.ctx)
				return err == nil && strings.Contains(strings.Join(s.Problems, "\n"), c.problem)
			})
			task := api.Task{}
			if !c.database { // without its ledger the node plans nothing either
				task = g.backup("n1")
				g.until("its claim was refused", func() bool {
					log, err := os.ReadFile(g.proc("n1").log)
					return err == nil && strings.Contains(string(log), "fencepost group rebase")
				})
				if now, err := g.client("n1").Task(g.ctx, task.ID); err != nil || now.State != "planned" || now.Token != 0 {
					t.Errorf("a task began: %+v, %v", now, err)
				}
			}
			if c.database {
				if out, err := g.fencepost("n1", "group", "rebase", "--why", "the homes are of last night"); err != nil || !strings.Contains(out, "numbers go on above") {
					t.Fatalf("rebase: %s%v", out, err)
				}
				g.ready("n1")
				task = g.backup("n1")
			} else {
				rehearsal{c: g}.follow("group-rolled-back")
			}
			done := g.finishes("n1", task.ID)
			if done.Token <= last.Token || last.Token <= first.Token {
				t.Errorf("tokens %d, %d and, after the rebase, %d", first.Token, last.Token, done.Token)
			}
			g.until("nothing is wrong any more", func() bool {
				s, err := g.client("n1").Status(g.ctx)
				return err == nil && len(s.Problems) == 0
			})
		})
	}
}

// halt stops a node as planned.
func (c *cluster) halt(name string) {
	c.t.Helper()
	p := c.proc(name)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-c.ctx.Done():
		c.t.Fatalf("%s does not end", name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.procs, name)
}

// copyHome copies the home of a node that does not run, and returns where to.
func (c *cluster) copyHome(name string) string {
	c.t.Helper()
	to := filepath.Join(c.dir, name+".copy")
	if err := os.CopyFS(to, os.DirFS(filepath.Join(c.dir, name))); err != nil {
		c.t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error { // CopyFS adds rights, and keys must have none
		if err != nil {
			return err
		}
		from, statErr := os.Stat(filepath.Join(c.dir, name, strings.TrimPrefix(path, to)))
		if statErr != nil {
			return statErr
		}
		return os.Chmod(path, from.Mode().Perm())
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return to
}
