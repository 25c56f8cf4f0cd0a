package processortest

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/processor"
)

func roundTrip(t *testing.T, s Subject) {
	for _, n := range []int{0, 1, 100, block - 1, block, block + 1, 2 * block, 128<<10 + 1, large} {
		content := Sample(n)
		stored := Wrap(t, s.Processor, content)
		for name, r := range map[string]io.Reader{
			"one byte at a time": iotest.OneByteReader(bytes.NewReader(stored)),
			"data with the end":  iotest.DataErrReader(bytes.NewReader(stored)),
			"halves":             iotest.HalfReader(bytes.NewReader(stored)),
		} {
			got, err := Unwrap(s.Processor, r)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %s: got %d bytes, %v", n, name, len(got), err)
			}
		}
	}
	var b bytes.Buffer
	w, err := s.Processor.Wrap(&b)
	if err != nil {
		t.Fatal(err)
	}
	content := Sample(1000)
	for _, c := range content {
		if n, err := w.Write([]byte{c}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Unwrap(s.Processor, &b); err != nil || !bytes.Equal(got, content) {
		t.Errorf("written byte by byte: got %d bytes, %v", len(got), err)
	}
}

// concurrent: a processor is a value, its streams know nothing of each other.
func concurrent(t *testing.T, s Subject) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			content := Sample(100_000 + i)
			var b bytes.Buffer
			w, err := s.Processor.Wrap(&b)
			if err == nil {
				_, err = w.Write(content)
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := Unwrap(s.Processor, &b); err != nil || !bytes.Equal(got, content) {
				t.Errorf("stream %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
}

func sourceErrors(t *testing.T, s Subject) {
	stored := Wrap(t, s.Processor, Sample(200_000))
	for _, boom := range []error{errors.New("connection reset"), io.ErrUnexpectedEOF} {
		for _, at := range []int{0, 3, 20, len(stored) / 2, len(stored) - 1, len(stored)} {
			_, err := Unwrap(s.Processor, io.MultiReader(bytes.NewReader(stored[:at]), iotest.ErrReader(boom)))
			if !errors.Is(err, boom) || classed(err) {
				t.Errorf("after %d of %d bytes: %v, want %v", at, len(stored), err, boom)
			}
		}
	}
}

// failing takes so many bytes and then no more.
type failing struct {
	after int
	err   error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, f.err
	}
	return len(p), nil
}

func targetErrors(t *testing.T, s Subject) {
	boom := errors.New("disk full")
	w, err := s.Processor.Wrap(&failing{after: 1000, err: boom})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, &endless{block: Sample(1 << 20), n: 8 << 20}); !errors.Is(err, boom) {
		t.Fatalf("write: %v, want %v", err, boom)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a write after an error succeeds")
	}
	if err := w.Close(); err == nil {
		t.Error("Close after an error succeeds")
	}
	w, err = s.Processor.Wrap(&failing{after: 0, err: boom})
	if err == nil {
		_, err = w.Write([]byte("x"))
		err = errors.Join(err, w.Close())
	}
	if !errors.Is(err, boom) {
		t.Errorf("a target that takes nothing: %v, want %v", err, boom)
	}
}

func closed(t *testing.T, s Subject) {
	w, err := s.Processor.Wrap(io.Discard)
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
	r, err := s.Processor.Unwrap(bytes.NewReader(Wrap(t, s.Processor, []byte("x"))))
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
	stored := Wrap(t, s.Processor, Sample(1000))
	r, err = s.Processor.Unwrap(bytes.NewReader(stored[:len(stored)-1]))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // an error sticks
		if _, err := io.ReadAll(r); !errors.Is(err, processor.ErrTruncated) {
			t.Errorf("read again after a cut: %v", err)
		}
	}
}

func dropped(t *testing.T, s Subject) {
	stored := Wrap(t, s.Processor, Sample(2<<20))
	before := runtime.NumGoroutine()
	for range 20 {
		w, err := s.Processor.Wrap(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(Sample(1 << 20)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Processor.Unwrap(bytes.NewReader(stored))
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

const long = 96 << 20

func memory(t *testing.T, s Subject) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, err := s.Processor.Wrap(pw)
		if err == nil {
			_, err = io.Copy(w, &endless{block: Sample(1 << 20), n: long})
		}
		if err == nil {
			err = w.Close()
		}
		pw.CloseWithError(err)
	}()
	defer func() { pr.Close(); <-done }()
	r, err := s.Processor.Unwrap(pr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var peak uint64
	total := int64(0)
	for err == nil {
		var n int64
		n, err = io.CopyN(io.Discard, r, 8<<20)
		total += n
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	if err != io.EOF || total != long {
		t.Errorf("read %d of %d bytes, %v", total, long, err)
	}
	if peak > s.Memory {
		t.Errorf("the heap grew to %d MiB, want at most %d", peak>>20, s.Memory>>20)
	}
	t.Logf("the heap peaked at %d MiB for one writer and one reader", peak>>20)
}
