package processortest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// Sample returns n bytes that compress about as a dump does: words with noise between them. It is the same for every
// call with one n.
func Sample(n int) []byte {
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

// Wrap returns what p makes of data, completed.
func Wrap(t testing.TB, p processor.Processor, data []byte) []byte {
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

// Unwrap returns all that p reads from r, and the error of Unwrap or of the first Read that failed; nil at a clean end.
func Unwrap(p processor.Processor, r io.Reader) ([]byte, error) {
	rc, err := p.Unwrap(r)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(rc)
	return got, errors.Join(err, rc.Close())
}

func unwrapBytes(s Subject, b []byte) ([]byte, error) { return Unwrap(s.Processor, bytes.NewReader(b)) }

// classed tells whether err is of a class of package processor.
func classed(err error) bool {
	return errors.Is(err, processor.ErrTruncated) || errors.Is(err, processor.ErrCorrupt) ||
		errors.Is(err, processor.ErrTrailing) || errors.Is(err, processor.ErrKey)
}

// places returns n numbers below limit, the same for every call.
func places(n, limit int) []int {
	rnd := rand.New(rand.NewPCG(2, uint64(limit)))
	out := make([]int, n)
	for i := range out {
		out[i] = rnd.IntN(limit)
	}
	return out
}
