package s3

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

var errWire = errors.New("connection reset")

// faults stands between the client and its connections. It is called for each request, may ask send for the answer, and
// says what the client gets.
type faults struct {
	next http.RoundTripper

	mu     sync.Mutex
	strike func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
	seen   []string // kinds of requests, in order
}

// kind names a request by what it does.
func kind(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("uploads") && r.Method == http.MethodPost:
		return "begin"
	case q.Has("uploads"):
		return "uploads"
	case q.Has("partNumber"):
		return "part " + q.Get("partNumber")
	case q.Has("uploadId") && r.Method == http.MethodPost:
		return "complete"
	case q.Has("uploadId"):
		return "abort"
	case q.Has("list-type"):
		return "list"
	}
	return strings.ToLower(r.Method)
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.seen = append(f.seen, kind(r))
	strike := f.strike
	f.mu.Unlock()
	send := func() (*http.Response, error) { return f.next.RoundTrip(r) }
	if strike == nil {
		return send()
	}
	return strike(r, send)
}

func (f *faults) set(strike func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strike, f.seen = strike, nil
}

func (f *faults) count(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, k := range f.seen {
		if k == kind {
			n++
		}
	}
	return n
}

// faulty is a fresh bucket behind faults.
func faulty(t testing.TB, o Options) (*Storage, *faults) {
	t.Helper()
	f := &faults{}
	s, err := open(o, func(next http.RoundTripper) http.RoundTripper { f.next = next; return f })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, f
}

// first makes the first n requests of a kind strike.
func first(n int, of string, strike func(send func() (*http.Response, error)) (*http.Response, error)) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	var mu sync.Mutex
	return func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		hit := kind(r) == of && n > 0
		if hit {
			n--
		}
		mu.Unlock()
		if hit {
			return strike(send)
		}
		return send()
	}
}

// unsent: the request never reaches the server. unanswered: it does, and the answer is lost. refused: an answer of 503.
func unsent(func() (*http.Response, error)) (*http.Response, error) { return nil, errWire }

func unanswered(send func() (*http.Response, error)) (*http.Response, error) {
	res, err := send()
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	return nil, errWire
}

func refused(func() (*http.Response, error)) (*http.Response, error) {
	return answer(http.StatusServiceUnavailable, "SlowDown")
}

func answer(status int, code string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", code), Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader("<Error><Code>" + code + "</Code></Error>"))}, nil
}

const (
	smallObject = 1000
	largeObject = 2*MinPart + 1000 // three parts
)

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i>>8) ^ byte(i)
	}
	return b
}

// together runs subtests eight at a time, since they spend their time in pauses between attempts.
func together(t *testing.T) (run func(name string, f func(t *testing.T)), wait func()) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	return func(name string, f func(t *testing.T)) {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, f)
		})
	}, wg.Wait
}

// A fault that passes is not noticed, whatever step it hits; the object is there once, whole, and nothing beside it.
func TestPassingFaults(t *testing.T) {
	run, wait := together(t)
	defer wait()
	for _, c := range []struct {
		size  int
		kinds []string
	}{
		{smallObject, []string{"head", "list", "put"}},
		{largeObject, []string{"head", "list", "begin", "part 1", "part 2", "part 3", "complete"}},
	} {
		for _, k := range c.kinds {
			for name, strike := range map[string]func(func() (*http.Response, error)) (*http.Response, error){
				"unsent": unsent, "unanswered": unanswered, "refused": refused,
			} {
				if k == "begin" && name == "unanswered" {
					continue // its upload has no name any more: for AbortUploads, see TestAbortUploads
				}
				run(fmt.Sprintf("%d bytes, %s %s", c.size, k, name), func(t *testing.T) {
					s, f := faulty(t, options(t))
					f.set(first(1, k, strike))
					info, err := s.Put(t.Context(), "o", bytes.NewReader(content(c.size)), storage.Condition{})
					if err != nil || info.Size != int64(c.size) || info.Version == "" {
						t.Fatalf("%+v, %v", info, err)
					}
					if f.count(k) < 2 {
						t.Errorf("the fault did not strike: %q", f.seen)
					}
					if got := read(t, s, "o"); !bytes.Equal(got, content(c.size)) {
						t.Errorf("%d bytes came back", len(got))
					}
					if left := uploads(t, s); len(left) > 0 {
						t.Errorf("unfinished uploads: %q", left)
					}
					_, err = s.Put(t.Context(), "o", strings.NewReader("x"), storage.Condition{})
					wantErr(t, "another put", err, storage.ErrExists)
				})
			}
		}
	}
}

