package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"relative", Options{Root: "backups"}, "is not an absolute path"},
		{"missing", Options{Root: filepath.Join(dir, "missing")}, "does not exist"},
		{"file", Options{Root: file}, "is not a directory"},
		{"min_free", Options{Root: dir, MinFree: -1}, "min_free is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.o)
			if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
			if !strings.Contains(err.Error(), c.o.Root) {
				t.Errorf("%v does not name the root", err)
			}
		})
	}
}

func TestOpenLeavesTheRootUntouched(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	for range s.List(t.Context(), "") {
		t.Error("something is listed")
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := storage.CheckOwner(t.Context(), s, "c"); !errors.Is(err, storage.ErrNoOwner) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("root holds %v, %v", entries, err)
	}
}

// A symbolic link never leads out of the root, whatever call follows it, and a link is no object.
func TestLinksDoNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for link, target := range map[string]string{"dir": outside, "file": secret, "up": "../../etc"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Options{Root: root})
	put(t, s, "good", "x")
	for _, name := range []string{"file", "dir/secret", "up/passwd", "dir/new", "dir"} {
		if r, _, err := s.Get(t.Context(), name); err == nil {
			b, _ := io.ReadAll(r)
			t.Errorf("get %s: %q", name, b)
		}
		if _, err := s.Stat(t.Context(), name); err == nil {
			t.Errorf("stat %s finds something", name)
		}
		if _, err := s.Put(t.Context(), name, strings.NewReader("overwritten"), storage.Condition{}); err == nil {
			t.Errorf("put %s succeeds", name)
		}
		_ = s.Delete(t.Context(), name)
		for info, err := range s.List(t.Context(), name) {
			if err == nil {
				t.Errorf("list %s shows %s", name, info.Name)
			}
		}
	}
	var names []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	if !slices.Equal(names, []string{"good"}) {
		t.Errorf("listed %q", names)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file outside now holds %q, %v", b, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

// What the path shows may change after Open: unmounted, mounted over, replaced. Nothing may be listed or written then.
func TestAReplacedRootIsAnError(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Root: root})
	put(t, s, "o", "x")
	check := func(state string) {
		t.Helper()
		for info, err := range s.List(t.Context(), "") {
			if err == nil {
				t.Errorf("%s: listed %s", state, info.Name)
			} else {
				goto put
			}
		}
		t.Errorf("%s: the listing is empty and without an error", state)
	put:
		if _, err := s.Put(t.Context(), "p", strings.NewReader("x"), storage.Condition{}); err == nil {
			t.Errorf("%s: put succeeds", state)
		}
		if _, err := s.Stat(t.Context(), "p"); err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: stat: %v", state, err)
		}
		if err := s.Delete(t.Context(), "o"); err == nil {
			t.Errorf("%s: delete succeeds", state)
		}
	}
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	check("gone")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	check("replaced")
	if _, err := os.Stat(filepath.Join(root+".away", "o")); err != nil {
		t.Errorf("the object was touched: %v", err)
	}
}

func TestForeignFilesAreNotListed(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	put(t, s, "good", "x")
	if runtime.GOOS != "windows" {
		for _, name := range []string{"tab\tname", `back\slash`, "bad\xffutf8"} {
			if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
				t.Logf("this file system refuses %q: %v", name, err)
			}
		}
	}
	n := 0
	for info, err := range s.List(t.Context(), "") {
		if err != nil || info.Name != "good" {
			t.Errorf("%v, %v", info, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d listed", n)
	}
}

func TestAFileCutWhileItIsReadIsAnError(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	put(t, s, "o", strings.Repeat("x", 1000))
	for _, size := range []int64{500, 2000} {
		r, _, err := s.Get(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(root, "o"), size); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("file set to %d bytes: read %d, %v", size, len(b), err)
		}
		_ = r.Close()
		if err := os.Truncate(filepath.Join(root, "o"), 1000); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAChangeByHandIsANewVersion(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	info := put(t, s, "o", "one")
	if err := os.WriteFile(filepath.Join(root, "o"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), "o", strings.NewReader("x"), storage.Condition{Version: info.Version})
	if !errors.Is(err, storage.ErrStale) {
		t.Errorf("got %v", err)
	}
}

func TestDeleteRemovesEmptyFoldersOnly(t *testing.T) {
	root := t.TempDir()
	s := open(t, Options{Root: root})
	put(t, s, "a/b/c", "x")
	put(t, s, "a/d", "x")
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "a", "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
	if _, err := s.Stat(t.Context(), "a/d"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), "a/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err != nil {
		t.Errorf("the root itself: %v", err)
	}
}
