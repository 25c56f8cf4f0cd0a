package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api anew")

const renew = "if that is meant, run `make api` and commit what it writes; README.md, \"Versions\", says what may change when"

// TestExportedAPI: what hosts can see of the library is what testdata/api lists, so that nobody changes it unnoticed.
func TestExportedAPI(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: some of the API is of one system only")
	}
	for _, c := range ofLibrary(t, false) {
		file := filepath.Join("testdata", "api", strings.ReplaceAll(c.path, "/", "_")+".txt")
		got := c.api()
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: %s", err, renew)
			continue
		}
		if changes := difference(strings.Split(strings.TrimSpace(string(text)), "\n"), got); len(changes) > 0 {
			t.Errorf("the exported API of %s is not what %s lists: %s\n%s", c.path, file, renew, strings.Join(changes, "\n"))
		}
	}
}

// difference lists what has gone (-) and what is new (+).
func difference(want, got []string) (list []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			list = append(list, "- "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			list = append(list, "+ "+line)
		}
	}
	return list
}

// api lists what a package exports, one line each, sorted.
func (c checked) api() []string {
	deprecated := c.deprecated()
	var out []string
	add := func(name, format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if deprecated[name] {
			line += " // deprecated"
		}
		out = append(out, line)
	}
	scope := c.types.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			add(name, "const %s %s = %s", name, c.typeText(o.Type()), o.Val().ExactString())
		case *types.Var:
			add(name, "var %s %s", name, c.typeText(o.Type()))
		case *types.Func:
			add(name, "func %s%s", name, c.signature(o))
		case *types.TypeName:
			c.apiOfType(o, add)
		}
	}
	slices.Sort(out)
	return out
}

func (c checked) apiOfType(o *types.TypeName, add func(name, format string, args ...any)) {
	name := o.Name()
	switch u := o.Type().Underlying().(type) {
	case *types.Struct:
		add(name, "type %s struct", name)
		for f := range u.Fields() {
			if f.Exported() {
				embedded := map[bool]string{true: "embedded "}[f.Embedded()]
				add(name+"."+f.Name(), "type %s struct, %s%s %s", name, embedded, f.Name(), c.typeText(f.Type()))
			}
		}
	case *types.Interface:
		sealed := ""
		for m := range u.Methods() {
			if !m.Exported() {
				sealed = ", sealed"
			}
		}
		add(name, "type %s interface%s", name, sealed)
		for m := range u.Methods() {
			if m.Exported() {
				add(name+"."+m.Name(), "type %s interface, %s%s", name, m.Name(), c.signature(m))
			}
		}
		return
	default:
		add(name, "type %s %s", name, c.typeText(u))
	}
	values := types.NewMethodSet(o.Type())
	for m := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		f := m.Obj().(*types.Func)
		if !f.Exported() {
			continue
		}
		pointer := "*"
		if values.Lookup(f.Pkg(), f.Name()) != nil {
			pointer = ""
		}
		add(name+"."+f.Name(), "method (%s%s) %s%s", pointer, name, f.Name(), c.signature(f))
	}
}

// signature is a function's type without the names of its parameters, which anybody may change.
func (c checked) signature(f *types.Func) string {
	s := f.Signature()
	bare := types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic())
	return strings.TrimPrefix(c.typeText(bare), "func")
}

func unnamed(list *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range list.Variables() {
		vars = append(vars, types.NewVar(v.Pos(), v.Pkg(), "", v.Type()))
	}
	return types.NewTuple(vars...)
}

func (c checked) typeText(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.types || p.Path() == c.types.Path() {
			return ""
		}
		return p.Name()
	})
}

// deprecation is how a name is marked that will go: what to use instead, and the first version that says so.
var deprecation = regexp.MustCompile(`(?m)^Deprecated: since v\d+\.\d+\.0, use \S.*\.`)

// deprecated are the names, and the members of types, that are marked as deprecated.
func (c checked) deprecated() map[string]bool {
	out := map[string]bool{}
	for _, d := range c.documented() {
		if strings.Contains(d.text, "Deprecated:") {
			out[d.name] = true
		}
	}
	return out
}

// foreignTypes finds what hosts would get to see of other modules, and of what is internal, through a package's exports.
func (c checked) foreignTypes(allowed ...string) []string {
	w := walker{seen: map[types.Type]bool{}, allowed: allowed}
	scope := c.types.Scope()
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() {
			w.walk(c.types.Name()+"."+name, o.Type())
		}
	}
	return w.problems
}

