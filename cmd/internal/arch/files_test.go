package arch

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestQuickStart: two commands do all the set-up, and the page says just these.
func TestQuickStart(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "README.md"), "\n## Quick start\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	blocks := strings.Split(section, "```")
	if len(blocks) != 3 || strings.TrimSpace(blocks[1]) != "make demo\nmake test" {
		t.Errorf("the quick start is %q, want one block with make demo and make test", section)
	}
}

// TestPackageTable: every folder of the top level has a line in the README.
func TestPackageTable(t *testing.T) {
	readme := readFile(t, "README.md")
	for _, dir := range topLevel[:6] {
		if !strings.Contains(readme, "\n| `"+dir+"`") && !strings.Contains(readme, "\n| `"+dir+"/") {
			t.Errorf("README.md: %s is not in the package table", dir)
		}
	}
}

// TestMakeTargets: all that people rely on is there, help comes first, and every target
// says in one sentence what it is for.
func TestMakeTargets(t *testing.T) {
	makefile := readFile(t, "Makefile")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.* ## [A-Z][^\n]*\.$`).FindAllStringSubmatch(makefile, -1) {
		documented[m[1]] = true
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
		if !documented[m[1]] {
			t.Errorf("Makefile: %s has no sentence after ##", m[1])
		}
	}
	for _, want := range []string{"help", "deps", "build", "demo", "test", "test-long", "race", "lint", "fmt", "generate", "clean"} {
		if !slices.Contains(targets, want) {
			t.Errorf("Makefile: no target %s", want)
		}
	}
	if !strings.Contains(makefile, "\n.DEFAULT_GOAL := help\n") {
		t.Error("Makefile: help is not the default")
	}
	for _, line := range []string{"\ntest: deps lint ", "\ndemo: deps build "} {
		if !strings.Contains(makefile, line) {
			t.Errorf("Makefile: want %q", line)
		}
	}
	if !strings.Contains(readFile(t, ".ci/run"), "make test") {
		t.Error(".ci/run does not call make test")
	}
}
