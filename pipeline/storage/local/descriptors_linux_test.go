package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// A hundred calls of each kind, those that fail too, leave no file open and no temporary.
func TestNothingStaysOpen(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	boom := errors.New("boom")
	round := func() {
		info := put(t, s, "b/1/data", "content")
		if _, err := s.Put(t.Context(), "b/1/data", strings.NewReader("x"), storage.Condition{}); !errors.Is(err, storage.ErrExists) {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "b/2/data", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(boom)), storage.Condition{}); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "b/1/data", strings.NewReader("y"), storage.Condition{Version: info.Version}); err != nil {
			t.Fatal(err)
		}
		r, _, err := s.Get(t.Context(), "b/1/data") // read in part only
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		for range s.List(t.Context(), "") {
			break
		}
		if _, _, err := s.Get(t.Context(), "none"); !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "b/1/data"); err != nil {
			t.Fatal(err)
		}
	}
	round()
	before := descriptors()
	for range 100 {
		round()
	}
	if after := descriptors(); after > before {
		t.Errorf("%d files are open, there were %d", after, before)
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
