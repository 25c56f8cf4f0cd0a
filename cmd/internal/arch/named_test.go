package arch

import (
	"fmt"
	"go/ast"
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
