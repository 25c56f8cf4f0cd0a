package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestObituaryClosesAtOnce: with evidence "refused" switched off and the next node process kept from standing (its
// configuration is spoiled), only the warden's word closes a run before its lease of a minute has run out. Each node has
// its turn, the leader among them.
func TestObituaryClosesAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, watched: true, profile: "patient", extra: "evidence: {refused: false}\n"})
	c.up()
	for _, name := range c.names {
		by := c.survivor(name)
		run := c.runOf(by, name)
		c.until(name+" remembers where the others are", func() bool {
			data, err := os.ReadFile(filepath.Join(c.dir, name, "group.json"))
			return err == nil && strings.Count(string(data), ": \"127.0.0.1:") == 4
		})
		good, err := os.ReadFile(c.file(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.file(name), []byte("nonsense: true\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(c.nodeOf(name), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var closed api.Recovery
		c.until("the run of "+name+" is recovered", func() bool {
			list, err := c.client(by).Recoveries(c.ctx)
			if err != nil {
				return false
			}
			for _, r := range list {
				if r.Run == run && r.State == "released" {
					closed = r
					return true
				}
			}
			return false
		})
		if closed.Evidence != "obituary" {
			t.Errorf("%s was closed by %s", name, closed.Evidence)
		}
		<-c.proc(name).done // its warden gives up
		if err := os.WriteFile(c.file(name), good, 0o600); err != nil {
			t.Fatal(err)
		}
		c.start(name)
		c.ready(name)
	}
}

// runOf is the run of a node in the present view.
func (c *cluster) runOf(by, node string) (run string) {
	c.t.Helper()
	c.until(node+" is in the view", func() bool {
		for _, m := range c.view(by).Members {
			if m.Node == node {
				run = m.Run
				return true
			}
		}
		return false
	})
	return run
}
