package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
)

var (
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	sampleTest = regexp.MustCompile(`\bfunc (?:Test|Fuzz|Benchmark)[A-Z]\w+`)
)

// checkNamedTests holds comments to their word: a test that one names as proof, as the tables of faults and of duties do, is
// declared somewhere. What a comment shows as code (func TestX) is a sample.
func checkNamedTests(t *tree) []string {
	declared := map[string]bool{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					declared[n.Name.Name] = true
				case *ast.TypeSpec:
					declared[n.Name.Name] = true
				}
				return true
			})
		}
	}
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, group := range f.syntax.Comments {
				for _, c := range group.List {
					for _, name := range testName.FindAllString(sampleTest.ReplaceAllString(c.Text, ""), -1) {
						if !declared[name] {
							out = append(out, fmt.Sprintf("%s: there is no %s", t.at(c), name))
						}
					}
				}
			}
		}
	}
	return out
}

// namedFile is a Go file that a comment names as one of its own folder: without a path before it.
var namedFile = regexp.MustCompile(`(?:^|[\s(,;])([a-z][a-z0-9_]*\.go)\b`)

// checkNamedFiles holds comments to their word, the tours of package docs first of all: a file that one names lies beside it.
func checkNamedFiles(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		beside := map[string]bool{}
		for _, f := range p.files {
			beside[path.Base(f.name)] = true
		}
		for _, f := range p.files {
			if f.generated {
				continue
			}
			for _, group := range f.syntax.Comments {
				for _, c := range group.List {
					for _, m := range namedFile.FindAllStringSubmatch(c.Text, -1) {
						if !beside[m[1]] {
							out = append(out, fmt.Sprintf("%s: there is no %s", t.at(c), m[1]))
						}
					}
				}
			}
		}
	}
	return out
}
