package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

func put(t *testing.T, s *Storage, name, content string) storage.Info {
	t.Helper()
	info, err := s.Put(t.Context(), name, strings.NewReader(content), storage.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// temps returns the names of temporaries below root.
func temps(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(tempDir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func TestFilesArePrivateAndNamedAsTheObjects(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	put(t, s, "app-1/17/data", "content")
	for name, want := range map[string]fs.FileMode{"app-1": 0o700, "app-1/17": 0o700, "app-1/17/data": 0o600, "_fencepost": 0o700, "_fencepost/tmp": 0o700} {
		fi, err := os.Stat(filepath.Join(root, name))
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v, want %v", name, fi.Mode().Perm(), err, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "app-1/17/data")); err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
	if left := temps(t, root); len(left) != 0 {
		t.Errorf("temporaries left: %q", left)
	}
}

func TestFailuresAndCancelsRemoveTheTemporary(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := false
	stop := readerFunc(func(p []byte) (int, error) {
		if seen = len(temps(t, root)) == 1; seen {
			cancel()
		}
		return len(p), nil
	})
	if _, err := s.Put(ctx, "a", stop, storage.Condition{}); !errors.Is(err, context.Canceled) || !seen {
		t.Errorf("got %v, temporary seen %v", err, seen)
	}
	boom := errors.New("boom")
	if _, err := s.Put(t.Context(), "a", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(boom)), storage.Condition{}); !errors.Is(err, boom) {
		t.Error(err)
	}
	if errors.Is(boom, storage.ErrPermanent) {
		t.Error("an error of the reader was given a class")
	}
	put(t, s, "b", "x")
	if _, err := s.Put(t.Context(), "b", strings.NewReader("x"), storage.Condition{}); !errors.Is(err, storage.ErrExists) {
		t.Error(err)
	}
	if left := temps(t, root); len(left) != 0 {
		t.Errorf("temporaries left: %q", left)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 { // b and _fencepost
		t.Errorf("root holds %v, %v", entries, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An error of the reader keeps its kind: it is not the storage's, and a permission error of the source says nothing
// about the storage.
func TestReaderErrorsAreNotClassified(t *testing.T) {
	s := open(t, Options{})
	for _, sourceErr := range []error{fs.ErrPermission, syscall.ENOSPC, io.ErrUnexpectedEOF} {
		_, err := s.Put(t.Context(), "a", iotest.ErrReader(sourceErr), storage.Condition{})
		if !errors.Is(err, sourceErr) || errors.Is(err, storage.ErrPermanent) {
			t.Errorf("got %v", err)
		}
	}
}

func TestMinFree(t *testing.T) {
	s := open(t, Options{MinFree: 1 << 61})
	r := strings.NewReader("x")
	_, err := s.Put(t.Context(), "a", r, storage.Condition{})
	if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), "bytes free, min_free is 2305843009213693952") {
		t.Errorf("got %v", err)
	}
	if r.Len() != 1 {
		t.Error("the reader was read")
	}
	root := t.TempDir()
	s = open(t, Options{Root: root, MinFree: 100})
	var asked int
	s.freeSeam = func() (int64, error) {
		if asked++; asked == 1 {
			return 100, nil
		}
		return 99, nil
	}
	_, err = s.Put(t.Context(), "a", io.LimitReader(zeros{}, 80<<20), storage.Condition{})
	if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), "99 bytes free, min_free is 100") || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if left := temps(t, root); len(left) != 0 {
		t.Errorf("temporaries left: %q", left)
	}
	if free, err := s.Free(); err != nil || free <= 0 {
		t.Errorf("free: %d, %v", free, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestErrorsOfTheSystemAreClassified(t *testing.T) {
	s := open(t, Options{})
	s.freeSeam = func() (int64, error) { return 4096, nil }
	full := s.classify(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !errors.Is(full, storage.ErrPermanent) || !errors.Is(full, storage.ErrFull) || !strings.Contains(full.Error(), "disk full, 4096 bytes free") {
		t.Errorf("disk full: %v", full)
	}
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EROFS, syscall.ENAMETOOLONG} {
		if err := s.classify(&fs.PathError{Op: "open", Path: "x", Err: errno}); !errors.Is(err, storage.ErrPermanent) {
			t.Errorf("%v may be tried again", errno)
		}
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.EINTR} {
		if err := s.classify(&fs.PathError{Op: "open", Path: "x", Err: errno}); storage.Final(err) {
			t.Errorf("%v may not be tried again", errno)
		}
	}
}

func TestHandlesShareOneRoot(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, Options{Root: root}), open(t, Options{Root: root})
	info := put(t, a, "o", "one")
	var wg sync.WaitGroup
	won := make(chan string, 16)
	for i := range 16 {
		s, content := a, "a"
		if i%2 == 1 {
			s, content = b, "b"
		}
		wg.Go(func() {
			_, err := s.Put(t.Context(), "o", strings.NewReader(content), storage.Condition{Version: info.Version})
			if err == nil {
				won <- content
			} else if !errors.Is(err, storage.ErrStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d won", len(won))
	}
	if b, err := os.ReadFile(filepath.Join(root, "o")); err != nil || string(b) != <-won {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, Options{Root: root}), open(t, Options{Root: root})
	info := put(t, a, "o", "x")
	unlock, err := a.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Storage{a, b} { // the same handle waits for the goroutine, the other for the file
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := s.Put(ctx, "o", strings.NewReader("y"), storage.Condition{Version: info.Version})
			done <- err
		}()
		select {
		case err := <-done:
			t.Fatalf("the lock was not waited for: %v", err)
		case <-time.After(200 * time.Millisecond): // long enough for a Put that does not wait to end
			cancel()
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	unlock()
	if err := b.Delete(t.Context(), "o"); err != nil {
		t.Error(err)
	}
}

func TestReadOnly(t *testing.T) {
	root := t.TempDir()
	put(t, open(t, Options{Root: root}), "o", "x")
	s := open(t, Options{Root: root, ReadOnly: true})
	_, err := s.Put(t.Context(), "p", strings.NewReader("x"), storage.Condition{})
	if !errors.Is(err, storage.ErrPermanent) {
		t.Errorf("put: %v", err)
	}
	if err := s.Delete(t.Context(), "o"); !errors.Is(err, storage.ErrPermanent) {
		t.Errorf("delete: %v", err)
	}
	r, _, err := s.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, []byte("x")) {
		t.Errorf("got %q, %v", b, err)
	}
}

// Kernels give files the time of their last tick, milliseconds ago, which two contents may share; Put sets its own.
func TestThePartOfAVersionThatIsTimeIsFine(t *testing.T) {
	s := open(t, Options{})
	for i := range 50 {
		before := time.Now()
		if info := put(t, s, fmt.Sprint(i), "x"); info.Modified.Before(before) || info.Modified.After(time.Now()) {
			t.Fatalf("put at %v, modified %v", before, info.Modified)
		}
	}
}
