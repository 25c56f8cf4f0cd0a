package offline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a restore cannot go into is refused before anything is opened or asked, with what it can go into: a scratch server,
// be it a throw-away one or one that is there, and a name that is not in the configuration.
func TestShelfRestoresIntoDatabasesOnly(t *testing.T) {
	dir := t.TempDir()
	open := func(databases string) *Shelf {
		t.Helper()
		file := filepath.Join(dir, "n.yaml")
		text := "node: n1\nhome: " + filepath.Join(dir, "home") + "\nstorages:\n- {name: a, kind: local, path: " + dir + "}\n" + databases
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenShelf(ShelfOptions{Config: file, Storage: "a"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	const scratch = "- {name: lab, scratch: true}\n- {name: test, scratch: true, dsn: \"postgres://127.0.0.1:1/x\"}\n"
	with := open("databases:\n- {name: shop, dsn: \"postgres://127.0.0.1:1/shop\"}\n" + scratch + "- {name: till, dsn: \"postgres://127.0.0.1:1/till\"}\n")
	without := open("databases:\n" + scratch)
	for _, c := range []struct {
		shelf                *Shelf
		database, part, hint string
	}{
		{with, "lab", "scratch server", "name one of: shop, till"},
		{with, "test", "scratch server", "name one of: shop, till"},
		{with, "shpo", `no database named "shpo"`, "name one of: shop, till"},
		{without, "lab", "scratch server", "has none"},
		{without, "shop", "no database named", "has none"},
	} {
		_, _, err := c.shelf.Restore(t.Context(), ShelfRestore{Backup: "b", Database: c.database, Target: "new"})
		var advice *adviceError
		if !errors.As(err, &advice) || !strings.Contains(err.Error(), c.part) || !strings.Contains(advice.Hint(), c.hint) {
			t.Errorf("into %s: %v", c.database, err)
		}
	}
	if _, _, err := with.Restore(t.Context(), ShelfRestore{Backup: "b", Database: "till"}); err == nil || !strings.Contains(err.Error(), "storage a") {
		t.Errorf("into a database: %v", err) // the next thing that is looked at: nobody has used the storage
	}
}
