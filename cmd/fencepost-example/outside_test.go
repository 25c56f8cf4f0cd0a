package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fencepost/fencepost"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outside is a module of somebody else that uses this one, in a directory of its own: the programs of the README's page for
// host apps and the test of the first, word for word.
func outside(t *testing.T) (dir string) {
	t.Helper()
	_, page, found := strings.Cut(readFile(t, "README.md"), "\n## Embed it\n")
	page, _, _ = strings.Cut(page, "\n## ")
	var programs []string
	for _, m := range regexp.MustCompile("(?s)```go\n(package .*?)```").FindAllStringSubmatch(page, -1) {
		programs = append(programs, m[1])
	}
	if !found || len(programs) != 3 {
		t.Fatalf("README.md has %d programs for host apps, want a program, its test, and a component", len(programs))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := "module example.org/host\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	for _, part := range regexp.MustCompile(`(?ms)^(go \S+|toolchain \S+|require \(.*?^\))$`).FindAllString(readFile(t, "go.mod"), -1) {
		mod += "\n" + part + "\n"
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "export"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": mod, "go.sum": readFile(t, "go.sum"), "main.go": programs[0], "main_test.go": programs[1], "export/main.go": programs[2],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goTool runs the go command in a directory.
func goTool(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestOutsideModule: a stranger's module builds what the README shows, runs it, and its test of a recovery passes.
func TestOutsideModule(t *testing.T) {
	dir := outside(t)
	goTool(t, dir, "vet", ".")
	program := filepath.Join(dir, "host")
	goTool(t, dir, "build", "-o", program, ".")
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil || string(out) != "working on invoice-7\n" {
		t.Errorf("the program says %q, %v", out, err)
	}
	if out := goTool(t, dir, "test", "-count=1", "-v", "."); !strings.Contains(out, "--- PASS: TestPaymentsAreRecovered") {
		t.Errorf("its test says:\n%s", out)
	}
	noBallast(t, dir, ".")
}

// TestHostAppsLinkNoBallast: neither the library nor the example links what only backups need.
func TestHostAppsLinkNoBallast(t *testing.T) {
	noBallast(t, "../..", "./cmd/fencepost-example")
	noBallast(t, "../..", "./signals", "./gms/...", "./recovery/...", "./pipeline/component", "./cmd/components")
}

// ballast are the libraries of the other half, and the operator's.
var ballast = []string{
	"github.com/jackc/pgx", "github.com/dropbox", "github.com/minio", "github.com/spf13/viper", "github.com/spf13/cobra",
	"github.com/prometheus/client_golang", "github.com/klauspost/compress", "filippo.io/age", "github.com/pressly/goose",
	"github.com/robfig/cron", module + "/configs", module + "/cmd/internal",
}

func noBallast(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	linked := strings.Fields(goTool(t, dir, append([]string{"list", "-deps"}, patterns...)...))
	if !slices.Contains(linked, module+"/gms") {
		t.Errorf("%v do not even link gms: what was listed?", patterns)
	}
	for _, pkg := range linked {
		for _, b := range ballast {
			if pkg == b || strings.HasPrefix(pkg, b+"/") {
				t.Errorf("%v: links %s", patterns, pkg)
			}
		}
	}
}
