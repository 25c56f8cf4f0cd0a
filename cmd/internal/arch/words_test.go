package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// skipReasons are the beginnings of all reasons for which a test may be skipped. None of
// them says that something is not built yet.
var skipReasons = []string{
	"long test: set FENCEPOST_LONG=1",
	"needs Linux",
	"needs root",
	"needs a user other than root",
	"needs IPv6",
	"this machine does not let the test mount a file system",
}

func checkInit(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.generated {
				continue
			}
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					out = append(out, fmt.Sprintf("%s: init function: make it a value that somebody constructs", t.at(fn)))
				}
			}
		}
	}
	return out
}

func checkSleep(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if !f.test {
				continue
			}
			if importName(f, "time") == "." {
				out = append(out, fmt.Sprintf("%s: dot import of time", f.name))
			}
			for _, call := range sleeps(f) {
				out = append(out, fmt.Sprintf("%s: time.Sleep in a test: wait for a condition or a signal, or use a synctest bubble", t.at(call)))
			}
		}
	}
	return out
}

// sleeps are the calls of time.Sleep outside function literals given to synctest.Test:
// inside a bubble the clock is the test's own.
func sleeps(f file) []*ast.CallExpr {
	name, bubble := importName(f, "time"), importName(f, "testing/synctest")
	var out []*ast.CallExpr
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if bubble != "" && isCall(call, bubble, "Test") {
			return false
		}
		if name != "" && isCall(call, name, "Sleep") {
			out = append(out, call)
		}
		return true
	})
	return out
}

func checkSkips(t *tree) []string {
	var out []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if importName(f, "testing") == "" {
				continue
			}
			for _, call := range skips(f) {
				if !listedReason(call) {
					out = append(out, fmt.Sprintf("%s: skip without a listed reason (skipReasons in cmd/internal/arch/words_test.go)", t.at(call)))
				}
			}
		}
	}
	return out
}

// skips are the calls of x.Skip, x.Skipf and x.SkipNow, where x is not the T of a
// property test (there a skip only throws a random input away).
func skips(f file) []*ast.CallExpr {
	var out []*ast.CallExpr
	var walk func(n ast.Node, rapid map[string]bool)
	walk = func(n ast.Node, rapid map[string]bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					walk(n.Body, withParams(rapid, n.Type))
				}
				return false
			case *ast.FuncLit:
				walk(n.Body, withParams(rapid, n.Type))
				return false
			case *ast.CallExpr:
				if x, ok := skipReceiver(n); ok && !rapid[x] {
					out = append(out, n)
				}
			}
			return true
		})
	}
	walk(f.syntax, nil)
	return out
}

// withParams is the set outer after the parameters of a function shadowed it.
func withParams(outer map[string]bool, fn *ast.FuncType) map[string]bool {
	inner := make(map[string]bool, len(outer))
	for name, is := range outer {
		inner[name] = is
	}
	for _, field := range fn.Params.List {
		star, _ := field.Type.(*ast.StarExpr)
		is := star != nil && isSelector(star.X, "rapid", "T")
		for _, name := range field.Names {
			inner[name.Name] = is
		}
	}
	return inner
}

func skipReceiver(call *ast.CallExpr) (string, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
		return "", false
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name, true
	}
	return "", true
}

func listedReason(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	reason, err := strconv.Unquote(lit.Value)
	return err == nil && slices.ContainsFunc(skipReasons, func(r string) bool { return strings.HasPrefix(reason, r) })
}

// importName is the name under which f sees the package path; empty when it does not.
func importName(f file, path string) string {
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value != strconv.Quote(path) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

func isCall(call *ast.CallExpr, pkg, name string) bool { return isSelector(call.Fun, pkg, name) }

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
