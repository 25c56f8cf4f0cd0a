package app

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox"
	"github.com/fencepost/fencepost/pipeline/storage/s3"
)

// catalogOf opens a configuration with these processors alone.
func catalogOf(t *testing.T, ps ...configs.Processor) pipeline.Catalog {
	t.Helper()
	o, err := openConfigured(configs.Config{Processors: ps}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cat, err := o.catalog("c", nil)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// through sends content through the chain of one catalog and back through the processors of another.
func through(t *testing.T, from, to pipeline.Catalog, content string) (stored []byte, back string, err error) {
	t.Helper()
	chain, err := from.Processors.Chain(from.Chain)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := processor.WrapAll(chain, &b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	stored = bytes.Clone(b.Bytes())
	r, err := to.Processors.UnwrapAll(processor.Names(chain), &b)
	if err != nil {
		return stored, "", err
	}
	got, err := io.ReadAll(r)
	return stored, string(got), errors.Join(err, r.Close())
}

func TestConfiguredProcessors(t *testing.T) {
	phrase := filepath.Join(t.TempDir(), "phrase")
	if err := os.WriteFile(phrase, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	zstd := configs.Processor{Kind: "zstd", Level: 1, Precedence: 100}
	gzip := configs.Processor{Kind: "gzip", Level: 1, Precedence: 90}
	age := configs.Processor{Kind: "age", PassphraseFile: phrase, Precedence: 50}
	content := strings.Repeat("a line that can be recognized\n", 1000)

	all := catalogOf(t, age, gzip, zstd)
	stored, back, err := through(t, all, all, content)
	if err != nil || back != content {
		t.Fatalf("%d of %d bytes came back, %v", len(back), len(content), err)
	}
	if !bytes.HasPrefix(stored, []byte("age-encryption.org/v1\n")) || bytes.Contains(stored, []byte("recognized")) {
		t.Errorf("the outermost layer is not age: %.40q", stored)
	}

	later := age // encryption was given up: new backups are made without it, older ones can be restored
	later.RestoreOnly = true
	kept := catalogOf(t, zstd, later)
	if !slices.Equal(kept.Chain, []string{"zstd"}) {
		t.Errorf("the chain of new backups is %q", kept.Chain)
	}
	if _, back, err = through(t, all, kept, content); err != nil || back != content {
		t.Errorf("an older backup: %d bytes, %v", len(back), err)
	}

	none := catalogOf(t)
	if len(none.Chain) != 0 {
		t.Errorf("chain %q", none.Chain)
	}
	if _, back, err = through(t, catalogOf(t, gzip, zstd), none, content); err != nil || back != content {
		t.Errorf("compressed elsewhere: %d bytes, %v", len(back), err)
	}
	if _, _, err = through(t, all, none, content); !errors.Is(err, processor.ErrKey) || !strings.Contains(err.Error(), "configured") {
		t.Errorf("encrypted elsewhere, no key here: %v", err)
	}
}

func TestConfiguredBucket(t *testing.T) {
	t.Setenv("TEST_S3_KEY", "hunter2")
	bucket := configs.Storage{Name: "cloud", Kind: "s3", Endpoint: "https://s3.example.org", Region: "r", Bucket: "bkt", Prefix: "shop",
		AccessKey: configs.NewSecret("id"), SecretKey: configs.NewSecret("env:TEST_S3_KEY"), PartSize: 8 << 20,
		Lock: configs.Lock{Mode: "governance", Days: 3}}
	open := func() (opened, error) {
		return openConfigured(configs.Config{Storages: []configs.Storage{bucket}}, slog.New(slog.DiscardHandler))
	}
	o, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := storage.As[*s3.Storage](o.storages["cloud"]); !ok || s == nil {
		t.Errorf("storage cloud is %T", o.storages["cloud"])
	}
	if err := o.closeAll(); err != nil {
		t.Error(err)
	}
	bucket.SecretKey = configs.NewSecret("env:TEST_S3_NO_KEY")
	if _, err := open(); err == nil || err.Error() != "storages[0] cloud: secret_key: environment variable TEST_S3_NO_KEY is not set" {
		t.Errorf("without its key: %v", err)
	}
}

// Two storages in one Dropbox account share it, and its limits with it.
func TestConfiguredAccounts(t *testing.T) {
	t.Setenv("TEST_BOX", "hunter2")
	t.Setenv("TEST_BOX_2", "hunter3")
	box := func(name, token string) configs.Storage {
		return configs.Storage{Name: name, Kind: "dropbox", AppKey: "k", RefreshToken: configs.NewSecret(token), Folder: name, PartSize: 8 << 20}
	}
	all := offline.Accounts{}
	for name, token := range map[string]string{"a": "env:TEST_BOX", "b": "env:TEST_BOX", "c": "env:TEST_BOX_2"} {
		st, closer, err := offline.OpenStorage(box(name, token), all, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := storage.As[*dropbox.Storage](st); !ok || s == nil {
			t.Errorf("storage %s is %T", name, st)
		}
		if err := closer(); err != nil {
			t.Error(err)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d accounts, want 2", len(all))
	}
	_, _, err := offline.OpenStorage(box("d", "env:TEST_NO_BOX"), all, false, slog.New(slog.DiscardHandler))
	if err == nil || err.Error() != "refresh_token: environment variable TEST_NO_BOX is not set" {
		t.Errorf("without its token: %v", err)
	}
}

func TestAProcessorThatCannotStartIsNamed(t *testing.T) {
	_, err := openConfigured(configs.Config{Processors: []configs.Processor{
		{Kind: "zstd", Level: 1}, {Kind: "age", RecipientsFile: "/does/not/exist"},
	}}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "processors[1] age: read the recipients: open /does/not/exist") {
		t.Errorf("got %v", err)
	}
}
