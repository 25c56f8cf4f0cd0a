package app

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
)

// TestAppendOnlyThroughTheStack: what the pipeline works with, retries and guard included, still is known for append-only, and
// deletes nothing; a storage beside it does.
func TestAppendOnlyThroughTheStack(t *testing.T) {
	t.Setenv("TEST_S3_KEY", "hunter2")
	log := slog.New(slog.DiscardHandler)
	o, err := openConfigured(configs.Config{Storages: []configs.Storage{{Name: "vault", Kind: "s3", Endpoint: "https://s3.example.org", Bucket: "bkt",
		AccessKey: configs.NewSecret("id"), SecretKey: configs.NewSecret("env:TEST_S3_KEY"), AppendOnly: true}}}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.closeAll(); err != nil {
			t.Error(err)
		}
	}()
	o.storages["kept"], o.storages["free"] = storage.AppendOnly(mem.New(), log), mem.New()
	ids := map[string]string{}
	for _, name := range []string{"kept", "free"} {
		owner, err := storage.Adopt(t.Context(), o.storages[name], storage.Adoption{Cluster: "c"})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = owner.Storage
	}
	cat, err := o.catalog("c", ids)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"vault": true, "kept": true, "free": false} {
		if got := storage.Keeps(t.Context(), cat.Storages[name]); got != want {
			t.Errorf("%s keeps what is stored: %v", name, got)
		}
	}
	for _, able := range []bool{has[storage.Janitor](cat.Storages["vault"]), has[storage.Locker](cat.Storages["vault"])} {
		if !able {
			t.Error("an ability of the bucket is hidden")
		}
	}
	for _, name := range []string{"kept", "free"} {
		s := cat.Storages[name]
		info, err := s.Put(t.Context(), "b/1/manifest.json", strings.NewReader("real"), storage.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "b/1/manifest.json", strings.NewReader("void"), storage.Condition{Version: info.Version}); err != nil {
			t.Errorf("%s: a tombstone: %v", name, err)
		}
		err = s.Delete(t.Context(), "b/1/manifest.json")
		if kept := errors.Is(err, storage.ErrPermanent) && strings.Contains(err.Error(), "append-only"); kept != (name == "kept") {
			t.Errorf("%s: delete: %v", name, err)
		}
		if _, err := s.Stat(t.Context(), "b/1/manifest.json"); (err == nil) != (name == "kept") {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

func has[T any](s storage.Storage) bool {
	_, ok := storage.As[T](s)
	return ok
}
