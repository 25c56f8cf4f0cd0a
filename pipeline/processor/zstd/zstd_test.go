package zstd_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

var _ processor.Processor = zstd.Processor{}

func TestConformance(t *testing.T) {
	processortest.Run(t, processortest.Subject{Processor: zstd.Default(), Memory: 128 << 20})
}

func expand(r io.Reader) ([]byte, error) { return processortest.Unwrap(zstd.Default(), r) }

func TestLevels(t *testing.T) {
	for _, level := range []int{-1, 5} {
		if _, err := zstd.New(zstd.Options{Level: level}); err == nil || !strings.Contains(err.Error(), "must be 1") {
			t.Errorf("level %d: %v", level, err)
		}
	}
	data := processortest.Sample(1 << 20)
	var sizes []int
	for level := range 5 {
		p, err := zstd.New(zstd.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		stored := processortest.Wrap(t, p, data)
		if got, err := expand(bytes.NewReader(stored)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("level %d: %d bytes, %v", level, len(got), err)
		}
		sizes = append(sizes, len(stored))
	}
	if sizes[4] >= sizes[1] || sizes[0] != sizes[zstd.DefaultLevel] {
		t.Errorf("sizes by level: %v", sizes)
	}
}

// A second frame that has only begun is a cut, not an appendix.
func TestTrailingBytes(t *testing.T) {
	whole := processortest.Wrap(t, zstd.Default(), processortest.Sample(1000))
	for _, rubbish := range []string{"\x00", "x", "xy", "xyz", "xyzz", "\x28\xb5\x2f\xfc", "\n", strings.Repeat("\x00", 1<<16)} {
		_, err := expand(strings.NewReader(string(whole) + rubbish))
		if !errors.Is(err, processor.ErrTrailing) {
			t.Errorf("after %.8q: %v", rubbish, err)
		}
	}
	if _, err := expand(strings.NewReader(string(whole) + "\x28\xb5")); !errors.Is(err, processor.ErrTruncated) {
		t.Errorf("the beginning of a second frame: %v", err)
	}
}

func TestConcatenatedAndSkippableFrames(t *testing.T) {
	one, two := processortest.Wrap(t, zstd.Default(), []byte("one ")), processortest.Wrap(t, zstd.Default(), []byte("two"))
	skippable := []byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc")
	got, err := expand(bytes.NewReader(bytes.Join([][]byte{one, skippable, two}, nil)))
	if err != nil || string(got) != "one two" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := expand(bytes.NewReader(skippable)); !errors.Is(err, processor.ErrTruncated) {
		t.Errorf("a stream without data: %v", err)
	}
	if _, err := expand(bytes.NewReader(append(bytes.Clone(one), skippable[:10]...))); !errors.Is(err, processor.ErrTruncated) {
		t.Errorf("a cut skippable frame: %v", err)
	}
}

func TestFlippedChecksumAndContentAreCorrupt(t *testing.T) {
	whole := processortest.Wrap(t, zstd.Default(), processortest.Sample(1<<20))
	for _, i := range []int{0, 3, len(whole) / 2, len(whole) - 1, len(whole) - 4} {
		bad := bytes.Clone(whole)
		bad[i] ^= 0xff
		if _, err := expand(bytes.NewReader(bad)); !errors.Is(err, processor.ErrCorrupt) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	for _, s := range []string{"G", "GDMP and so on", "\x1f\x8b\x08"} {
		if _, err := expand(strings.NewReader(s)); !errors.Is(err, processor.ErrCorrupt) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestALargerWindowIsRefused(t *testing.T) {
	var b bytes.Buffer
	enc, err := kzstd.NewWriter(&b, kzstd.WithWindowSize(64<<20), kzstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // two writes, so that the size is not known at the start and the window is written as asked
		if _, err := enc.Write(processortest.Sample(1 << 20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := expand(&b); !errors.Is(err, processor.ErrCorrupt) || !strings.Contains(err.Error(), "8 MiB") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkLevels(b *testing.B) {
	data := processortest.Sample(8 << 20)
	for level := 1; level <= 4; level++ {
		b.Run(string(rune('0'+level)), func(b *testing.B) {
			p, err := zstd.New(zstd.Options{Level: level})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				processortest.Wrap(b, p, data)
			}
		})
	}
}