func read(t testing.TB, s *Storage, name string) []byte {
	t.Helper()
	r, _, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// A fault that stays is an error, and leaves nothing.
func TestLastingFaults(t *testing.T) {
	run, wait := together(t)
	defer wait()
	for _, c := range []struct {
		size int
		kind string
	}{
		{smallObject, "head"}, {smallObject, "list"}, {smallObject, "put"},
		{largeObject, "begin"}, {largeObject, "part 1"}, {largeObject, "part 3"}, {largeObject, "complete"},
	} {
		run(fmt.Sprintf("%d bytes, %s", c.size, c.kind), func(t *testing.T) {
			s, f := faulty(t, options(t))
			f.set(first(1000, c.kind, unsent))
			_, err := s.Put(t.Context(), "o", bytes.NewReader(content(c.size)), storage.Condition{})
			if err == nil || storage.Final(err) {
				t.Errorf("put: %v, want an error that may pass", err)
			}
			if n := f.count(c.kind); n != attempts {
				t.Errorf("%d attempts, want %d", n, attempts)
			}
			f.set(nil)
			wantNothing(t, s)
		})
	}
}

// A full bucket is said by a status, or by a code; neither is tried again at once.
func TestTheBucketIsFull(t *testing.T) {
	for _, says := range []func() (*http.Response, error){
		func() (*http.Response, error) { return answer(http.StatusInsufficientStorage, "XMinioStorageFull") },
		func() (*http.Response, error) { return answer(http.StatusInsufficientStorage, "") },
		func() (*http.Response, error) { return answer(http.StatusForbidden, "QuotaExceeded") },
	} {
		s, f := faulty(t, options(t))
		f.set(first(1000, "put", func(func() (*http.Response, error)) (*http.Response, error) { return says() }))
		_, err := s.Put(t.Context(), "o", bytes.NewReader(content(smallObject)), storage.Condition{})
		if !errors.Is(err, storage.ErrFull) || !storage.Final(err) || !strings.Contains(err.Error(), "the bucket is full") {
			t.Errorf("put: %v", err)
		}
		if n := f.count("put"); n != 1 {
			t.Errorf("%d attempts", n)
		}
		f.set(nil)
		wantNothing(t, s)
	}
}

// When the answer to the last step is lost for good, the object itself says that it was made.
func TestLostAnswers(t *testing.T) {
	run, wait := together(t)
	defer wait()
	for size, last := range map[int]string{smallObject: "put", largeObject: "complete"} {
		run(last, func(t *testing.T) { lostAnswers(t, size, last) })
	}
}

func lostAnswers(t *testing.T, size int, last string) {
	s, f := faulty(t, options(t))
	f.set(first(1000, last, unanswered))
	info, err := s.Put(t.Context(), "o", bytes.NewReader(content(size)), storage.Condition{})
	if err != nil || info.Size != int64(size) {
		t.Errorf("%s: %+v, %v", last, info, err)
	}
	_, err = s.Put(t.Context(), "o", bytes.NewReader(content(size)), storage.Condition{})
	wantErr(t, "the same content again", err, storage.ErrExists)
	f.set(first(1000, last, unanswered))
	next, err := s.Put(t.Context(), "o", strings.NewReader("next"), storage.Condition{Version: info.Version})
	if err != nil || next.Version == info.Version {
		t.Errorf("%s: replace: %+v, %v", last, next, err)
	}
	_, err = s.Put(t.Context(), "o", strings.NewReader("late"), storage.Condition{Version: info.Version})
	wantErr(t, "replace of the old version", err, storage.ErrStale)
	if left := uploads(t, s); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// cutting ends the bodies of the first n downloads after so many bytes, with an error or as if that were all.
func cutting(n int, after int64, how error) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	return first(n, "get", func(send func() (*http.Response, error)) (*http.Response, error) {
		res, err := send()
		if err == nil {
			res.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(res.Body, after), failing{how}), res.Body}
		}
		return res, err
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestADownloadGoesOnWhereItBrokeOff(t *testing.T) {
	s, f := faulty(t, options(t))
	want := content(largeObject)
	info, err := s.Put(t.Context(), "o", bytes.NewReader(want), storage.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	f.set(cutting(3, 1<<20, errWire))
	if got := read(t, s, "o"); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back", len(got))
	}
	if n := f.count("get"); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	f.set(cutting(3, 1<<20, io.EOF))
	if got := read(t, s, "o"); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back with clean ends in between", len(got))
	}

	f.set(cutting(1000, 0, errWire)) // no byte ever comes
	r, _, err := s.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := io.ReadAll(r); !errors.Is(err, errWire) {
			t.Errorf("read: %v, want %v", err, errWire)
		}
	}
	_ = r.Close()

	f.set(cutting(1, 1<<20, errWire))
	if r, _, err = s.Get(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "o", strings.NewReader("other"), storage.Condition{Version: info.Version}); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if !errors.Is(err, storage.ErrStale) || !bytes.Equal(got, want[:1<<20]) {
		t.Errorf("replaced meanwhile: %d bytes, %v", len(got), err)
	}
	_ = r.Close()
}
