package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// library are the packages that host apps import: what they export is listed (testdata/api), documented to the last field,
// and shows no type of a foreign module.
var library = []string{
	"signals", "gms", "gms/certs", "gms/protocol", "gms/gmstest", "recovery", "recovery/home", "recovery/warden", "pipeline/component", "cmd/components",
}

// checked is one package of the library, parsed with its comments and type-checked.
type checked struct {
	path  string // relative to the module
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// listed is one package as the go command knows it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
	Module                  *struct{ Path string }
}

// goList asks the go command about packages and all that they import.
func goList(patterns ...string) ([]listed, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard,Module"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Dir = "../../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var list []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// loadLibrary type-checks the library, and what of it is internal, once for all tests.
var loadLibrary = sync.OnceValues(func() ([]checked, error) {
	var patterns []string
	for _, path := range library {
		patterns = append(patterns, "./"+path)
	}
	list, err := goList(patterns...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var out []checked
	for _, p := range list {
		if !below(p.ImportPath, module) {
			continue
		}
		c := checked{path: strings.TrimPrefix(p.ImportPath, module+"/"), fset: fset, info: &types.Info{
			Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			c.files = append(c.files, f)
		}
		conf := types.Config{Importer: imports}
		if c.types, err = conf.Check(p.ImportPath, fset, c.files, c.info); err != nil {
			return nil, fmt.Errorf("check %s: %w", p.ImportPath, err)
		}
		out = append(out, c)
	}
	return out, nil
})

// ofLibrary gives the packages that hosts import, or all of ours below them.
func ofLibrary(t *testing.T, internal bool) []checked {
	t.Helper()
	all, err := loadLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(c checked) bool { return !internal && !slices.Contains(library, c.path) })
}

// at is where something is, for messages.
func (c checked) at(pos token.Pos) string {
	p := c.fset.Position(pos)
	return fmt.Sprintf("%s/%s:%d", c.path, filepath.Base(p.Filename), p.Line)
}
