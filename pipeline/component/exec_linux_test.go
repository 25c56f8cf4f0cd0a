package component

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// parentEnv makes this test binary a parent that starts work and waits: its value is the script.
const parentEnv = "COMPONENT_TEST_PARENT"

func TestMain(m *testing.M) {
	script := os.Getenv(parentEnv)
	if script == "" {
		os.Exit(m.Run())
	}
	work, err := Exec{Path: "/bin/sh", Args: []string{"-c", script}}.Start(context.Background(), Job{})
	if err == nil {
		_, err = work.Wait()
	}
	if err != nil {
		os.Exit(1)
	}
}

// The parent dies and its children live on.
func TestFaultParentDies(t *testing.T) {
	dir := t.TempDir()
	alive, never := filepath.Join(dir, "alive"), filepath.Join(dir, "never")
	if out, err := exec.Command("mkfifo", alive, never).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	t.Cleanup(func() { // a child that lives on after all ends now
		if f, err := os.OpenFile(never, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentEnv+"=exec 9>"+alive+"; echo ready >&9; read x <"+never)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader := bufio.NewReader(f)
	if line, err := reader.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	ended := make(chan error, 1)
	go func() {
		_, err := reader.ReadByte() // returns only when all that had the pipe have ended
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, io.EOF) {
			t.Errorf("read from the child: %v", err)
		}
	case <-time.After(patience):
		t.Error("the child lives on")
	}
}

func TestInGroup(t *testing.T) {
	for stat, want := range map[string]bool{
		"12 (sh) S 1 77 77 0":          true,
		"12 (sh) Z 1 77 77 0":          false, // buried by somebody else some day
		"12 (sh) S 1 78 77 0":          false,
		"12 (a) S 1 77 (b) R 1 5 77 0": false, // a name may contain anything
		"12 (sh)":                      false,
		"":                             false,
	} {
		if got := inGroup([]byte(stat), 77); got != want {
			t.Errorf("%q: %v", stat, got)
		}
	}
	if !groupLives(syscall.Getpgrp()) {
		t.Error("the group of this process does not live")
	}
	if groupLives(1<<22 + 1) { // no process has such a number
		t.Error("a group that cannot be lives")
	}
}