type walker struct {
	seen     map[types.Type]bool
	allowed  []string // packages that may show, though they are internal
	problems []string
}

func (w *walker) walk(way string, t types.Type) {
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.walk(way, types.Unalias(t))
	case *types.Named:
		if w.goesOn(way, t) {
			w.members(way, t)
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			w.walk(way, v.Type())
		}
		for v := range t.Results().Variables() {
			w.walk(way, v.Type())
		}
	case *types.Map:
		w.walk(way, t.Key())
		w.walk(way, t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.walk(way+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				w.walk(way+"."+m.Name(), m.Type())
			}
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walk(way, t.Elem())
	}
}

// goesOn judges whose a named type is; of the standard library's nothing more has to be known.
func (w *walker) goesOn(way string, t *types.Named) bool {
	for arg := range t.TypeArgs().Types() {
		w.walk(way, arg)
	}
	pkg := t.Obj().Pkg()
	switch {
	case pkg == nil:
		return false
	case !below(pkg.Path(), module):
		if strings.Contains(strings.SplitN(pkg.Path(), "/", 2)[0], ".") {
			w.problems = append(w.problems, fmt.Sprintf("%s shows %s, a type of another module", way, t))
		}
		return false
	case strings.Contains(pkg.Path(), "/internal/"):
		if !slices.Contains(w.allowed, strings.TrimPrefix(pkg.Path(), module+"/")) {
			w.problems = append(w.problems, fmt.Sprintf("%s shows %s, which is internal", way, t))
		}
		return false
	}
	return true
}

func (w *walker) members(way string, t *types.Named) {
	w.walk(way, t.Underlying())
	for m := range t.Methods() {
		if m.Exported() {
			w.walk(way+"."+m.Name(), m.Type())
		}
	}
}

// TestNoForeignTypes: no exported name of the library, nor what is reached from it, is of another module or internal. The
// one door is what gms.Config has for package gmstest.
func TestNoForeignTypes(t *testing.T) {
	for _, c := range ofLibrary(t, false) {
		for _, problem := range c.foreignTypes("gms/internal/seam") {
			t.Error(problem)
		}
	}
}

// TestNoGlobalState: no package of the library, the internal ones included, keeps anything in a variable of its own: what
// they declare is never assigned to again, and the process's own defaults (its logger, its HTTP client, its metrics, its
// flags) are not used.
func TestNoGlobalState(t *testing.T) {
	for _, c := range ofLibrary(t, true) {
		for _, problem := range c.globalState() {
			t.Error(problem)
		}
	}
}

// processWide are the standard library's variables and functions by which packages would meet each other.
var processWide = []string{
	"log/slog.Default", "log/slog.SetDefault", "log/slog.Debug", "log/slog.Info", "log/slog.Warn", "log/slog.Error",
	"log.Default", "log.Print", "log.Printf", "log.Println", "log.Fatal", "log.Fatalf",
	"net/http.DefaultClient", "net/http.DefaultServeMux", "net/http.Get", "net/http.Handle", "net/http.HandleFunc",
	"expvar.Publish", "flag.CommandLine", "flag.String", "flag.Parse", "os.Setenv", "os.Chdir", "os.Exit",
}

func (c checked) globalState() (problems []string) {
	own := func(e ast.Expr) (string, bool) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				v, ok := c.info.Uses[x].(*types.Var)
				return x.Name, ok && v.Parent() == c.types.Scope()
			default:
				return "", false
			}
		}
	}
	refuse := func(n ast.Node, e ast.Expr) {
		if name, is := own(e); is {
			problems = append(problems, fmt.Sprintf("%s: %s is of the package and is changed: make it a field of a value that somebody constructs", c.at(n.Pos()), name))
		}
	}
	for _, f := range c.files {
		if ast.IsGenerated(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					refuse(n, e)
				}
			case *ast.IncDecStmt:
				refuse(n, n.X)
			case *ast.UnaryExpr:
				if n.Op.String() == "&" {
					refuse(n, n.X)
				}
			case *ast.Ident:
				if o := c.info.Uses[n]; o != nil && o.Pkg() != nil && slices.Contains(processWide, o.Pkg().Path()+"."+o.Name()) &&
					o.Parent() == o.Pkg().Scope() {
					problems = append(problems, fmt.Sprintf("%s: %s.%s is of the whole process: take it as an argument", c.at(n.Pos()), o.Pkg().Name(), o.Name()))
				}
			}
			return true
		})
	}
	return problems
}
