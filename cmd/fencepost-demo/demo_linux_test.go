package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// small is a demo for tests: the same story on a tenth of the data.
func small() size {
	return size{sample: 22 << 20, least: 20e6, rate: "3MiB", read: 9 << 20, stored: 1 << 20}
}

// daemon builds fencepostd.
func daemon(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fencepostd")
	if out, err := exec.Command("go", "build", "-o", file, "../fencepostd").CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	return file
}

// ground is a temporary directory for demos, which must be empty again at the end of the test.
func ground(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the server's user goes through it
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("something is left: %v", err)
		}
	})
	runtime.LockOSThread() // nodes die with the thread that started them
	t.Cleanup(runtime.UnlockOSThread)
}

// childless fails when a process of the test is left.
func childless(t *testing.T) {
	t.Helper()
	if left, err := family(os.Getpid()); err != nil || len(left) != 1 {
		t.Errorf("processes left: %+v, error %v", left, err)
	}
}

// TestDemo plays the whole of it.
func TestDemo(t *testing.T) {
	file := daemon(t)
	ground(t)
	var out bytes.Buffer
	d := &demo{options: options{size: small(), daemon: file}, out: newPrinter(&out)}
	if err := d.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"kill -9 of n", "fence raised by", "tombstone in far", "tombstone in near", "orphan adopted", "fence lowered", "at the fence", "attempt 2 completed", "equal to the original"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	childless(t)
}

// interrupter cancels when the output says a word: Ctrl-C at that moment.
type interrupter struct {
	at     string
	cancel context.CancelFunc
}

func (i interrupter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(i.at)) {
		i.cancel()
	}
	return len(b), nil
}

var _ io.Writer = interrupter{}

// TestInterrupted: whenever Ctrl-C comes, the demo says so and nothing is left.
func TestInterrupted(t *testing.T) {
	file := daemon(t)
	moments := []string{"a private PostgreSQL", "three nodes, each", "attempt 1"}
	if os.Getenv("FENCEPOST_LONG") != "" {
		moments = append(moments, "three nodes, a backup", "a sample database", "After the kill", "A follower dies", "What must hold", "one valid manifest")
	}
	for _, at := range moments {
		t.Run(at, func(t *testing.T) {
			ground(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := &demo{options: options{size: small(), daemon: file}, out: newPrinter(interrupter{at, cancel})}
			if err := d.run(ctx); err == nil || err.Error() != "interrupted" {
				t.Errorf("error %v, want interrupted", err)
			}
			childless(t)
		})
	}
}
