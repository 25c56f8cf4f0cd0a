package storagetest

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// errBoom is what test readers fail with.
func errBoom() error { return errors.New("boom") }

func put(t *testing.T, s storage.Storage, name, content string) storage.Info {
	t.Helper()
	info, err := s.Put(t.Context(), name, strings.NewReader(content), storage.Condition{})
	if err != nil {
		t.Fatalf("put %q: %v", name, err)
	}
	return info
}

func get(t *testing.T, s storage.Storage, name string) (string, storage.Info) {
	t.Helper()
	r, info, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatalf("get %q: %v", name, err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close %q: %v", name, err)
	}
	return string(b), info
}

func stat(t *testing.T, s storage.Storage, name string) storage.Info {
	t.Helper()
	info, err := s.Stat(t.Context(), name)
	if err != nil {
		t.Fatalf("stat %q: %v", name, err)
	}
	return info
}

func list(t *testing.T, s storage.Storage, prefix string) []string {
	t.Helper()
	names := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		names = append(names, info.Name)
	}
	return names
}

// wantErr checks the class of err.
func wantErr(t *testing.T, what string, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %v", what, err, class)
	}
}

// wantAbsent checks that nothing of name is visible in any way.
func wantAbsent(t *testing.T, s storage.Storage, name string) {
	t.Helper()
	_, err := s.Stat(t.Context(), name)
	wantErr(t, "stat "+name, err, storage.ErrNotFound)
	if r, _, err := s.Get(t.Context(), name); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("get %s: %v, want %v", name, err, storage.ErrNotFound)
		if err == nil {
			_ = r.Close()
		}
	}
	for _, prefix := range []string{"", name} {
		for info, err := range s.List(t.Context(), prefix) {
			if err != nil {
				t.Errorf("list %q: %v", prefix, err)
			} else if info.Name == name {
				t.Errorf("a listing of %q shows %s", prefix, name)
			}
		}
	}
}

// noise yields n pseudo-random bytes and calls at for each MiB with the number of bytes yielded so far.
type noise struct {
	n, done int64
	src     *rand.ChaCha8
	at      func(done int64) error
}

func newNoise(n int64, at func(done int64) error) *noise {
	return &noise{n: n, src: rand.NewChaCha8([32]byte{1}), at: at}
}

const mib = 1 << 20

func (r *noise) Read(p []byte) (int, error) {
	if r.at != nil && r.done%mib == 0 {
		if err := r.at(r.done); err != nil {
			return 0, err
		}
	}
	left := min(r.n-r.done, mib-r.done%mib)
	if left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	n, err := r.src.Read(p)
	r.done += int64(n)
	return n, err
}
