//go:build unix

package component

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const patience = time.Minute

// run runs a shell script as work, and waits for its end.
func run(t *testing.T, ctx context.Context, script string) (Report, error) {
	t.Helper()
	work, err := Exec{Path: "/bin/sh", Args: []string{"-c", script}}.Start(ctx, Job{
		Component: "c", Item: Item{Type: "batch", ID: "b1", RoundTrip: 2}, Token: 77, Attempt: 3,
		Deadline: time.Date(2026, 5, 2, 10, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return wait(t, work)
}

func wait(t *testing.T, work Work) (report Report, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { report, err = work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the work does not end")
	}
	return report, err
}

func TestExecReports(t *testing.T) {
	for _, c := range []struct {
		name, script string
		outcome      Outcome // "" for an error without a report
		err          string  // part of it
	}{
		{"no report, exit code 0", `true`, "", ""},
		{"report", `echo '{"outcome":"done"}' >&3`, Done, ""},
		{"descriptor by its name", `eval "echo '{\"outcome\":\"failed\"}' >&$WORK_REPORT_FD"`, Failed, ""},
		{"exit code", `echo sorry >&2; exit 3`, "", "exit code 3: sorry"},
		{"exit code beats the report", `echo '{"outcome":"done"}' >&3; exit 3`, Done, "exit code 3"},
		{"signal", `kill -9 $$`, "", "signal: killed"},
		{"not JSON", `echo done >&3`, "", "read report"},
		{"cut report", `printf '{"outcome":"do' >&3`, "", "unexpected end of JSON"},
		{"unknown outcome", `echo '{"outcome":"fine"}' >&3`, "", "want done or failed"},
		{"too long", `head -c 2000000 /dev/zero | tr '\0' ' ' >&3; echo '{}' >&3`, "", "longer than"},
		{"input is not read", `exec <&-; true`, "", ""},
		{"last lines only, printable", `for i in 1 2 3 4 5 6 7 8 9 a b c; do printf "line \033$i\n"; done; exit 1`, "", "exit code 1: line  3 | "},
		{"no such program", `exec /does/not/exist`, "", "exit code 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := run(t, t.Context(), c.script)
			if report.Outcome != c.outcome {
				t.Errorf("report: %+v", report)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestExecGetsItemAndEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_DAEMON", "x")
	out := filepath.Join(t.TempDir(), "out")
	if _, err := run(t, t.Context(), `{ cat; echo; env; } > `+out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	first, env, _ := strings.Cut(string(text), "\n")
	var it Item
	if err := json.Unmarshal([]byte(first), &it); err != nil || it.ID != "b1" || it.RoundTrip != 2 {
		t.Errorf("input %q: %+v, %v", first, it, err)
	}
	for _, want := range []string{"WORK_COMPONENT=c", "WORK_ITEM=b1", "WORK_TOKEN=77", "WORK_ATTEMPT=3", "WORK_DEADLINE=2026-05-02T10:00:00Z"} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("environment lacks %s", want)
		}
	}
	if strings.Contains(env, "SECRET") {
		t.Error("the daemon's environment is inherited")
	}
}

// started starts a script that prints a line when it is ready; the pipe ends when all that inherited it are gone.
func started(t *testing.T, ctx context.Context, script string) (Work, *bufio.Reader) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "alive")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	work, err := Exec{Path: "/bin/sh", Args: []string{"-c", "exec 9>" + fifo + "; " + script}}.Start(ctx, Job{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	alive := bufio.NewReader(f)
	if line, err := alive.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the script says %q, %v", line, err)
	}
	return work, alive
}

func TestExecEndsPolitely(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	work, _ := started(t, ctx, `trap 'echo "{\"outcome\":\"failed\",\"preservable\":false}" >&3; exit 0' TERM; echo ready >&9; while :; do sleep 0.01; done`)
	cancel()
	if report, err := wait(t, work); err != nil || !report.Unpreservable {
		t.Errorf("after SIGTERM: %+v, %v", report, err)
	}
}

func TestExecIsKilledAsAGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	work, alive := started(t, ctx, `trap '' TERM; (trap '' TERM; while :; do sleep 60; done) & echo ready >&9; while :; do sleep 60; done`)
	cancel() // deaf to it
	work.Kill()
	_, err := wait(t, work)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.State != "signal: killed" {
		t.Errorf("after Kill: %v", err)
	}
	if _, err := alive.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("somebody of the group lives: %v", err)
	}
	work.Kill() // too late, and harmless
}

func TestExecWaitsForTheWholeGroup(t *testing.T) {
	work, alive := started(t, t.Context(), `(while :; do sleep 60; done) & echo ready >&9; exit 0`)
	if _, err := wait(t, work); err != nil {
		t.Errorf("exit code 0: %v", err)
	}
	if _, err := alive.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("what the child left behind lives after Wait: %v", err)
	}
}

// A child dies and says nothing.
func TestFaultChildDiesSilently(t *testing.T) {
	w := newWorld()
	w.add(numbered(1)...)
	cfg, _ := w.boot("n1").config("c", nil)
	cfg.Worker = Exec{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}}
	tick := mustRunner(t, cfg).RunOnce(t.Context())
	if tick.Failed != 1 || tick.Code() != ExitFailed {
		t.Errorf("tick: %+v", tick)
	}
	if got := w.events("i000", "c"); len(got) != 1 || got[0] != "child process: signal: killed" {
		t.Errorf("events: %q", got)
	}
	if held := w.claimed(); len(held) > 0 {
		t.Errorf("claims left: %v", held)
	}
}

// TestExecTimeLimit: the whole way with a real process that is deaf.
func TestExecTimeLimit(t *testing.T) {
	w := newWorld()
	w.add(numbered(1)...)
	cfg, _ := w.boot("n1").config("c", nil)
	cfg.Worker = Exec{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 60; done"}}
	cfg.Limit, cfg.Grace, cfg.Proof = 50*time.Millisecond, 50*time.Millisecond, patience
	if tick := mustRunner(t, cfg).RunOnce(t.Context()); tick.Failed != 1 {
		t.Errorf("tick: %+v", tick)
	}
	if got := w.events("i000", "c"); len(got) != 1 || !strings.HasPrefix(got[0], "it did not end within its time limit") {
		t.Errorf("events: %q", got)
	}
}
