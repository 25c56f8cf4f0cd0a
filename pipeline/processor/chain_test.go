package processor_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// tagged is a processor whose stream is visibly nested: "<name:" + bytes + ">". It records what is called.
type tagged struct {
	name       string
	precedence int
	log        *[]string
	closeErr   error
	wrapErr    error
}

func (t tagged) Name() string    { return t.name }
func (t tagged) Precedence() int { return t.precedence }

func (t tagged) note(what string) {
	if t.log != nil {
		*t.log = append(*t.log, what+" "+t.name)
	}
}

func (t tagged) Wrap(w io.Writer) (io.WriteCloser, error) {
	if t.wrapErr != nil {
		return nil, t.wrapErr
	}
	return &taggedWriter{t: t, w: w}, nil
}

type taggedWriter struct {
	t      tagged
	w      io.Writer
	opened bool
}

func (w *taggedWriter) Write(p []byte) (int, error) {
	if !w.opened {
		w.opened = true
		if _, err := io.WriteString(w.w, "<"+w.t.name+":"); err != nil {
			return 0, err
		}
	}
	return w.w.Write(p)
}

func (w *taggedWriter) Close() error {
	w.t.note("close")
	if w.t.closeErr != nil {
		return w.t.closeErr
	}
	_, err := io.WriteString(w, ">")
	return err
}

func (t tagged) Unwrap(r io.Reader) (io.ReadCloser, error) {
	if t.wrapErr != nil {
		return nil, t.wrapErr
	}
	return &taggedReader{t: t, r: r}, nil
}

type taggedReader struct {
	t    tagged
	r    io.Reader
	body io.Reader
}

func (r *taggedReader) Read(p []byte) (int, error) {
	if r.body == nil {
		all, err := io.ReadAll(r.r)
		if err != nil {
			return 0, err
		}
		inner, ok := bytes.CutPrefix(all, []byte("<"+r.t.name+":"))
		if !ok {
			return 0, processor.ErrCorrupt
		}
		inner, ok = bytes.CutSuffix(inner, []byte(">"))
		if !ok {
			return 0, processor.ErrTruncated
		}
		r.body = bytes.NewReader(inner)
	}
	return r.body.Read(p)
}

func (r *taggedReader) Close() error {
	r.t.note("close")
	return r.t.closeErr
}

func wrap(t *testing.T, ps []processor.Processor, s string) string {
	t.Helper()
	var b strings.Builder
	w, err := processor.WrapAll(ps, &b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHighestPrecedenceSeesTheSourceFirst(t *testing.T) {
	low, mid, high := tagged{name: "low", precedence: 1}, tagged{name: "mid", precedence: 5}, tagged{name: "high", precedence: 9}
	for _, ps := range [][]processor.Processor{{low, mid, high}, {high, mid, low}, {mid, high, low}} {
		if got, want := wrap(t, ps, "x"), "<low:<mid:<high:x>>>"; got != want {
			t.Errorf("order %v: got %s, want %s", processor.Names(ps), got, want)
		}
	}
}

func TestUnwrapAllInvertsInReverseOrder(t *testing.T) {
	ps := []processor.Processor{tagged{name: "b", precedence: 5}, tagged{name: "a", precedence: 1}, tagged{name: "c", precedence: 9}}
	stored := wrap(t, ps, "some bytes")
	registry, err := processor.NewRegistry(ps...)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := processor.Order(ps...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.UnwrapAll(processor.Names(chain), strings.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "some bytes" {
		t.Fatalf("got %q, %v", got, err)
	}
	wrong, err := registry.UnwrapAll([]string{"a", "b", "c"}, strings.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(wrong); !errors.Is(err, processor.ErrCorrupt) {
		t.Errorf("the wrong order was accepted: %v", err)
	}
}

func TestEmptyChainPassesBytesThrough(t *testing.T) {
	if got := wrap(t, nil, "x"); got != "x" {
		t.Errorf("got %q", got)
	}
	r, err := processor.Registry(nil).UnwrapAll(nil, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("a closed chain can be read")
	}
}

func TestOrderRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		ps   []processor.Processor
		want string
	}{
		{"same name", []processor.Processor{tagged{name: "a", precedence: 1}, tagged{name: "a", precedence: 2}}, `"a" appears twice`},
		{"same precedence", []processor.Processor{tagged{name: "a", precedence: 1}, tagged{name: "b", precedence: 1}}, `"a" and "b" share precedence 1`},
		{"no name", []processor.Processor{tagged{precedence: 3}}, "precedence 3 has no name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := processor.WrapAll(c.ps, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestCloseCompletesFromTheSourceAndStopsAtTheFirstError(t *testing.T) {
	boom := errors.New("boom")
	var log []string
	ps := []processor.Processor{
		tagged{name: "a", precedence: 1, log: &log},
		tagged{name: "b", precedence: 5, log: &log, closeErr: boom},
		tagged{name: "c", precedence: 9, log: &log},
	}
	var b strings.Builder
	w, err := processor.WrapAll(ps, &b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, boom) || !strings.Contains(err.Error(), "complete b") {
			t.Errorf("Close: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"close c", "close b"}, log); diff != "" {
		t.Errorf("order of closing (-want +got):\n%s", diff)
	}
	if strings.HasSuffix(b.String(), ">>") {
		t.Errorf("the object got an end marker: %s", b.String())
	}
}

// limited fails after n bytes.
type limited struct{ n int }

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.n {
		n := l.n
		l.n = 0
		return n, errors.New("full")
	}
	l.n -= len(p)
	return len(p), nil
}

func TestAFailedWriteIsNeverCompleted(t *testing.T) {
	var log []string
	w, err := processor.WrapAll([]processor.Processor{tagged{name: "a", precedence: 1, log: &log}}, &limited{n: 8})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "much too long"); err == nil {
		t.Fatal("no error from a full writer")
	}
	if _, err := io.WriteString(w, "x"); err == nil {
		t.Error("a write after an error succeeds")
	}
	if err := w.Close(); err == nil || err.Error() != "full" {
		t.Errorf("Close: %v, want the first error", err)
	}
	if len(log) != 0 {
		t.Errorf("the layer was completed: %v", log)
	}
}

func TestWriteAfterCloseFails(t *testing.T) {
	w, err := processor.WrapAll(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a closed chain takes bytes")
	}
}

func TestWrapAllReportsALayerThatCannotStart(t *testing.T) {
	boom := errors.New("no key")
	_, err := processor.WrapAll([]processor.Processor{tagged{name: "age", precedence: 1, wrapErr: boom}}, io.Discard)
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "age") {
		t.Errorf("got %v", err)
	}
}
