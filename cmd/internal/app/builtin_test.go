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

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/processor"
)

// catalogOf opens a configuration with these processors alone.
func catalogOf(t *testing.T, ps ...configs.Processor) pipeline.Catalog {
	t.Helper()
	o, err := openConfigured(configs.Config{Processors: ps}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cat, err := o.catalog("c")
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

func TestAProcessorThatCannotStartIsNamed(t *testing.T) {
	_, err := openConfigured(configs.Config{Processors: []configs.Processor{
		{Kind: "zstd", Level: 1}, {Kind: "age", RecipientsFile: "/does/not/exist"},
	}}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "processors[1] age: read the recipients: open /does/not/exist") {
		t.Errorf("got %v", err)
	}
}
