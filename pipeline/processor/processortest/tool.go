package processortest

import (
	"bytes"
	"os/exec"
	"testing"
)

// Tool runs a public program over in and returns what it writes; its failure ends the test. `make deps` installs the
// programs, so a machine without one fails, too: otherwise nothing would say that the question was not asked.
func Tool(t testing.TB, in []byte, program string, args ...string) []byte {
	t.Helper()
	out, diagnosis, err := TryTool(t, in, program, args...)
	if err != nil {
		t.Fatalf("%s %v: %v: %s", program, args, err, diagnosis)
	}
	return out
}

// TryTool is Tool for programs that may fail: it returns what the program wrote, what it said, and how it ended.
func TryTool(t testing.TB, in []byte, program string, args ...string) (out []byte, diagnosis string, err error) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("the public program %s is missing (make deps installs it): %v", program, err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = bytes.NewReader(in)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.Bytes(), stderr.String(), err
}
