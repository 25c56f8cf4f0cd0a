package state

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// FIELD.md R9: replicas differ when applying an entry reads a clock, draws a number or asks the machine that it runs on. The
// package cannot: it imports nothing of that kind.
func TestTheMachineHasNoClockAndDrawsNothing(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, i := range parsed.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if slices.Contains([]string{"time", "math/rand", "math/rand/v2", "crypto/rand", "os", "net", "sync", "sync/atomic", "context", "runtime", "syscall", "unsafe"}, path) {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d files", checked)
	}
}
