package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// withClock is a fencepostd whose clock is off by what the file says, "1h", while there is one.
func (c *cluster) withClock(file string) (program string) {
	c.t.Helper()
	dir := c.t.TempDir()
	build := exec.CommandContext(c.ctx, "go", "build", "-tags", "chaos", "-o", filepath.Join(dir, "off"), "../../fencepostd")
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("build: %v\n%s", err, out)
	}
	program = filepath.Join(dir, "fencepostd")
	text := fmt.Sprintf("#!/bin/sh\nCHAOS_CLOCK=%s exec %s \"$@\"\n", file, filepath.Join(dir, "off"))
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		c.t.Fatal(err)
	}
	return program
}

// trouble is what a node says of another one in its list of members; empty when it says nothing, or does not answer.
func (c *cluster) trouble(by, node string) string {
	list, err := c.client(by).Members(c.ctx)
	if err != nil {
		return ""
	}
	for _, m := range list {
		if m.Node == node {
			return m.Problem
		}
	}
	return ""
}

// TestDaysOfClocksAndCertificates: the clock of a node is an hour ahead, nothing is pruned meanwhile, and it is put right; the certificate of a node runs out,
// is named, and is renewed without a restart. As the pages say.
func TestDaysOfClocksAndCertificates(t *testing.T) {
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("long test: set FENCEPOST_LONG=1 (a clock is moved, and a certificate runs out)")
	}
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lasting: 8 * time.Minute, dsns: map[string]string{"shop": database(t, bulk("goods", 1))},
		extra: "backup: {delete_delay: 0s, require: any}\nretention:\n- {database: shop, last: 1, unverified: true, max_percent: 100}\n"})
	clock := filepath.Join(t.TempDir(), "clock")
	off := c.withClock(clock)
	c.start("n1", "n2")
	c.startAs(off, "n3")
	for _, name := range c.names {
		c.ready(name)
	}

	c.finishes("n1", c.backup("n1").ID)

	t.Log("the clock of n3 is an hour ahead")
	if err := os.WriteFile(clock, []byte("1h"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.problem("n3", "clock")
	prune := func(node string, args ...string) string {
		return run(t, command, append([]string{"--socket", c.socket(node), "prune", "shop"}, args...)...).out
	}
	for _, name := range c.names {
		c.until(name+" would prune nothing", func() bool { return strings.Contains(prune(name), "nothing goes: wrong clock") })
	}
	c.finishes("n3", c.backup("n3").ID)
	c.looked("shop")
	c.backups("n1", 2)
	right := func() {
		if err := os.Remove(clock); err != nil {
			t.Fatal(err)
		}
	}
	rehearsal{c: c, hands: map[string]func(){"timedatectl set-ntp true": right}}.follow("clock-wrong")
	c.until("nothing is said of n3's clock", func() bool {
		s, err := c.client("n3").Status(c.ctx)
		return err == nil && !strings.Contains(strings.Join(s.Problems, "\n"), "clock")
	})

	for _, name := range c.names {
		c.until(name+" would prune", func() bool { return !strings.Contains(prune(name), "wrong clock") })
	}
	prune("n1", "--confirm") // by itself it looks again later: as often as it was held up, the longer it waits
	c.until("one backup is left", func() bool { n, err := c.good("n1"); return err == nil && n == 1 })

	t.Log("the certificate of n3 runs out")
	if c.view("n1").Leader == "n3" { // it is to ask another one
		c.kill("n3")
		c.until("another one leads", func() bool { l := c.view("n1").Leader; return l != "" && l != "n3" })
		c.startAs(off, "n3")
		c.ready("n3")
	}
	leader := c.view("n1").Leader
	by := c.survivor("n3", leader)
	out := time.Now().Add(time.Minute) // no shorter one is made
	if _, err := offline.RenewCert(c.dir, "n3", time.Minute); err != nil {
		t.Fatal(err)
	}
	c.until("it has run out", func() bool { return time.Since(out) > time.Second })
	c.kill(leader) // whoever leads next has to be greeted
	c.start(leader)
	c.until("n3 is named, with its certificate", func() bool { return strings.Contains(c.trouble(by, "n3"), "expired") })
	t.Logf("%s says of n3: %s", by, c.trouble(by, "n3"))
	node := c.proc("n3").cmd.Process.Pid
	rehearsal{c: c}.follow("certificate-out")
	c.until("n3 is back", func() bool {
		s, err := c.client("n3").Status(c.ctx)
		return err == nil && s.Ready && s.Lease == "held" && c.trouble(by, "n3") == ""
	})
	if c.proc("n3").cmd.Process.Pid != node || len(c.running()) != 3 {
		t.Error("a node was started again")
	}
	c.finishes(by, c.backup(by).ID)
}
