package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// TestHomesThatAreNotTheNodes: a machine is replaced under its old name, and the old one comes back; a home is copied to a second
// machine while the first one runs. Each is refused by name and with its remedy, harms nobody, and the remedy heals it.
func TestHomesThatAreNotTheNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}})
	c.up()

	t.Log("the machine of n3 is lost, and replaced")
	c.kill("n3")
	old := c.home("n3") + ".old"
	if err := os.Rename(c.home("n3"), old); err != nil {
		t.Fatal(err)
	}
	c.until("the dead run is closed", func() bool { return len(c.view("n1").Members) == 2 })
	run(t, daemon, "--config", c.file("n3"), "--no-warden").complains(t, 1, "another home", "node replace n3")
	rehearsal{c: c}.follow("machine-replaced")
	c.votes("n3")
	c.halt("n3")
	c.swap("n3", old)
	run(t, daemon, "--config", c.file("n3"), "--no-warden").complains(t, 1, "given this home up", "home reset")
	c.swap("n3", old)

	t.Log("the home of n3 is put back to a copy")
	copied := c.copyHome("n3")
	c.start("n3")
	c.votes("n3")
	c.finishes("n1", c.backup("n1").ID)
	c.halt("n3")
	c.swap("n3", copied)
	c.start("n3")
	<-c.proc("n3").done
	if words := lastLine(string(c.logOf("n3"))); !strings.Contains(words, "home") {
		t.Errorf("n3 with an older home says %s", words)
	}
	rehearsal{c: c}.follow("home-refused")
	c.votes("n3")

	t.Log("the home of n2 is copied to a second machine")
	c.halt("n2")
	copied = c.copyHome("n2")
	c.start("n2")
	c.ready("n2")
	before, err := c.client("n2").Status(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	twin := newCluster(t, options{nodes: 3}) // other ports and homes, the same names
	data, err := os.ReadFile(c.file("n2"))
	if err != nil {
		t.Fatal(err)
	}
	second := strings.ReplaceAll(string(data), c.home("n2")+"\n", copied+"\n")
	for _, what := range []string{"n2/gossip", "n2/cluster"} {
		second = strings.ReplaceAll(second, portOf(c, what), portOf(twin, what))
	}
	second = strings.ReplaceAll(second, c.socket("n2"), twin.socket("n2"))
	if err := os.WriteFile(twin.file("n2"), []byte(second), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, daemon, "--config", twin.file("n2"), "--no-warden").complains(t, 1, "another copy of this home", "home reset")
	if now, err := c.client("n2").Status(c.ctx); err != nil || now.Run != before.Run {
		t.Errorf("n2 had run %s, and has %s, %v", before.Run, now.Run, err)
	}

	t.Log("the second machine is given a name of its own, with an empty home")
	if s := run(t, daemon, "home", "reset", "--config", twin.file("n2")); s.code != 0 || !strings.Contains(s.out, "is empty") {
		t.Errorf("%+v", s)
	}
	run(t, daemon, "--config", twin.file("n2"), "--no-warden").complains(t, 1, "n2")
	if now, err := c.client("n2").Status(c.ctx); err != nil || now.Run != before.Run {
		t.Errorf("n2 had run %s, and has %s, %v", before.Run, now.Run, err)
	}
	c.newcomer("n4", copied)
	c.ready("n4")
	c.until("all see four", func() bool { return len(c.view("n1").Members) == 4 && len(c.view("n4").Members) == 4 })

	c.finishes("n2", c.backup("n2").ID)
	c.finishes("n4", c.backup("n4").ID)
	c.recovered("n1")

	t.Log("n3 is gone for good")
	c.kill("n3")
	c.until("the dead run is closed", func() bool { return len(c.view("n1").Members) == 3 })
	rehearsal{c: c}.follow("node-dead")
}

// newcomer starts a node more, as node add has it made, in a home that is there.
func (c *cluster) newcomer(name, home string) {
	c.t.Helper()
	founders := strings.Join(c.names, ", ")
	c.names = append(c.names, name)
	c.ports[name+"/gossip"], c.ports[name+"/cluster"] = freePort(c.t), freePort(c.t)
	_, err := offline.IssueCert(c.dir, "fencepost", name, offline.NodeValid)
	c.write(name, "lan", "log: {level: debug, format: json}\n")
	text, read := os.ReadFile(c.file(name))
	own := strings.Replace(string(text), "bootstrap: ["+founders+", "+name+"]\n", "", 1)
	if err := errors.Join(err, read, os.WriteFile(c.file(name), []byte(own), 0o600), os.Rename(home, c.home(name))); err != nil {
		c.t.Fatal(err)
	}
	c.start(name)
}

// votes waits until a node is ready, and votes.
func (c *cluster) votes(node string) {
	c.t.Helper()
	c.ready(node)
	c.until(node+" votes", func() bool {
		v, err := c.client("n1").View(c.ctx)
		if err != nil {
			return false
		}
		for _, m := range v.Members {
			if m.Node == node {
				return m.Voter
			}
		}
		return false
	})
}

// swap exchanges the home of a node that does not run with another directory.
func (c *cluster) swap(node, with string) {
	c.t.Helper()
	aside := filepath.Join(c.dir, node+".aside")
	for _, r := range [][2]string{{c.home(node), aside}, {with, c.home(node)}, {aside, with}} {
		if err := os.Rename(r[0], r[1]); err != nil {
			c.t.Fatal(err)
		}
	}
}
