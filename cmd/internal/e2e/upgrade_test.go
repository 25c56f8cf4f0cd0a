package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// nextTag makes the build that stands for the next version: it reads protocol 2, and knows a log command and a migration of the
// ledger that belong to it.
const nextTag = "fencepost_next"

// nextDaemon is the daemon of the next version, built once.
var nextDaemon = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(daemon), "fencepostd-next")
	cmd := exec.Command("go", "build", "-tags", nextTag, "-ldflags", "-X main.version=v2", "-o", program, "../../fencepostd")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return program, nil
})

// rehearsals is the table that the next version's migration makes: where it is, or nothing.
const rehearsals = `SELECT COALESCE(to_regclass('fencepost_ledger.rehearsal')::text, '')`

// reinstall stops a node in order and starts it with another program.
func (c *cluster) reinstall(name, program string) {
	c.t.Helper()
	c.ends(name)
	c.startAs(program, name)
	c.ready(name)
}

// ends stops a node in order.
func (c *cluster) ends(name string) {
	c.t.Helper()
	p := c.proc(name)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	<-p.done
	c.mu.Lock()
	delete(c.procs, name)
	c.mu.Unlock()
}

// logged tells whether a node has logged a line with all the words.
func (c *cluster) logged(name string, words ...string) bool {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
lines:
	for line := range bytes.Lines(text) {
		for _, w := range words {
			if !bytes.Contains(line, []byte(w)) {
				continue lines
			}
		}
		return true
	}
	return false
}

// anyLogged is logged, of any node.
func (c *cluster) anyLogged(words ...string) bool {
	for _, name := range c.names {
		if c.logged(name, words...) {
			return true
		}
	}
	return false
}

const laterCommand = "the later command was given"

// TestUpgrade: three nodes get the next version one after the other, and work on in every mixture; what only the next version
// understands, in the log, in the ledger and in the group's settings, is not there before the upgrade is finalized, though its leader tries. Then
// all have it, nothing is lost, and a node of the old version is refused with a line that says why, until it has the new one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	led, extra := ledgerIn(t)
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: extra})
	c.up()
	next, err := nextDaemon()
	if err != nil {
		t.Fatalf("build the next version: %v\n%s", err, next)
	}
	made := map[string]bool{}
	backup := func(by string) {
		t.Helper()
		made[c.finishes(by, c.backup(by).ID).Backup] = true
	}
	upgrade := func(by string) api.Upgrade {
		t.Helper()
		u, err := c.client(by).Upgrade(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	later := api.Setting{Kind: "approval", Name: "rehearsal", Spec: json.RawMessage(`{"name":"rehearsal"}`)}
	backup("n1")
	if u := upgrade("n1"); u.Protocol != 1 || u.Next != 1 {
		t.Errorf("before the upgrade: %+v", u)
	}
	for i, name := range c.names {
		c.reinstall(name, next)
		backup(name)
		if i == len(c.names)-1 {
			break
		}
		if out, err := c.fencepost(name, "upgrade", "finalize"); c.exits(out, err, 3) == 3 && !strings.Contains(out, c.names[i+1]+" runs ") {
			t.Errorf("finalized too early: %s", out)
		}
		if _, err := c.client(name).SetSetting(c.ctx, later); err == nil || !strings.Contains(err.Error(), "it came with protocol 2, and the group writes 1 still") {
			t.Errorf("a setting that the older programs do not understand was taken: %v", err)
		}
		known := api.Setting{Kind: "rule", Name: "member", Spec: json.RawMessage(fmt.Sprintf(`{"name":"member","repeat":"%dh"}`, i+1))}
		if _, err := c.client(name).SetSetting(c.ctx, known); err != nil {
			t.Errorf("a setting that all understand: %v", err)
		}
		if _, err := c.client(c.names[i+1]).PlanSettings(c.ctx, api.ApplySettings{Settings: []api.Setting{known}}); err != nil {
			t.Errorf("%s, which is older, does not understand what %s has kept: %v", c.names[i+1], name, err)
		}
		if out, err := c.fencepost(name, "status"); err != nil || !strings.Contains(out, "2 versions run") {
			t.Errorf("nothing says that there are two versions: %s", out)
		}
	}
	c.reinstall("n3", daemon) // until it is finalized there is a way back
	backup("n3")
	c.reinstall("n3", next)
	c.until("a leader of the next version has tried its command", func() bool {
		return c.anyLogged(laterCommand, "CODE_UNKNOWN_COMMAND")
	})
	if c.anyLogged(laterCommand, "CODE_OK") || entries(t, led, rehearsals) != "" {
		t.Error("what only the next version understands is there before all agreed on it")
	}

	if out, err := c.fencepost("n2", "upgrade", "finalize"); err != nil || !strings.Contains(out, "protocol:  2") {
		t.Fatalf("finalize: %v, %s", err, out)
	}
	if out, err := c.fencepost("n2", "upgrade", "finalize"); c.exits(out, err, 1) == 1 && !strings.Contains(out, "nothing to finalize") {
		t.Errorf("finalized twice: %s", out)
	}
	if _, err := c.client("n2").SetSetting(c.ctx, later); err != nil {
		t.Errorf("a setting of the version that all have now: %v", err)
	}
	for _, name := range c.names {
		c.until(name+" knows that the upgrade is finalized", func() bool { return upgrade(name).Protocol == 2 })
	}
	c.until("the command of the next version is in the log", func() bool { return c.anyLogged(laterCommand, "CODE_OK") })
	c.until("the ledger has the migration of the next version", func() bool { return entries(t, led, rehearsals) != "" })

	c.ends("n3")
	c.start("n3") // the old version
	old := c.proc("n3")
	select {
	case <-old.done:
	case <-c.ctx.Done():
		t.Fatal("a node that is too old goes on")
	}
	if words := c.words("n3"); old.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(words, "the group writes protocol 2, and this program reads up to 1") || !strings.Contains(words, "hint: install the version") {
		t.Errorf("a node that is too old ends with %d and %s", old.cmd.ProcessState.ExitCode(), words)
	}
	backup("n1")
	c.startAs(next, "n3")
	c.ready("n3")
	backup("n3")
	list, err := c.client("n3").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != len(made) {
		t.Errorf("%d backups are there, %d were made; %v", len(list), len(made), err)
	}
	c.clean("n3", "a", "b")
}

// words are what a node has said to people, beside its log.
func (c *cluster) words(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "{") {
			words = append(words, line)
		}
	}
	return strings.Join(words, "")
}
