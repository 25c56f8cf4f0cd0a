//go:build unix

package rpc

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startVictim runs the victim and says where it listens.
func startVictim(t *testing.T) (*exec.Cmd, ProbeTarget) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	cluster, gossip, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		t.Fatalf("the victim says %q", line)
	}
	return cmd, ProbeTarget{ClusterAddr: cluster, GossipAddr: gossip, Run: id16(8)}
}

// A process is killed while a session is open to it and from it: the break shows at once, the proof follows.
func TestKilledProcessIsProven(t *testing.T) {
	const kills = 20
	prober := newNode(t, "a", 1, newEcho())
	var took []time.Duration
	for range kills {
		cmd, target := startVictim(t)
		if v := (Prober{Identity: prober.identity(), Network: system{}}).Refused(t.Context(), target); v.Refused || !v.Alive {
			t.Fatalf("while it lives: %+v", v)
		}
		prober.mu.Lock()
		prober.where["v"] = target.ClusterAddr
		prober.mu.Unlock()
		client, err := prober.d.Client("v")
		if err != nil {
			t.Fatal(err)
		}
		session, err := client.Session(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Recv(); !Unanswered(err) {
			t.Fatalf("the session ended with %v", err)
		}
		v := Prober{Identity: prober.identity(), Network: system{}}.Refused(t.Context(), target)
		if !v.Refused {
			t.Fatalf("no proof: %+v", v)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("from kill -9 to the proof, %d times: median %v, worst %v", kills, took[kills/2], took[kills-1])
}

// A stopped process (a pause, not a death) refuses nothing.
func TestStoppedProcessIsNotProven(t *testing.T) {
	cmd, target := startVictim(t)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		t.Fatalf("the process has not stopped: %v, %v", state, err)
	}
	v := Prober{Identity: Identity{Group: "g", Node: "a"}, Network: system{}}.Refused(t.Context(), target)
	if v.Refused || v.Alive || !strings.Contains(v.Why, "cluster port") {
		t.Errorf("%+v", v)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if v := (Prober{Identity: Identity{Group: "g", Node: "a"}, Network: system{}}).Refused(t.Context(), target); !v.Alive {
		t.Errorf("after it goes on: %+v", v)
	}
}
