package gzip_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/gzip"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

func TestThePublicToolReadsWhatWrapWrites(t *testing.T) {
	for level := 1; level <= gzip.MaxLevel; level++ {
		p, err := gzip.New(gzip.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 10, 1 << 20} {
			data := processortest.Sample(n)
			stored := processortest.Wrap(t, p, data)
			if got := processortest.Tool(t, stored, "gzip", "-d", "-c"); !bytes.Equal(got, data) {
				t.Errorf("level %d: %d of %d bytes came back", level, len(got), n)
			}
		}
	}
}

func TestUnwrapReadsWhatThePublicToolWrites(t *testing.T) {
	data := processortest.Sample(4 << 20)
	for _, level := range []string{"-1", "-6", "-9"} {
		stored := processortest.Tool(t, data, "gzip", "-c", level)
		got, err := processortest.Unwrap(gzip.Default(), bytes.NewReader(stored))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: got %d bytes, %v", level, len(got), err)
		}
		_, err = processortest.Unwrap(gzip.Default(), bytes.NewReader(stored[:len(stored)-1]))
		if !errors.Is(err, processor.ErrTruncated) {
			t.Errorf("%s, cut: %v", level, err)
		}
	}
	twice := append(processortest.Tool(t, []byte("one "), "gzip", "-c"), processortest.Tool(t, []byte("two"), "gzip", "-c")...)
	if got, err := processortest.Unwrap(gzip.Default(), bytes.NewReader(twice)); err != nil || string(got) != "one two" {
		t.Errorf("two members: %q, %v", got, err)
	}
}
