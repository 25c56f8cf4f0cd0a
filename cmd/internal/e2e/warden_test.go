package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// nodeOf is the node process below a warden, 0 while there is none.
func (c *cluster) nodeOf(name string) int {
	parent := fmt.Sprint(c.proc(name).cmd.Process.Pid)
	for _, pid := range descendants(c.proc(name).cmd.Process.Pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if f[1] == parent && f[0] != "Z" {
			return pid
		}
	}
	return 0
}

// TestWardenStartsItsNodeAgain: only the node process is killed, in the middle of a backup. Its warden ends pg_dump, cleans
// up and starts the node again; the backup completes once, by attempt 2.
func TestWardenStartsItsNodeAgain(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, watched: true, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	owner := c.reaches("n1", task.ID, "uploading", sent).Node
	node := c.nodeOf(owner)
	dump := descendants(node)
	if len(dump) == 0 {
		t.Fatal("the node has no pg_dump")
	}
	killed := time.Now()
	if err := syscall.Kill(node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.until("another node process is there", func() bool { pid := c.nodeOf(owner); return pid != 0 && pid != node })
	t.Logf("kill -9 to the next node process: %v", time.Since(killed).Round(time.Millisecond))
	for _, pid := range dump {
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(data) > 0 {
			t.Errorf("after the next node process was started still lives %q", data)
		}
	}
	by := c.survivor(owner)
	if done := c.finishes(by, task.ID); done.Attempt != 2 {
		t.Errorf("completed by attempt %d", done.Attempt)
	}
	c.recovered(by)
	c.oneBackup(by)
	c.ready(owner)
}

// TestWardenIsKilled: its node goes on, and the next warden adopts it; a second one is refused meanwhile.
func TestWardenIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true})
	c.up()
	run(t, daemon, "--config", c.file("n1")).complains(t, 1, "home is in use")
	node := c.nodeOf("n1")
	status, err := c.client("n1").Status(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	warden := c.proc("n1")
	if err := warden.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-warden.done
	c.start("n1")
	c.until("the node was adopted", func() bool {
		log, err := os.ReadFile(warden.log)
		return err == nil && bytes.Contains(log, []byte("adopted the node"))
	})
	again, err := c.client("n1").Status(c.ctx)
	if err != nil || again.Run != status.Run {
		t.Errorf("run %s became %s, %v", status.Run, again.Run, err)
	}
	// In the end the adopted node stops with its new warden.
	c.end()
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", node)); err == nil && len(data) > 0 {
		t.Error("the adopted node outlived its warden")
	}
}

// TestWardenIsKilledInEachRole: the warden of a follower dies, then that of the leader. Each time a second warden was refused
// before, the group sees nothing of it, the next warden adopts the node; and when that node is killed, everything of its run is
// recovered once, by the others, whichever of them leads.
func TestWardenIsKilledInEachRole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, watched: true, profile: "patient", level: "info"})
	c.up()
	for _, leads := range []bool{false, true} {
		c.steady()
		leader := c.view("n1").Leader
		victim := leader
		if !leads {
			victim = c.survivor(leader)
		}
		by := c.survivor(victim)
		run(t, daemon, "--config", c.file(victim)).complains(t, 1, "home is in use")
		id, view, node := c.runOf(by, victim), c.view(by).Version, c.nodeOf(victim)
		warden, from := c.proc(victim), c.logSizes()[victim]
		if err := warden.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-warden.done
		c.start(victim)
		c.until("the node was adopted", func() bool {
			log, err := os.ReadFile(warden.log)
			return err == nil && bytes.Contains(log[from:], []byte("adopted the node"))
		})
		if v := c.view(by).Version; v != view || c.runOf(by, victim) != id {
			t.Errorf("%s lost its warden, and view %d became %d", victim, view, v)
		}
		if err := syscall.Kill(node, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.onceByOthers(by, victim, id)
	}
}

// onceByOthers waits until everything of a run is recovered, and checks that each component was released once, by a node that
// is not the dead one's.
func (c *cluster) onceByOthers(by, victim, run string) {
	c.t.Helper()
	var mine []api.Recovery
	c.until("the run of "+victim+" is recovered", func() bool {
		list, err := c.client(by).Recoveries(c.ctx)
		mine = nil
		for _, r := range list {
			if r.Run == run {
				mine = append(mine, r)
			}
		}
		return err == nil && len(mine) > 0 && !slices.ContainsFunc(mine, func(r api.Recovery) bool { return r.State != "released" })
	})
	leader, who := c.view(by).Leader, map[string]int{}
	for _, r := range mine {
		who[r.Recoverer]++
		released := 0
		for _, s := range r.Steps {
			if s.What == "released" {
				released++
			}
		}
		if released != 1 || r.Recoverer == victim {
			c.t.Errorf("%s was released %d times, in the end by %s: %+v", r.Component, released, r.Recoverer, r.Steps)
		}
	}
	if len(mine) < 2 {
		c.t.Errorf("recovered: %+v", mine)
	}
	c.t.Logf("%s was closed by %s; now %s leads, and they recovered: %v", victim, mine[0].Evidence, leader, who)
}

// TestEnvCommands: what the fencepost command says of a node's environment while its warden runs and afterwards.
func TestEnvCommands(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true})
	c.up()
	env := func(args ...string) said {
		return run(t, command, append([]string{"env", "--home", filepath.Join(c.dir, "n1")}, args...)...)
	}
	if s := env("verify"); s.code != 0 {
		t.Errorf("verify: %+v", s)
	}
	if s := env("slots"); s.code != 0 || !strings.Contains(s.out, "node") || !strings.Contains(s.out, "alive") {
		t.Errorf("slots: %+v", s)
	}
	if s := env("drain"); s.code != 3 {
		t.Errorf("drain below a warden: %+v", s)
	}
	before := c.nodeOf("n1")
	if s := env("fail", "--cause", "an operator says so"); s.code != 0 {
		t.Errorf("fail: %+v", s)
	}
	c.until("the node was started again", func() bool { pid := c.nodeOf("n1"); return pid != 0 && pid != before })
	c.ready("n1")
	if s := env("evidence"); s.code != 0 || !strings.Contains(s.out, "an operator says so") {
		t.Errorf("evidence: %+v", s)
	}
	c.end()
	if s := env("status"); s.code != 0 || !strings.Contains(s.out, "not open") {
		t.Errorf("status: %+v", s)
	}
	if s := env("seal"); s.code != 0 || !strings.Contains(s.out, "generation 3") {
		t.Errorf("seal: %+v", s)
	}
	if s := env("drain"); s.code != 0 {
		t.Errorf("drain: %+v", s)
	}
}
