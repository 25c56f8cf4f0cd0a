package zstd_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

var _ processor.Processor = zstd.Processor{}

// sample returns n bytes that compress about as a dump does: words with noise between them.
func sample(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = append(b, "customer\t"...)
		for range rnd.IntN(7) {
			b = append(b, byte('0'+rnd.IntN(64)))
		}
	}
	return b[:n]
}

func compress(t testing.TB, p processor.Processor, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := p.Wrap(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func expand(r io.Reader) ([]byte, error) {
	rc, err := zstd.Default().Unwrap(r)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

func TestRoundTrip(t *testing.T) {
	for level := range 5 {
		p, err := zstd.New(zstd.Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 100, 128 << 10, 128<<10 + 1, 3 << 20} {
			data := sample(n)
			got, err := expand(iotest.OneByteReader(bytes.NewReader(compress(t, p, data))))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("level %d, %d bytes: got %d bytes, %v", level, n, len(got), err)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	for _, level := range []int{-1, 5} {
		if _, err := zstd.New(zstd.Options{Level: level}); err == nil || !strings.Contains(err.Error(), "must be 1") {
			t.Errorf("level %d: %v", level, err)
		}
	}
	fast, err := zstd.New(zstd.Options{Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	best, err := zstd.New(zstd.Options{Level: 4})
	if err != nil {
		t.Fatal(err)
	}
	data := sample(1 << 20)
	if f, b := len(compress(t, fast, data)), len(compress(t, best, data)); b >= f {
		t.Errorf("best is %d bytes, fastest %d", b, f)
	}
}

func TestEveryCutOfASmallStreamIsTruncated(t *testing.T) {
	for _, n := range []int{0, 5, 4000} {
		whole := compress(t, zstd.Default(), sample(n))
		for cut := range whole {
			if _, err := expand(bytes.NewReader(whole[:cut])); !errors.Is(err, processor.ErrTruncated) {
				t.Fatalf("%d of %d bytes: %v", cut, len(whole), err)
			}
		}
	}
}

func TestRandomCutsOfALargeStreamAreTruncated(t *testing.T) {
	whole := compress(t, zstd.Default(), sample(4<<20))
	rnd := rand.New(rand.NewPCG(2, 3))
	cuts := []int{len(whole) - 1, len(whole) - 4, len(whole) - 5} // within and just before the checksum
	for range 25 {
		cuts = append(cuts, rnd.IntN(len(whole)))
	}
	for _, cut := range cuts {
		if _, err := expand(bytes.NewReader(whole[:cut])); !errors.Is(err, processor.ErrTruncated) {
			t.Fatalf("%d of %d bytes: %v", cut, len(whole), err)
		}
	}
}

func TestWithoutCloseTheStreamIsTruncated(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.Default().Wrap(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(1 << 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := expand(&b); !errors.Is(err, processor.ErrTruncated) {
		t.Errorf("got %v", err)
	}
}

func TestTrailingBytes(t *testing.T) {
	whole := compress(t, zstd.Default(), sample(1000))
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
	one, two := compress(t, zstd.Default(), []byte("one ")), compress(t, zstd.Default(), []byte("two"))
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

// A changed byte in the content is corrupt. In the structure it may look like a cut or an appendix; never like success
// with other content.
func TestEveryFlippedByteIsFound(t *testing.T) {
	data := sample(3000)
	whole := compress(t, zstd.Default(), data)
	corrupt := 0
	for i := range whole {
		for _, mask := range []byte{0x01, 0x40, 0xff} {
			bad := bytes.Clone(whole)
			bad[i] ^= mask
			got, err := expand(bytes.NewReader(bad))
			switch {
			case err == nil && bytes.Equal(got, data): // a larger window, say: the content stands
			case errors.Is(err, processor.ErrCorrupt):
				corrupt++
			case errors.Is(err, processor.ErrTruncated), errors.Is(err, processor.ErrTrailing):
			default:
				t.Fatalf("byte %d ^ %#x: %d bytes, %v", i, mask, len(got), err)
			}
		}
	}
	if corrupt < 3*len(whole)*9/10 {
		t.Errorf("only %d of %d changes were called corrupt", corrupt, 3*len(whole))
	}
}

func TestFlippedChecksumAndContentAreCorrupt(t *testing.T) {
	whole := compress(t, zstd.Default(), sample(1<<20))
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
		if _, err := enc.Write(sample(1 << 20)); err != nil {
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

func TestErrorsOfTheSourceComeThrough(t *testing.T) {
	whole := compress(t, zstd.Default(), sample(1000))
	for _, boom := range []error{errors.New("connection reset"), io.ErrUnexpectedEOF} {
		for _, at := range []int{0, 3, 20, len(whole)} {
			_, err := expand(io.MultiReader(bytes.NewReader(whole[:at]), iotest.ErrReader(boom)))
			if !errors.Is(err, boom) {
				t.Errorf("after %d bytes: %v, want %v", at, err, boom)
			}
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestErrorsOfTheTargetStick(t *testing.T) {
	w, err := zstd.Default().Wrap(&failing{after: 1000})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(sample(2 << 20))
	if err == nil {
		t.Fatal("no error")
	}
	if _, again := w.Write([]byte("x")); again == nil {
		t.Error("a write after an error succeeds")
	}
	if err := w.Close(); err == nil {
		t.Error("Close after an error succeeds")
	}
}

func TestClosedStreamsAnswerErrors(t *testing.T) {
	w, err := zstd.Default().Wrap(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a closed writer takes bytes")
	}
	r, err := zstd.Default().Unwrap(bytes.NewReader(compress(t, zstd.Default(), []byte("x"))))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a closed reader answers %v", err)
	}
}

func TestDroppedStreamsLeaveNoGoroutine(t *testing.T) {
	whole := compress(t, zstd.Default(), sample(2<<20))
	before := runtime.NumGoroutine()
	for range 20 {
		w, err := zstd.Default().Wrap(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(sample(1 << 20)); err != nil {
			t.Fatal(err)
		}
		r, err := zstd.Default().Unwrap(bytes.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, r, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// endless yields n bytes of one repeated block, so that the test itself holds next to nothing.
type endless struct {
	block []byte
	n     int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(copy(p, e.block), e.n)
	e.n -= n
	return n, nil
}

func TestMemoryIsBounded(t *testing.T) {
	block := sample(1 << 20)
	pr, pw := io.Pipe()
	go func() {
		w, err := zstd.Default().Wrap(pw)
		if err == nil {
			_, err = io.Copy(w, &endless{block: block, n: 96 << 20})
		}
		if err == nil {
			err = w.Close()
		}
		pw.CloseWithError(err)
	}()
	r, err := zstd.Default().Unwrap(pr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pr.Close()
	var peak uint64
	for total := 0; ; {
		n, err := io.CopyN(io.Discard, r, 8<<20)
		total += int(n)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		if err == io.EOF {
			if total != 96<<20 {
				t.Errorf("read %d bytes", total)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if peak > 128<<20 {
		t.Errorf("heap grew to %d MiB", peak>>20)
	}
	t.Logf("heap peaked at %d MiB for one writer and one reader", peak>>20)
}

func BenchmarkLevels(b *testing.B) {
	data := sample(8 << 20)
	for level := 1; level <= 4; level++ {
		b.Run(string(rune('0'+level)), func(b *testing.B) {
			p, err := zstd.New(zstd.Options{Level: level})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				compress(b, p, data)
			}
		})
	}
}
