package age_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/pipeline/processor/age"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

// The public tool asks a terminal for passphrases, so it gets one.
func TestPassphrasesAndThePublicTool(t *testing.T) {
	const phrase = "correct horse battery"
	p := load(t, age.Files{Passphrase: file(t, phrase+"\n", 0o600)})
	content := processortest.Sample(100_000)
	path := func(name string) string { return filepath.Join(t.TempDir(), name) }
	ours, back, theirs, plain := path("ours"), path("back"), path("theirs"), path("plain")
	for name, b := range map[string][]byte{ours: processortest.Wrap(t, p, content), plain: content} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onTerminal(t, phrase+"\n", "age", "-d", "-o", back, ours)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the tool read %d bytes, %v", len(got), err)
	}
	onTerminal(t, phrase+"\n"+phrase+"\n", "age", "-p", "-o", theirs, plain)
	stored, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := processortest.Unwrap(p, bytes.NewReader(stored)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("from the tool: %d bytes, %v", len(got), err)
	}
}

// onTerminal runs a program whose controlling terminal has typed already.
func onTerminal(t *testing.T, typed, program string, args ...string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(master, typed); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %v: %v", program, args, err)
	}
	_ = slave.Close()
}
