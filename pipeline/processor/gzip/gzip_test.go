package gzip_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/gzip"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

func TestConformance(t *testing.T) {
	processortest.Run(t, processortest.Subject{Processor: gzip.Default(), Memory: 64 << 20})
}

func TestLevels(t *testing.T) {
	for _, level := range []int{-1, 10} {
		if _, err := gzip.New(gzip.Options{Level: level}); err == nil || !strings.Contains(err.Error(), "must be 1") {
			t.Errorf("level %d: %v", level, err)
		}
	}
	data := processortest.Sample(1 << 20)
	sizes := map[int]int{}
	for _, level := range []int{0, 1, 6, 9} {
		p, err := gzip.New(gzip.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		stored := processortest.Wrap(t, p, data)
		if got, err := processortest.Unwrap(gzip.Processor{}, bytes.NewReader(stored)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("level %d: %d bytes, %v", level, len(got), err)
		}
		sizes[level] = len(stored)
	}
	if sizes[9] >= sizes[1] || sizes[0] != sizes[6] {
		t.Errorf("sizes by level: %v", sizes)
	}
}

// member is a member as others write it: with name, comment, extra field, time.
func member(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := stdgzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "dump.sql", "by hand", []byte("ab\x02\x00xy")
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMembersInARow(t *testing.T) {
	own := processortest.Wrap(t, gzip.Default(), []byte("one "))
	row := slices.Concat(own, member(t, "two "), member(t, ""), own, member(t, "three"))
	got, err := processortest.Unwrap(gzip.Default(), bytes.NewReader(row))
	if err != nil || string(got) != "one two one three" {
		t.Fatalf("got %q, %v", got, err)
	}
	ends := map[int]bool{} // where a cut cannot be seen: between two members
	for _, n := range []int{1, 2, 3, 4} {
		parts := [][]byte{own, member(t, "two "), member(t, ""), own}
		ends[len(slices.Concat(parts[:n]...))] = true
	}
	for cut := range row {
		_, err := processortest.Unwrap(gzip.Default(), bytes.NewReader(row[:cut]))
		if ends[cut] != (err == nil) || err != nil && !errors.Is(err, processor.ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", cut, len(row), err)
		}
	}
	for _, rubbish := range []string{"\x00", "\x1f\x8c", "\x1f\x00", "xx"} {
		_, err := processortest.Unwrap(gzip.Default(), strings.NewReader(string(row)+rubbish))
		if !errors.Is(err, processor.ErrTrailing) {
			t.Errorf("%q after five members: %v", rubbish, err)
		}
	}
}

func TestAWrongChecksumOrLengthIsCorrupt(t *testing.T) {
	stored := processortest.Wrap(t, gzip.Default(), processortest.Sample(100_000))
	for i := 1; i <= 8; i++ {
		bad := bytes.Clone(stored)
		bad[len(bad)-i] ^= 1
		if _, err := processortest.Unwrap(gzip.Default(), bytes.NewReader(bad)); !errors.Is(err, processor.ErrCorrupt) {
			t.Errorf("byte %d from the end: %v", i, err)
		}
	}
}
