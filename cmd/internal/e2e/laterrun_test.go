package e2e

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestObituaryOfALaterRun: a node that was stopped for longer than its lease stands as another run afterwards; killed then, it
// is closed by its warden's word about that run. Silence would take three TTLs, and refusals are switched off.
func TestObituaryOfALaterRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, watched: true, extra: "evidence: {refused: false}\n"})
	c.up()
	victim, by := "n3", "n1"
	first, node := c.runOf(by, victim), c.nodeOf(victim)
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(node, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	c.until("its run is closed", func() bool { return c.evidence(by, first) != "" })
	signal(syscall.SIGCONT)
	c.ready(victim)
	second := c.runOf(by, victim)
	if second == first || c.nodeOf(victim) != node {
		t.Fatalf("run %s of process %d became %s of %d", first, node, second, c.nodeOf(victim))
	}
	if err := os.WriteFile(c.file(victim), []byte("nonsense: true\n"), 0o600); err != nil { // the next process does not stand
		t.Fatal(err)
	}
	signal(syscall.SIGKILL)
	c.until("the second run is closed", func() bool { return c.evidence(by, second) != "" })
	if got := c.evidence(by, second); got != "obituary" {
		t.Errorf("the second run was closed by %s", got)
	}
}

// evidence is what a recovery of the run says of why it was closed; empty when there is none.
func (c *cluster) evidence(by, run string) string {
	list, err := c.client(by).Recoveries(c.ctx)
	if err != nil {
		return ""
	}
	for _, r := range list {
		if r.Run == run {
			return r.Evidence
		}
	}
	return ""
}

// TestHangUp: SIGHUP to the process that the service manager knows has the node read its configuration again; a wrong one
// changes nothing, and ends nobody.
func TestHangUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true})
	c.up()
	node := c.nodeOf("n1")
	good, err := os.ReadFile(c.file("n1"))
	if err != nil {
		t.Fatal(err)
	}
	reread := func(text, said string) {
		t.Helper()
		if err := os.WriteFile(c.file("n1"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(c.proc("n1").log)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.proc("n1").cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		c.until("the node says "+said, func() bool {
			log, err := os.ReadFile(c.proc("n1").log)
			return err == nil && bytes.Contains(log[before.Size():], []byte(said))
		})
	}
	reread("nonsense: true\n", "the old one stays")
	quiet := strings.Replace(string(good), "level: debug", "level: info", 1)
	reread(quiet, `"applied":"log.level"`)
	reread(strings.Replace(quiet, "profile: lan", "profile: wan", 1), "restart it to apply the rest")
	if c.nodeOf("n1") != node {
		t.Error("the node was started again")
	}
	c.ready("n1")
}
