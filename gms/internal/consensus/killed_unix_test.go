//go:build unix

package consensus

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// What was answered is there after any number of kills.
func TestDiskSurvivesKills(t *testing.T) {
	dir := t.TempDir()
	var answered []string
	for round := range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if strings.HasPrefix(lines.Text(), "failed") {
				t.Error(lines.Text())
			}
			answered = append(answered, lines.Text())
			if n == 50+20*round {
				_ = cmd.Process.Signal(syscall.SIGKILL) // the lines that are still in the pipe count too
			}
		}
		_ = cmd.Wait() // it was killed
	}
	c := newCluster(t).onDisk()
	c.dirs["a"] = dir
	defer c.stop()
	c.start("a")
	c.leader("a")
	c.applied(c.propose("a", "end"), "a")
	have := map[string]int{}
	for i, entry := range strings.Split(c.tapes["a"].String(), ",") {
		have[entry] = i + 1
	}
	last := 0
	for _, entry := range answered {
		if have[entry] <= last {
			t.Fatalf("%s was answered and is lost or out of order (of %d)", entry, len(answered))
		}
		last = have[entry]
	}
	t.Logf("%d answered entries survived", len(answered))
}
