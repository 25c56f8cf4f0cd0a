package arch

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// texts are packages by import path, given as their text, which import each other and the standard library.
type texts map[string]string

func (x texts) Import(path string) (*types.Package, error) {
	if text, ok := x[path]; ok {
		c, err := x.check(path, text)
		return c.types, err
	}
	return importer.Default().Import(path)
}

func (x texts) check(path, text string) (checked, error) {
	c := checked{path: strings.TrimPrefix(path, module+"/"), fset: token.NewFileSet(), info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}}
	f, err := parser.ParseFile(c.fset, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return c, err
	}
	c.files = []*ast.File{f}
	conf := types.Config{Importer: x}
	c.types, err = conf.Check(path, c.fset, c.files, c.info)
	return c, err
}

// TestLibraryRulesSee gives each rule about the library a package that breaks it in one place, and the nearest one that does
// not.
func TestLibraryRulesSee(t *testing.T) {
	x := texts{
		"example.org/vendor":       "package vendor; type T struct{}",
		module + "/gms/internal/x": "package x; type T struct{}",
		module + "/other":          "package other; import \"example.org/vendor\"; type T struct { V vendor.T; v vendor.T }; type Good struct { v vendor.T }",
	}
	vendor, internal, other := `import "example.org/vendor"; `, `import "`+module+`/gms/internal/x"; `, `import "`+module+`/other"; `
	foreign := func(c checked) []string { return c.foreignTypes() }
	cases := []struct {
		name, text string
		check      func(checked) []string
		want       string // part of the only problem; empty: none
	}{
		{"foreign field", vendor + "type T struct { F []map[string]*vendor.T }", foreign, "p.T.F shows example.org/vendor.T"},
		{"foreign embedded", vendor + "type T struct { vendor.T }", foreign, "p.T.T shows example.org/vendor.T"},
		{"foreign parameter", vendor + "func F(func(vendor.T)) {}", foreign, "p.F shows"},
		{"foreign result of a method", vendor + "type T struct{}; func (T) M() chan vendor.T { return nil }", foreign, "p.T.M shows"},
		{"foreign through an interface", vendor + "type I interface { M(vendor.T) }", foreign, "p.I.M shows"},
		{"foreign variable", vendor + "var V vendor.T", foreign, "p.V shows"},
		{"foreign through another of ours", other + "type T struct { F other.T }", foreign, "p.T.F.V shows"},
		{"hidden in another of ours", other + "type T struct { F other.Good }", foreign, ""},
		{"foreign inside", vendor + "type T struct { f vendor.T }; func f(vendor.T) {}", foreign, ""},
		{"internal", internal + "type T struct { F x.T }", foreign, "which is internal"},

		{"assigned", "var v int; func F() { v = 1 }", checked.globalState, "v is of the package and is changed"},
		{"counted", "var v struct{ n int }; func F() { v.n++ }", checked.globalState, "v is of the package"},
		{"entry of a map", "var v = map[string]int{}; func F() { v[\"a\"] = 1 }", checked.globalState, "v is of the package"},
		{"address", "var v int; func F() *int { return &v }", checked.globalState, "v is of the package"},
		{"shadowed", "var v int; func F() { v := 1; v = 2; _ = v }", checked.globalState, ""},
		{"read", "var v = []int{1}; func F() int { return v[0] }", checked.globalState, ""},
		{"the process's logger", "import \"log/slog\"; func F() { slog.Info(\"x\") }", checked.globalState, "slog.Info is of the whole process"},
		{"a logger's method", "import \"log/slog\"; func F(l *slog.Logger) { l.Info(\"x\") }", checked.globalState, ""},

		{"undocumented", "func F() {}", docProblems, "func F has no doc"},
		{"undocumented field", "// T is.\ntype T struct { F int }", docProblems, "field T.F has no doc"},
		{"undocumented method of an interface", "// T is.\ntype T interface { F() }", docProblems, "method T.F has no doc"},
		{"one of a documented group", "// Both.\nconst (\n A = 1\n B = 2\n)", docProblems, ""},
		{"hidden", "type t struct { F int }; func (t) M() {}; func f() {}", docProblems, ""},
		{"named in the words of the field before", "// T is.\ntype T struct {\n F int // and G is\n G int\n}", docProblems, ""},
		{"error left out", "// F does.\nfunc F() error { return nil }", docProblems, "returns an error and does not say which"},
		{"error told", "// F does. ErrX when it cannot.\nfunc F() error { return nil }", docProblems, ""},
		{"default left out", "// Config says.\ntype Config struct {\n // F is how often.\n F int\n}", docProblems, "does not say what it is when nobody sets it"},
		{"default told", "// Config says.\ntype Config struct {\n // F is how often; default 3.\n F int\n}", docProblems, ""},
		{"link", "// T is as [U] and [T.F] say.\ntype T struct { F int }\ntype U int", checked.brokenLinks, ""},
		{"link to nothing", "// T is as [V] says.\ntype T struct{}", checked.brokenLinks, "[V] links to nothing"},
		{"link to no member", "// T is as [T.F] says.\ntype T struct{}", checked.brokenLinks, "[T.F] links to nothing"},
		{"deprecated without successor", "// F is.\n//\n// Deprecated: do not use.\nfunc F() {}", docProblems, `say "Deprecated: since`},
		{"deprecated", "// F is.\n//\n// Deprecated: since v1.2.0, use G.\nfunc F() {}", docProblems, ""},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			c, err := x.check(module+"/p", "package p\n\n"+k.text)
			if err != nil {
				t.Fatal(err)
			}
			got := k.check(c)
			if k.want == "" && len(got) > 0 {
				t.Fatalf("problems in a good package: %q", got)
			}
			if k.want != "" && (len(got) != 1 || !strings.Contains(got[0], k.want)) {
				t.Fatalf("problems %q, want one with %q", got, k.want)
			}
		})
	}
}

// TestListOfAPI: what a line of testdata/api looks like, and that a change of each kind shows.
func TestListOfAPI(t *testing.T) {
	c, err := texts{}.check(module+"/p", `package p
import "context"
// Max is.
const Max = 3
// T is.
type T struct {
	A, b int
	context.Context
}
// M is.
//
// Deprecated: since v1.2.0, use N.
func (t *T) M(ctx context.Context, names ...string) (n int, err error) { return 0, nil }
// V is.
func (t T) V() {}
// I is.
type I interface { F(x int) T; hidden() }
// D is.
type D int
func hidden() {}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"const Max untyped int = 3",
		"method (*T) M(context.Context, ...string) (int, error) // deprecated",
		"method (T) Deadline() (time.Time, bool)",
		"method (T) Done() <-chan struct{}",
		"method (T) Err() error",
		"method (T) V()",
		"method (T) Value(any) any",
		"type D int",
		"type I interface, F(int) T",
		"type I interface, sealed",
		"type T struct",
		"type T struct, A int",
		"type T struct, embedded Context context.Context",
	}
	if got := c.api(); !slices.Equal(got, want) {
		t.Errorf("the list is\n%s", strings.Join(got, "\n"))
	}
	if got := difference(want, want[1:]); !slices.Equal(got, []string{"- const Max untyped int = 3"}) {
		t.Errorf("a name that has gone shows as %q", got)
	}
	if got := difference(want[1:], want); !slices.Equal(got, []string{"+ const Max untyped int = 3"}) {
		t.Errorf("a new name shows as %q", got)
	}
}
