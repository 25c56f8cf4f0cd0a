package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// TestTries: a node tries the databases and storages that it works with, says what is wrong with those that do not, and leaves
// nothing behind; and it shows the manifest of a backup as it lies there.
func TestTries(t *testing.T) {
	c := config(t)
	node, _ := start(t, c)
	ready(t, node)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	ctx := t.Context()
	if got, err := client.TryStorage(ctx, "a"); err != nil || !got.Good || len(got.Steps) < 5 || len(got.Left) != 0 {
		t.Errorf("a storage: %+v, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(c.Storages[0].Path, "storage-test-*", "*")); err != nil || len(left) != 0 {
		t.Errorf("a try leaves %v, %v", left, err)
	}
	if got, err := client.TryDatabase(ctx, "shop"); err != nil || got.Good || got.Skipped || got.Found == "" || strings.Contains(got.Found+got.Hint, "secret") {
		t.Errorf("a database that nobody serves: %+v, %v", got, err)
	}
	var e *api.Error
	if _, err := client.TryStorage(ctx, "nas"); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Errorf("a storage that is not there: %v", err)
	}
	if _, err := client.TryDatabase(ctx, "books"); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Errorf("a database that is not there: %v", err)
	}

	id := pipeline.NewID(node.clock.Now())
	err := node.work.ledger.ImportBackup(ctx, ledger.Backup{ID: id, Database: "shop", State: ledger.BackupCompleted, Token: 7, Created: node.clock.Now(), Copies: []ledger.Copy{{Storage: "a", State: "missing"}, {Storage: "b", State: ledger.CopyPresent}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Manifest(ctx, id, ""); !errors.As(err, &e) || e.Code != api.CodeNotFound {
		t.Errorf("a manifest that does not lie there: %v", err)
	}
	path := filepath.Join(c.Storages[1].Path, filepath.FromSlash(pipeline.ManifestPath(id, 7)))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"format":2,"backup":"`+id+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := client.Manifest(ctx, id, ""); err != nil || m.Storage != "b" || m.Token != 7 || string(m.Manifest) != `{"format":2,"backup":"`+id+`"}` {
		t.Errorf("%+v, %v", m, err)
	}
	if err := os.Remove(filepath.Join(c.Storages[0].Path, "_fencepost", "owner.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := client.TryStorage(ctx, "a"); err != nil || got.Good || got.Found == "" || len(got.Steps) != 0 {
		t.Errorf("a storage that is nobody's any more: %+v, %v", got, err)
	}
}
