package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTree runs every rule over the repository.
func TestTree(t *testing.T) {
	tree, err := readTree(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if _, here := tree.index["cmd/internal/arch"]; !here {
		t.Fatal("the tree was not found: this very package is not in it")
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, problem := range r.check(tree) {
				t.Error(problem)
			}
		})
	}
}

// TestTable finds typing errors in the tables: patterns that name nothing, rows twice.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.pkg] {
			t.Errorf("%s: two rows", r.pkg)
		}
		seen[r.pkg] = true
	}
	patterns := slices.Concat(testOnly, mains)
	for _, r := range rows {
		patterns = append(patterns, r.may...)
		patterns = append(patterns, r.not...)
	}
	for _, v := range vendors {
		for _, by := range v.by {
			if dir, ok := strings.CutSuffix(by, ".go"); ok {
				by = dir[:strings.LastIndex(dir, "/")]
			}
			patterns = append(patterns, by)
		}
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(rows, func(r row) bool { return match(p, r.pkg) }) {
			t.Errorf("%s: names no row", p)
		}
	}
}

// TestHalves holds the law behind the table: pipeline never meets the group.
func TestHalves(t *testing.T) {
	for _, r := range rows {
		for _, other := range rows {
			a, b := half(r.pkg), half(other.pkg)
			if a == "cmd" || a == b || !r.allows(other.pkg) {
				continue
			}
			t.Errorf("%s may import %s: the halves meet only in cmd", r.pkg, other.pkg)
		}
	}
}
