package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// file is one parsed Go file; name is its path in the tree.
type file struct {
	name      string
	test      bool
	generated bool
	syntax    *ast.File
	imports   []string
}

// pkg is one folder with Go files; path is relative to the module ("gms/internal/wire").
type pkg struct {
	path  string
	files []file
}

// tree is what the rules look at.
type tree struct {
	top   []string // names at the top level, dot files left out
	pkgs  []pkg
	fset  *token.FileSet
	index map[string]int
}

// readTree parses all Go files below root. Folders that start with a dot or an
// underscore, testdata, and folders with a go.mod of their own (other modules) are left
// out, as the go command does.
func readTree(root fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), index: map[string]int{}}
	entries, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, fmt.Errorf("read the top level: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			t.top = append(t.top, e.Name())
		}
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipDir(root, name)
		case strings.HasSuffix(name, ".go"):
			return t.add(root, name)
		}
		return nil
	})
	return t, err
}

func skipDir(root fs.FS, name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *tree) add(root fs.FS, name string) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	f := file{
		name:      name,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		syntax:    syntax,
	}
	for _, spec := range syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, p)
	}
	dir := path.Dir(name)
	i, known := t.index[dir]
	if !known {
		i = len(t.pkgs)
		t.index[dir] = i
		t.pkgs = append(t.pkgs, pkg{path: dir})
	}
	t.pkgs[i].files = append(t.pkgs[i].files, f)
	return nil
}

// at is file:line of a node, for messages.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
