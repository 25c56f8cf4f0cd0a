package zstd_test

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

// tool runs the public zstd program over in. A machine without it cannot answer the question, so the test is skipped;
// the tests beside it do not depend on the program.
func tool(t *testing.T, in []byte, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("the public zstd program is not installed (Debian: zstd)")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = bytes.NewReader(in)
	var out, diagnosis bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnosis
	if err := cmd.Run(); err != nil {
		t.Fatalf("zstd %v: %v: %s", args, err, diagnosis.String())
	}
	return out.Bytes()
}

func TestThePublicToolReadsWhatWrapWrites(t *testing.T) {
	for level := 1; level <= 4; level++ {
		p, err := zstd.New(zstd.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 10, 5 << 20} {
			data := sample(n)
			stored := compress(t, p, data)
			if got := tool(t, stored, "-d", "-q", "-c"); !bytes.Equal(got, data) {
				t.Errorf("level %d: %d of %d bytes came back", level, len(got), n)
			}
		}
	}
}

func TestUnwrapReadsWhatThePublicToolWrites(t *testing.T) {
	data := sample(4 << 20)
	for _, args := range [][]string{{"-q", "-c", "-1"}, {"-q", "-c", "-3"}, {"-q", "-c", "-19", "--single-thread"}, {"-q", "-c", "--no-check"}} {
		stored := tool(t, data, args...)
		got, err := expand(bytes.NewReader(stored))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%v: got %d bytes, %v", args, len(got), err)
		}
		if _, err := expand(bytes.NewReader(stored[:len(stored)-1])); !errors.Is(err, processor.ErrTruncated) {
			t.Errorf("%v, cut: %v", args, err)
		}
	}
	twice := append(tool(t, []byte("one "), "-q", "-c"), tool(t, []byte("two"), "-q", "-c")...)
	if got, err := expand(bytes.NewReader(twice)); err != nil || string(got) != "one two" {
		t.Errorf("two frames: %q, %v", got, err)
	}
}
