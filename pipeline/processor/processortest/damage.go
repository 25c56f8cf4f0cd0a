package processortest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
)

const (
	large = 3 << 20 // bytes of content, many of any format's blocks
	block = 64 << 10
)

func wantCut(t *testing.T, s Subject, stored []byte, cut int) {
	t.Helper()
	if _, err := unwrapBytes(s, stored[:cut]); !errors.Is(err, processor.ErrTruncated) {
		t.Fatalf("%d of %d bytes: %v, want %v", cut, len(stored), err, processor.ErrTruncated)
	}
}

func cutEverywhere(t *testing.T, s Subject) {
	for _, n := range []int{0, 5, 2000} {
		stored := Wrap(t, s.Processor, Sample(n))
		for cut := range stored {
			wantCut(t, s, stored, cut)
		}
	}
}

func cutLarge(t *testing.T, s Subject) {
	stored := Wrap(t, s.Processor, Sample(large))
	cuts := append(places(25, len(stored)), len(stored)-1, len(stored)-4, len(stored)-5, len(stored)-16, len(stored)-17)
	for at := block; at < len(stored); at += block {
		cuts = append(cuts, at)
	}
	for _, cut := range cuts {
		wantCut(t, s, stored, cut)
	}
}

func notClosed(t *testing.T, s Subject) {
	for _, n := range []int{0, 10, block, large} {
		var b bytes.Buffer
		w, err := s.Processor.Wrap(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(Sample(n)); err != nil {
			t.Fatal(err)
		}
		wantCut(t, s, b.Bytes(), b.Len())
	}
}

func nothing(t *testing.T, s Subject) {
	if _, err := unwrapBytes(s, nil); !errors.Is(err, processor.ErrTruncated) {
		t.Errorf("zero bytes: %v, want %v", err, processor.ErrTruncated)
	}
	if stored := Wrap(t, s.Processor, nil); len(stored) == 0 {
		t.Error("nothing became zero bytes: a lost object would be a whole one")
	}
}

// flip changes one byte and expects an error of a class, or the same content. It returns the error.
func flip(t *testing.T, s Subject, stored, content []byte, at int, mask byte) error {
	t.Helper()
	bad := bytes.Clone(stored)
	bad[at] ^= mask
	got, err := unwrapBytes(s, bad)
	switch {
	case err == nil && !bytes.Equal(got, content):
		t.Fatalf("byte %d ^ %#x: a clean end with other content", at, mask)
	case err != nil && !classed(err):
		t.Fatalf("byte %d ^ %#x: an error of no class: %v", at, mask, err)
	}
	return err
}

func flipEverywhere(t *testing.T, s Subject) {
	content := Sample(2000)
	stored := Wrap(t, s.Processor, content)
	corrupt := 0
	for at := range stored {
		for _, mask := range []byte{0x01, 0x40, 0xff} {
			if errors.Is(flip(t, s, stored, content, at, mask), processor.ErrCorrupt) {
				corrupt++
			}
		}
	}
	if corrupt < 3*len(stored)*8/10 {
		t.Errorf("only %d of %d changes were called corrupt", corrupt, 3*len(stored))
	}
}

func flipLarge(t *testing.T, s Subject) {
	content := Sample(large)
	stored := Wrap(t, s.Processor, content)
	for _, at := range append(places(20, len(stored)), len(stored)-1, len(stored)-16) {
		if err := flip(t, s, stored, content, at, 0x10); err == nil {
			t.Errorf("byte %d of %d: no error", at, len(stored))
		}
	}
	if err := flip(t, s, stored, content, len(stored)/2, 0xff); !errors.Is(err, processor.ErrCorrupt) {
		t.Errorf("a byte in the middle: %v, want %v", err, processor.ErrCorrupt)
	}
}

// swap exchanges blocks of 64 KiB, of 4 KiB, and whole halves.
func swap(t *testing.T, s Subject) {
	content := Sample(large)
	stored := Wrap(t, s.Processor, content)
	half := len(stored) / 2
	for name, bad := range map[string][]byte{
		"64 KiB":   exchanged(stored, block, 3*block, block),
		"4 KiB":    exchanged(stored, half, half+8192, 4096),
		"halves":   slices.Concat(stored[half:], stored[:half]),
		"repeated": slices.Concat(stored[:half], stored[half-block:]),
		"left out": slices.Concat(stored[:half-block], stored[half:]),
	} {
		if got, err := unwrapBytes(s, bad); !classed(err) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func exchanged(b []byte, i, j, n int) []byte {
	out := bytes.Clone(b)
	copy(out[i:i+n], b[j:j+n])
	copy(out[j:j+n], b[i:i+n])
	return out
}

func foreign(t *testing.T, s Subject) {
	for _, text := range []string{"G", "GDMP and so on", "\x7fELF", strings.Repeat("\x00", 1<<16), string(Sample(200_000))} {
		if _, err := unwrapBytes(s, []byte(text)); !errors.Is(err, processor.ErrCorrupt) {
			t.Errorf("%.8q: %v, want %v", text, err, processor.ErrCorrupt)
		}
	}
}

// appendix puts rubbish behind streams that end in the middle of a block and exactly with one.
func appendix(t *testing.T, s Subject) {
	for _, n := range []int{0, 1000, block, large} {
		stored := Wrap(t, s.Processor, Sample(n))
		for _, rubbish := range []string{"\x00", "x", "xy", "xyz", "xyzz", "\n", strings.Repeat("\x00", 1<<16)} {
			_, err := unwrapBytes(s, append(bytes.Clone(stored), rubbish...))
			if !errors.Is(err, processor.ErrTrailing) && (!s.Vague || !classed(err)) {
				t.Errorf("%.8q after %d bytes of content: %v, want %v", rubbish, n, err, processor.ErrTrailing)
			}
		}
	}
}
