package zstd_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

func TestThePublicToolReadsWhatWrapWrites(t *testing.T) {
	for level := 1; level <= 4; level++ {
		p, err := zstd.New(zstd.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 10, 5 << 20} {
			data := processortest.Sample(n)
			stored := processortest.Wrap(t, p, data)
			if got := processortest.Tool(t, stored, "zstd", "-d", "-q", "-c"); !bytes.Equal(got, data) {
				t.Errorf("level %d: %d of %d bytes came back", level, len(got), n)
			}
		}
	}
}

func TestUnwrapReadsWhatThePublicToolWrites(t *testing.T) {
	data := processortest.Sample(4 << 20)
	for _, args := range [][]string{{"-q", "-c", "-1"}, {"-q", "-c", "-3"}, {"-q", "-c", "-19", "--single-thread"}, {"-q", "-c", "--no-check"}} {
		stored := processortest.Tool(t, data, "zstd", args...)
		got, err := expand(bytes.NewReader(stored))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%v: got %d bytes, %v", args, len(got), err)
		}
		if _, err := expand(bytes.NewReader(stored[:len(stored)-1])); !errors.Is(err, processor.ErrTruncated) {
			t.Errorf("%v, cut: %v", args, err)
		}
	}
	twice := append(processortest.Tool(t, []byte("one "), "zstd", "-q", "-c"), processortest.Tool(t, []byte("two"), "zstd", "-q", "-c")...)
	if got, err := expand(bytes.NewReader(twice)); err != nil || string(got) != "one two" {
		t.Errorf("two frames: %q, %v", got, err)
	}
}
