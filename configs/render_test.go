package configs

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write node.example.yaml anew")

// TestExampleIsRendered: node.example.yaml is what the comments in Go say. `go test ./configs -update` writes it anew.
func TestExampleIsRendered(t *testing.T) {
	c := Default()
	want := Render(&c)
	if *update {
		if err := os.WriteFile("node.example.yaml", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("node.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test ./configs -update (-rendered +file):\n%s", diff)
	}
	for line := range strings.Lines(want) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestEveryKeyIsDocumented, once: each key of each section and of each list's entries has a comment, or follows one that is
// about both; each section and list has one of its own.
func TestEveryKeyIsDocumented(t *testing.T) {
	d := documentation()
	var walk func(reflect.Type)
	walk = func(s reflect.Type) {
		previous := ""
		for f := range s.Fields() {
			name := s.Name() + "." + f.Name
			below := f.Type
			if below.Kind() == reflect.Slice {
				below = below.Elem()
			}
			switch {
			case section(below):
				if d[name] == "" && d[below.Name()] == "" {
					t.Errorf("%s has no comment, nor has %s", name, below.Name())
				}
				walk(below)
			case d[name] == "" && !strings.Contains(previous, f.Name) && !strings.Contains(previous, "The trigger") && !strings.Contains(previous, "each of so many"):
				t.Errorf("%s has no comment, and the one before does not name it", name)
			case d[name] != "":
				previous = d[name]
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

// renderedIsRead holds that what is printed of a configuration is a configuration, the same one but for the secrets in it.
func renderedIsRead(t *testing.T, want *Config) {
	t.Helper()
	shown := Render(want)
	if strings.Contains(shown, "p%40ss") || strings.Contains(shown, "p@ss") {
		t.Error("a password is shown")
	}
	path := filepath.Join(t.TempDir(), "shown.yaml")
	if err := os.WriteFile(path, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	got, ps, err := read(path, nil)
	if err != nil || len(ps) > 0 {
		t.Fatal(err, ps)
	}
	same := cmp.Options{
		cmp.Comparer(func(a, b DSN) bool { return a.String() == b.String() }),
		cmp.Comparer(func(a, b Secret) bool { return a.String() == b.String() }),
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("(-loaded +printed and read again):\n%s", diff)
	}
}

// TestKeyed: an operator reads keys, not names of Go.
func TestKeyed(t *testing.T) {
	for text, want := range map[string]string{
		"Voters is the number of voters.":                    "The number of voters.",
		"ReapAfter is how long; more than Voters. Voters go": "How long; more than voters. Voters go",
		"Kind is zstd (default).":                            "zstd (default).",
		"SnapshotThreshold bounds it, PEM and CA too.":       "snapshot_threshold bounds it, PEM and CA too.",
	} {
		if got := keyed(text, reflect.TypeFor[Raft]()); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
