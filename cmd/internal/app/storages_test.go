package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/local"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// directory is a local storage in a new directory.
func directory(t *testing.T) (storage.Storage, string) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := local.Open(local.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, root
}

// TestThreeDirectoriesOfOneName: what three nodes call by one name and what is not one folder is refused on the second
// and the third, by name, and nothing is written there; an empty one, and one that the group has used under another name.
func TestThreeDirectoriesOfOneName(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	log := slog.New(slog.DiscardHandler)
	first, _ := directory(t)
	ids, err := addStorages(t.Context(), a.group, map[string]storage.Storage{"nas": first}, log)
	if err != nil || ids["nas"] == "" {
		t.Fatalf("%v, %v", ids, err)
	}
	if again, err := addStorages(t.Context(), a.group, map[string]storage.Storage{"nas": first}, log); err != nil || again["nas"] != ids["nas"] {
		t.Errorf("the same one is refused: %v, %v", again, err)
	}
	second, empty := directory(t)
	third, used := directory(t)
	if _, err := storage.Adopt(t.Context(), third, storage.Adoption{Cluster: a.group.ClusterID()}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		s    storage.Storage
		root string
		want error
	}{{second, empty, storage.ErrNoOwner}, {third, used, storage.ErrOther}} {
		before := tree(t, test.root)
		_, err := addStorages(t.Context(), a.group, map[string]storage.Storage{"nas": test.s}, log)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), "storage nas") || HintOf(err, "") == "" {
			t.Errorf("another directory: %v, hint %q", err, HintOf(err, ""))
		}
		if after := tree(t, test.root); after != before {
			t.Errorf("another directory was written to: %s", after)
		}
	}
}

// TestTwoGroupsOnOneBucket: the second group is refused, by name, and writes nothing.
func TestTwoGroupsOnOneBucket(t *testing.T) {
	bucket := mem.New()
	other, err := storage.Adopt(t.Context(), bucket, storage.Adoption{Cluster: strings.Repeat("ab", 16), High: 7})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := start(t, config(t))
	ready(t, a)
	_, err = addStorages(t.Context(), a.group, map[string]storage.Storage{"cloud": bucket}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), "storage cloud") || !strings.Contains(err.Error(), other.Cluster) || HintOf(err, "") == "" {
		t.Errorf("%v, hint %q", err, HintOf(err, ""))
	}
	if now, err := storage.CheckOwner(t.Context(), bucket, other.Cluster); err != nil || now != other {
		t.Errorf("the owner became %+v, %v", now, err)
	}
}

// TestAStorageThatIsAway: one that the group knows and that does not answer does not keep a node from working.
func TestAStorageThatIsAway(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	log, inner, boom := slog.New(slog.DiscardHandler), mem.New(), errors.New("boom")
	away := map[string]storage.Storage{"cloud": storagetest.Inject(inner, storagetest.Fail(storagetest.Get, boom))}
	if _, err := addStorages(t.Context(), a.group, away, log); !errors.Is(err, boom) {
		t.Errorf("one that nobody has seen yet: %v", err)
	}
	ids, err := addStorages(t.Context(), a.group, map[string]storage.Storage{"cloud": inner}, log)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := addStorages(t.Context(), a.group, away, log); err != nil || now["cloud"] != ids["cloud"] || now["cloud"] == "" {
		t.Errorf("one that is away: %v, %v", now, err)
	}
}

// TestStorageTakenWhileTheNodeRuns: each node looks again and again; from then on nothing is read or written there, and
// the status says so until it is well again.
func TestStorageTakenWhileTheNodeRuns(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	a.checkOwners(t.Context())
	if err := a.strangeStorages(); err != nil {
		t.Fatal(err)
	}
	owner := filepath.Join(c.Storages[1].Path, "_fencepost", "owner.json")
	good, err := os.ReadFile(owner)
	if err != nil {
		t.Fatal(err)
	}
	b := a.work.stores()["b"]
	put := func(name string) error {
		_, err := b.Put(context.WithoutCancel(t.Context()), name, strings.NewReader("x"), storage.Condition{})
		return err
	}
	for _, test := range []struct {
		field string
		want  error
	}{{"cluster", storage.ErrForeign}, {"storage", storage.ErrOther}} {
		replaceOwner(t, c.Storages[1].Path, test.field, strings.Repeat("cd", 16))
		a.checkOwners(t.Context())
		if err := a.strangeStorages(); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "storage b") {
			t.Errorf("%s: %v", test.field, err)
		}
		if err := put("late/" + test.field); !errors.Is(err, test.want) {
			t.Errorf("%s: a put: %v", test.field, err)
		}
		if err := os.WriteFile(owner, good, 0o600); err != nil {
			t.Fatal(err)
		}
		a.checkOwners(t.Context())
		if err := errors.Join(a.strangeStorages(), put("well/"+test.field)); err != nil {
			t.Errorf("%s: %v", test.field, err)
		}
	}
}

// TestStorageUnmountedWhileTheNodeRuns: where its disk was there is an empty folder. That is an alarm, never an empty listing;
// nothing is written into the folder, and when the disk is back so is the storage.
func TestStorageUnmountedWhileTheNodeRuns(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	ctx, root := t.Context(), c.Storages[1].Path
	b := a.work.stores()["b"]
	if _, err := b.Put(ctx, "some/object", strings.NewReader("x"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(root, root+".disk"), os.Mkdir(root, 0o700)); err != nil {
		t.Fatal(err)
	}
	a.checkOwners(ctx)
	if err := a.strangeStorages(); err == nil || !strings.Contains(err.Error(), "storage b") || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("unmounted: %v", err)
	}
	alarmed := slices.ContainsFunc(a.look(ctx).Alarms, func(x api.Alarm) bool {
		return x.Kind == "storage" && strings.HasPrefix(x.About, "b on") && x.Severity == api.Critical && x.Hint != ""
	})
	if !alarmed {
		t.Errorf("no alarm: %+v", a.look(ctx).Alarms)
	}
	refused := false
	for _, err := range b.List(ctx, "") {
		refused = err != nil
	}
	if !refused {
		t.Error("it was listed")
	}
	if _, err := b.Put(ctx, "late", strings.NewReader("x"), storage.Condition{}); err == nil {
		t.Error("it was written to")
	}
	if err := b.Delete(ctx, "some/object"); err == nil {
		t.Error("an object of it was deleted")
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("in the empty folder: %v, %v", left, err)
	}
	if err := errors.Join(os.Remove(root), os.Rename(root+".disk", root)); err != nil {
		t.Fatal(err)
	}
	a.checkOwners(ctx)
	if err := a.strangeStorages(); err != nil {
		t.Errorf("mounted again: %v", err)
	}
	if _, err := b.Stat(ctx, "some/object"); err != nil {
		t.Errorf("what lies there: %v", err)
	}
}
