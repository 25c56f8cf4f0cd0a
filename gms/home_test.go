package gms

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func mustOpenHome(t *testing.T, dir string) *homeDir {
	t.Helper()
	h, _, err := openHome(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHomeKeepsItsIdentity(t *testing.T) {
	dir := t.TempDir()
	h := mustOpenHome(t, dir)
	id := h.id
	gf := groupFile{Version: 1, Group: "test", ClusterID: strings.Repeat("0a", 16), Peers: map[string]string{"n2": "127.0.0.1:7"}}
	if err := errors.Join(h.remember(gf), h.close()); err != nil {
		t.Fatal(err)
	}
	again, memory, err := openHome(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	if again.id != id || memory.ClusterID != gf.ClusterID || memory.Peers["n2"] != gf.Peers["n2"] {
		t.Errorf("id %x, then %x; memory %+v", id, again.id, memory)
	}
	for name, mode := range map[string]os.FileMode{"node.key": 0o600, "group.json": 0o600, "raft": 0o700} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, fi.Mode(), err)
		}
	}
}

func TestHomesAreDifferent(t *testing.T) {
	a, b := mustOpenHome(t, t.TempDir()), mustOpenHome(t, t.TempDir())
	defer a.close()
	defer b.close()
	if a.id == b.id || a.idHex() == b.idHex() {
		t.Error("two homes with one id")
	}
}

func TestHomeHasOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := mustOpenHome(t, dir)
		_, _, err := openHome(dir, "test")
		if !errors.Is(err, ErrHomeInUse) {
			t.Errorf("second opening: %v", err)
		}
		var hint interface{ Hint() string }
		if !errors.As(err, &hint) || hint.Hint() == "" {
			t.Errorf("no remedy in %v", err)
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
		mustOpenHome(t, dir).close()
	})
}

// Who starts a node again at once, after its last run was killed, waits for what is left of that run.
func TestHomeIsGivenUpALittleLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := mustOpenHome(t, dir)
		time.AfterFunc(lockWait-lockPause, func() { _ = h.close() })
		begun := time.Now()
		mustOpenHome(t, dir).close()
		if took := time.Since(begun); took > lockWait {
			t.Errorf("it took %v", took)
		}
	})
}

func TestHomesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   error
		text   string
	}{
		"of another group":  {write("group.json", `{"version":1,"group":"other"}`), ErrOtherGroup, `"other"`},
		"of a newer build":  {write("group.json", `{"version":2,"group":"test"}`), nil, "newer build"},
		"broken group.json": {write("group.json", `{`), nil, "group.json"},
		"short key":         {write("node.key", "abc"), nil, "node.key has 3 bytes"},
		"a log without key": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "node.key")), write("raft/wal", "x")(dir))
		}, nil, "node.key is missing"},
		"a file in its way": {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, nil, "open home"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "home")
			if err := errors.Join(mustOpenHome(t, dir).close(), c.change(dir)); err != nil {
				t.Fatal(err)
			}
			_, _, err := openHome(dir, "test")
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v", err)
			}
			_ = os.RemoveAll(dir)
			mustOpenHome(t, dir).close() // nothing holds the place
		})
	}
}

func write(name, text string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
}

func TestClusterIDOfTheHome(t *testing.T) {
	for text, ok := range map[string]bool{"": true, strings.Repeat("ab", 16): true, "ab": false, "zz": false} {
		if _, err := (groupFile{ClusterID: text}).clusterID(); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A crash while a file is replaced leaves the old one.
func TestWriteFileReplacesAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := writeFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "old" {
		t.Errorf("%q", data)
	}
	if err := writeFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "new" {
		t.Errorf("%q", data)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left: %v", err)
	}
}
