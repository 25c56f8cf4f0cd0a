package home

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain: the test binary is also the processes that the tests let join, told by an environment variable what to be.
func TestMain(m *testing.M) {
	if role := os.Getenv("HOME_TEST_ROLE"); role != "" {
		if err := play(role); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func play(role string) error {
	cfg := Config{Dir: os.Getenv("HOME_TEST_DIR")}
	if role == "hold" { // whoever got a descriptor
		fmt.Println("holding")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	seat, err := Join(context.Background(), cfg, JoinOptions{ReadOnly: role == "reader", Label: role, Run: "r1"})
	if err != nil {
		return err
	}
	fmt.Println("in")
	if role == "heir" { // gives its lock to a child and lives on
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "HOME_TEST_ROLE=hold")
		child.ExtraFiles = []*os.File{seat.lock.f}
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		if err := child.Start(); err != nil {
			return err
		}
	}
	gone := make(chan struct{})
	if role != "heir" {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(gone) }()
	}
	select {
	case <-seat.Failed():
		err := seat.Check()
		fmt.Println("failed:", errors.Is(err, ErrRunRecovery), err)
		if role == "stubborn" {
			select {}
		}
	case <-gone:
	}
	return seat.Close()
}

// actor is a process of a test.
type actor struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, dir, role string) *actor {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOME_TEST_ROLE="+role, "HOME_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
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
	a := &actor{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	a.expect("in")
	return a
}

func (a *actor) line() string {
	a.t.Helper()
	if !a.lines.Scan() {
		a.t.Fatalf("the process said nothing more: %v", a.lines.Err())
	}
	return a.lines.Text()
}

func (a *actor) expect(prefix string) string {
	a.t.Helper()
	line := a.line()
	if !strings.HasPrefix(line, prefix) {
		a.t.Fatalf("the process said %q, want %q", line, prefix)
	}
	return line
}

func (a *actor) signal(s os.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
}

// kill is kill -9, and returns when the process is gone.
func (a *actor) kill() { a.signal(os.Kill); _ = a.cmd.Wait() }

// leave lets the process leave in order.
func (a *actor) leave() {
	a.t.Helper()
	_ = a.in.Close()
	if err := a.cmd.Wait(); err != nil {
		a.t.Fatal(err)
	}
}

// config is an environment in a directory of its own.
func config(t *testing.T) Config {
	return Config{Dir: t.TempDir(), Seats: 24, DrainFor: 50 * time.Millisecond, KillFor: 10 * time.Second}
}

// kept is a sealed environment with its keeper.
func kept(t *testing.T, cfg Config) *Keeper {
	t.Helper()
	k, err := Take(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	recovered(t, k, "first start")
	return k
}

func recovered(t *testing.T, k *Keeper, cause string) uint64 {
	t.Helper()
	gen, err := k.Recover(t.Context(), cause)
	if err != nil {
		t.Fatal(err)
	}
	return gen
}

func join(t *testing.T, cfg Config, o JoinOptions) *Seat {
	t.Helper()
	s, err := Join(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got %v, want %v", err, target)
	}
}

// causeIs checks that err is ErrRunRecovery with that cause.
func causeIs(t *testing.T, err error, cause string) {
	t.Helper()
	var failed *RunRecoveryError
	if !errors.As(err, &failed) || !errors.Is(err, ErrRunRecovery) || !strings.Contains(failed.Cause, cause) {
		t.Fatalf("got %v, want ErrRunRecovery because %q", err, cause)
	}
}

// within waits for a condition that another process makes true.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
