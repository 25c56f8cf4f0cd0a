package arch

import (
	"fmt"
	"slices"
	"strings"
)

// topLevel is all there may be at the top, besides dot files and what is built.
var topLevel = []string{
	"cmd", "gms", "signals", "recovery", "pipeline", "configs",
	"go.mod", "go.sum", "Makefile", "README.md",
	"bin", // ignored by git
}

const (
	docLines     = 10 // of a package
	mainDocLines = 5  // of a command
)

// rule looks at the tree and says, one sentence each, what is wrong.
type rule struct {
	name  string
	check func(*tree) []string
}

var rules = []rule{
	{"top level", checkTopLevel},
	{"arrows", checkArrows},
	{"vendors", checkVendors},
	{"package docs", checkDocs},
	{"no init", checkInit},
	{"no sleep in tests", checkSleep},
	{"skips have a listed reason", checkSkips},
	{"tests that a comment names are there", checkNamedTests},
	{"files that a comment names are there", checkNamedFiles},
}

func checkTopLevel(t *tree) []string {
	var out []string
	for _, name := range t.top {
		if !slices.Contains(topLevel, name) {
			out = append(out, fmt.Sprintf("%s: the top level is fixed, put it below one of %s", name, strings.Join(topLevel[:6], " ")))
		}
	}
	return out
}

func checkArrows(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		r, known := findRow(p.path)
		if !known {
			out = append(out, fmt.Sprintf("%s: package without a row: add it to rows in cmd/internal/arch/table_test.go with what it may import", p.path))
			continue
		}
		for _, f := range p.files {
			for _, imp := range ours(f.imports) {
				if imp == p.path || r.allows(imp) || f.test && sameHalf(p.path, imp) {
					continue
				}
				out = append(out, fmt.Sprintf("%s: %s may not import %s (allowed: %s)", f.name, p.path, imp, r))
			}
		}
	}
	return out
}

func checkVendors(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, imp := range f.imports {
				if problem := vendorProblem(p, f, imp); problem != "" {
					out = append(out, problem)
				}
			}
		}
	}
	return out
}

func vendorProblem(p pkg, f file, imp string) string {
	if below(imp, module) || !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
		return "" // ours, or the standard library
	}
	for _, v := range vendors {
		if !below(imp, v.path) {
			continue
		}
		for _, by := range v.by {
			if by == f.name || match(by, p.path) {
				return ""
			}
		}
		return fmt.Sprintf("%s: only %s may import %s", f.name, strings.Join(v.by, ", "), imp)
	}
	for _, v := range testVendors {
		if !below(imp, v) {
			continue
		}
		if f.test || slices.Contains(testOnly, p.path) {
			return ""
		}
		return fmt.Sprintf("%s: %s is for tests only", f.name, imp)
	}
	return fmt.Sprintf("%s: library without a line: add %s to vendors in cmd/internal/arch/vendors_test.go with who may import it", f.name, imp)
}

func checkDocs(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		want := docLines
		if slices.Contains(mains, p.path) {
			want = mainDocLines
		}
		got := 0
		for _, f := range p.files {
			if f.syntax.Doc != nil {
				got = max(got, substance(f.syntax.Doc.Text()))
			}
		}
		if got < want {
			out = append(out, fmt.Sprintf("%s: package doc of %d lines, want %d or more: what it promises, how to use it, its invariants", p.path, got, want))
		}
	}
	return out
}

// substance counts the lines that say something.
func substance(doc string) int {
	n := 0
	for line := range strings.Lines(doc) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

func findRow(path string) (row, bool) {
	for _, r := range rows {
		if r.pkg == path {
			return r, true
		}
	}
	return row{}, false
}

func (r row) allows(path string) bool {
	hit := func(pattern string) bool { return match(pattern, path) }
	return slices.ContainsFunc(r.may, hit) && !slices.ContainsFunc(r.not, hit)
}

// String is what the row allows, for messages.
func (r row) String() string {
	if len(r.may) == 0 {
		return "nothing of ours"
	}
	return strings.Join(r.may, ", ")
}

// ours are the imports from our module, relative to it.
func ours(imports []string) []string {
	var out []string
	for _, imp := range imports {
		if below(imp, module) {
			out = append(out, strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"))
		}
	}
	return out
}

// sameHalf says whether a test in from may use the package to.
func sameHalf(from, to string) bool {
	return half(from) == "cmd" || half(from) == half(to)
}

func half(path string) string {
	top := strings.SplitN(path, "/", 2)[0]
	switch top {
	case "signals", "gms", "recovery":
		return "group"
	default:
		return top
	}
}

// match knows "...", "dir/...", "dir/*" and plain paths.
func match(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(path, dir)
	}
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		return path != dir && below(path, dir)
	}
	return pattern == path
}

// below says whether path is dir or something in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
