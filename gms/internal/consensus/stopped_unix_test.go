//go:build unix

package consensus

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const sleeperLimit = 2 * time.Second

// sleeper is one write under watch, which ends with the next line of its input.
func sleeper() {
	w := newStallWatch(sleeperLimit, func() {})
	_ = w.during(func() error {
		fmt.Println("writing")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	})
	fmt.Println("stalled:", w.tripped.Load())
}

// TestAStoppedProcessHasNoStalledDisk: for how long a process did not run says nothing of its disk.
func TestAStoppedProcessHasNoStalledDisk(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sleeperEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer in.Close()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "writing" {
		t.Fatalf("the process says %q", lines.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	other := newStallWatch(2*sleeperLimit, func() { close(over) }) // one that is awake all the time
	_ = other.during(func() error { <-over; return nil })
	if _, err := in.Write([]byte("done\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "stalled: false" {
		t.Errorf("after a stop of twice the limit the process says %q", lines.Text())
	}
}
