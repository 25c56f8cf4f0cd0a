package cli

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// prepared is the configuration of a node with a directory, and whose home says which group it is of.
func prepared(t *testing.T, root, cluster string) (config string) {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if cluster != "" {
		if err := (offline.Signers{Cluster: cluster, Keys: map[string]string{}}).Write(filepath.Join(home, offline.SignersName)); err != nil {
			t.Fatal(err)
		}
	}
	config = filepath.Join(dir, "n1.yaml")
	text := fmt.Sprintf("node: n1\nhome: %s\nstorages:\n- {name: disk, kind: local, path: %s}\ndatabases:\n- {name: d, dsn: \"postgres://127.0.0.1:1/d\"}\n- {name: lab, scratch: true}\n", home, root)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// files are the names of all files below root but the lock, which local storages make for themselves.
func files(t *testing.T, root string) (names string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			names += strings.TrimPrefix(path, root+"/") + "\n"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestStorageTestAddAdopt is the way of a storage: tried, added, refused to another group, taken over by it.
func TestStorageTestAddAdopt(t *testing.T) {
	root := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	one, other := strings.Repeat("1a", 16), strings.Repeat("2b", 16)
	ours, theirs, nobodys := prepared(t, root, one), prepared(t, root, other), prepared(t, root, "")
	const owner = "_fencepost/owner.json\n"
	for _, step := range []struct {
		stdin string
		args  string // after storage
		exit  int
		want  string // of what people see
		files string
	}{
		{"", "list disk --config " + ours, 1, "has no owner object", ""},
		{"", "list disk --config " + ours, 1, "hint: is " + root + " mounted?", ""},
		{"", "restore disk b --database d --config " + ours, 1, "has no owner object", ""},
		{"", "restore disk b --database lab --config " + ours, 1, "hint: name one of: d", ""},
		{"", "list disk --accept-foreign --config " + ours, 0, "no backups", ""},
		{"", "test disk --config " + ours, 0, "Nobody owns it yet", ""},
		{"", "add disk --config " + nobodys, 0, "Nobody owns it yet", ""},
		{"", "adopt disk --config " + ours, 1, "has no owner object", ""},
		{"", "add disk --config " + ours, 0, "It is the group's own (" + one, owner},
		{"", "test disk --config " + ours, 0, "abort", owner},
		{"", "test disk --append-only --config " + ours, 1, "the credentials may delete", owner},
		{"", "list disk --config " + ours, 0, "no backups", owner},
		{"", "test disk --config " + theirs, 1, "belongs to another cluster: " + one, owner},
		{"", "add disk --config " + theirs, 1, "belongs to another cluster: " + one, owner},
		{"", "test disk --config " + nobodys, 1, "by --signers", owner},
		{"", "adopt disk --config " + nobodys, 1, "which group is to own", owner},
		{"", "adopt disk --config " + ours, 0, "own already", owner},
		{"", "adopt disk --config " + theirs, 2, "add --yes", owner},
		{"no\n", "adopt disk --config " + theirs, 1, "not confirmed", owner},
		{"", "test disk --config " + ours, 0, "write", owner}, // still
		{"disk\n", "adopt disk --config " + theirs, 0, "it was that of " + one, owner},
		{"", "test disk --config " + theirs, 0, "It is the group's own (" + other, owner},
		{"", "test disk --config " + ours, 1, "belongs to another cluster: " + other, owner},
		{"", "adopt disk --yes --config " + ours, 0, "it was that of " + other, owner},
		{"", "test dusk --config " + ours, 1, `has no storage named "dusk"`, owner},
		{"", "list dusk --config " + ours, 1, "hint: it has: disk", owner},
		{"", "test disk --append-only", 2, "which node?", owner},
		{"", "add disk", 2, "which node?", owner},
		{"", "set disk --config " + ours, 2, "which secret?", owner},
		{"x", "set disk --secret-file - --config " + ours, 1, "kind local, which has no secret", owner},
	} {
		got := run(t, "", step.stdin, append([]string{"storage"}, strings.Fields(step.args)...)...)
		if seen := got.stdout + got.stderr; got.exit != step.exit || !strings.Contains(seen, step.want) {
			t.Errorf("storage %s: exit %d, want %d and %q:\n%s", step.args, got.exit, step.exit, step.want, seen)
		}
		if left := files(t, root); left != step.files {
			t.Errorf("storage %s: there are\n%swant\n%s", step.args, left, step.files)
		}
	}
	if err := os.Chmod(root, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(root, 0o700)
	if os.Getuid() != 0 {
		if got := run(t, "", "", "storage", "test", "disk", "--config", ours); got.exit != 1 || !strings.Contains(got.stdout, "write") || !strings.Contains(got.stderr, "cannot do all") {
			t.Errorf("a root that cannot be written: exit %d\n%s%s", got.exit, got.stdout, got.stderr)
		}
	}
}

// TestStorageSetSecret: a secret that opens the storage takes the place of the old one; any other changes nothing, and none
// is shown.
func TestStorageSetSecret(t *testing.T) {
	box, err := dropboxtest.New(dropboxtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(box)
	defer web.Close()
	file := filepath.Join(t.TempDir(), "box.token")
	if err := os.WriteFile(file, []byte("revoked\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := authorizing(t, web.URL, "file:"+file)
	const wrong = "a-wrong-secret"
	got := run(t, "", wrong, "storage", "set", "box", "--secret-file", "-", "--config", config)
	if now, err := os.ReadFile(file); got.exit != 1 || !strings.Contains(got.stderr, "the old one stays") || strings.Contains(got.stderr, wrong) || err != nil || string(now) != "revoked\n" {
		t.Errorf("a wrong one: exit %d, %s, the file holds %q, %v", got.exit, got.stderr, now, err)
	}
	next := filepath.Join(t.TempDir(), "next")
	if err := os.WriteFile(next, []byte(dropboxtest.DefaultRefreshToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = run(t, "", "", "storage", "set", "box", "--secret-file", next, "--config", config)
	now, err := os.ReadFile(file)
	if got.exit != 0 || err != nil || string(now) != dropboxtest.DefaultRefreshToken+"\n" || strings.Contains(got.stdout+got.stderr, dropboxtest.DefaultRefreshToken) {
		t.Errorf("exit %d, %s%s, the file holds %q, %v", got.exit, got.stdout, got.stderr, now, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside it: %v, %v", left, err)
	}
}
