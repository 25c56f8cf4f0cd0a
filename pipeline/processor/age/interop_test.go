package age_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/age"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

// publicPair is a key made by the public tool.
func publicPair(t *testing.T) pair {
	t.Helper()
	secret := processortest.Tool(t, nil, "age-keygen")
	public := processortest.Tool(t, secret, "age-keygen", "-y")
	return pair{strings.TrimSpace(string(public)), file(t, string(secret), 0o600)}
}

func TestThePublicToolOpensWhatWrapWrites(t *testing.T) {
	for name, key := range map[string]pair{"x25519": publicPair(t), "ssh-ed25519": ed25519Pair(t, ""), "ssh-rsa": rsaPair(t)} {
		p := load(t, age.Files{Recipients: []string{key.recipient}})
		for _, n := range []int{0, 10, 64 << 10, 64<<10 + 1, 3 << 20} {
			content := processortest.Sample(n)
			stored := processortest.Wrap(t, p, content)
			if got := processortest.Tool(t, stored, "age", "-d", "-i", key.identity); !bytes.Equal(got, content) {
				t.Errorf("%s: %d of %d bytes came back", name, len(got), n)
			}
			if _, said, err := processortest.TryTool(t, stored[:len(stored)-1], "age", "-d", "-i", key.identity); err == nil {
				t.Errorf("%s: the tool takes a cut object for a whole one: %s", name, said)
			}
		}
	}
}

func TestUnwrapOpensWhatThePublicToolWrites(t *testing.T) {
	for name, key := range map[string]pair{"x25519": publicPair(t), "ssh-ed25519": ed25519Pair(t, ""), "ssh-rsa": rsaPair(t)} {
		p := load(t, age.Files{Identity: key.identity})
		for _, n := range []int{0, 10, 64 << 10, 3 << 20} {
			content := processortest.Sample(n)
			stored := processortest.Tool(t, content, "age", "-r", key.recipient)
			got, err := processortest.Unwrap(p, bytes.NewReader(stored))
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: got %d of %d bytes, %v", name, len(got), n, err)
			}
			_, err = processortest.Unwrap(p, bytes.NewReader(stored[:len(stored)-1]))
			if !errors.Is(err, processor.ErrTruncated) {
				t.Errorf("%s, cut: %v", name, err)
			}
		}
	}
}

// An object of the usual chain goes through the two public tools in the documented order, to a file, and the other way.
func TestTheUsualChainAndThePublicTools(t *testing.T) {
	key := publicPair(t)
	sealer := load(t, filesOf(key))
	content := processortest.Sample(3 << 20)
	var object bytes.Buffer
	w, err := processor.WrapAll([]processor.Processor{sealer, zstd.Default()}, &object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("data"), object.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	processortest.Tool(t, nil, "age", "-d", "-i", key.identity, "-o", path("data.zst"), path("data"))
	processortest.Tool(t, nil, "zstd", "-q", "-d", path("data.zst"), "-o", path("plain"))
	if got, err := os.ReadFile(path("plain")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	registry, err := processor.NewRegistry(sealer, zstd.Default())
	if err != nil {
		t.Fatal(err)
	}
	made := processortest.Tool(t, processortest.Tool(t, content, "zstd", "-q", "-c"), "age", "-r", key.recipient)
	got, err := unwrapAll(registry, []string{"zstd", "age"}, made)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("made by the tools: %d bytes, %v", len(got), err)
	}
	if _, err := unwrapAll(registry, []string{"age", "zstd"}, made); !errors.Is(err, processor.ErrCorrupt) {
		t.Errorf("in the wrong order: %v", err)
	}
}

func unwrapAll(registry processor.Registry, names []string, object []byte) ([]byte, error) {
	r, err := registry.UnwrapAll(names, bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	return b.Bytes(), errors.Join(err, r.Close())
}
