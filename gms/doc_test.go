package gms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every name that the table of what there is gives is there, and every file that the page tells of.
func TestTheTableOfNamesIsTrue(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, begun := strings.Cut(string(text), "// # What there is\n")
	table, _, ended := strings.Cut(table, "// # After a restart\n")
	if !begun || !ended {
		t.Fatal("doc.go has no table of what there is")
	}
	rows := 0
	there := map[string]bool{}
	for _, dir := range []string{".", "../signals", "../recovery"} {
		exported(t, dir, there)
	}
	addMembers(there)
	for line := range strings.Lines(table) {
		row := regexp.MustCompile(`^//\t  (.{33}) (\S.*)$`).FindStringSubmatch(strings.TrimRight(line, "\n"))
		if row == nil {
			continue
		}
		rows++
		for _, name := range regexp.MustCompile(`\b[A-Z]\w+(\.[A-Z]\w+)?\b`).FindAllString(row[2], -1) {
			if !there[name] { // a lone name may be a member of the type that the row has named before
				t.Errorf("%q: there is no %s", strings.TrimSpace(row[1]), name)
			}
		}
	}
	if rows < 25 {
		t.Errorf("the table has %d rows", rows)
	}
	for _, file := range regexp.MustCompile(`\b[a-z]+\.go\b`).FindAllString(string(text), -1) {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("there is no file %s", file)
		}
	}
}

func addMembers(there map[string]bool) {
	for name := range maps.Clone(there) {
		if _, member, ok := strings.Cut(name, "."); ok {
			there[member] = true
		}
	}
}

// Every name of ours that the README gives to those who come from elsewhere is there.
func TestTheTablesOfMovingAreTrue(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, pages, begun := strings.Cut(string(text), "\n### From Shoal\n")
	pages, _, ended := strings.Cut(pages, "\n## ")
	if !begun || !ended {
		t.Fatal("README.md has no page from Shoal")
	}
	there := map[string]bool{}
	for _, dir := range []string{".", "../signals", "../recovery"} {
		exported(t, dir, there)
	}
	addMembers(there)
	rows := 0
	for line := range strings.Lines(pages) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 {
			continue
		}
		rows++
		for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(cells[1], -1) {
			for _, name := range regexp.MustCompile(`\b[A-Z]\w+(\.[A-Z]\w+)?\b`).FindAllString(code, -1) {
				if !there[name] {
					t.Errorf("%s: there is no %s", cells[0], name)
				}
			}
		}
	}
	if rows < 35 {
		t.Errorf("the tables have %d rows", rows)
	}
}

// exported collects the exported names of a directory: Name, and Type.Method or Type.Field.
func exported(t *testing.T, dir string, there map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				there[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					exportedSpec(s, there)
				}
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

func exportedSpec(s ast.Spec, there map[string]bool) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			there[n.Name] = true
		}
	case *ast.TypeSpec:
		there[s.Name.Name] = true
		if x, ok := s.Type.(*ast.StructType); ok {
			for _, f := range x.Fields.List {
				for _, n := range f.Names {
					there[s.Name.Name+"."+n.Name] = true
				}
			}
		}
		if x, ok := s.Type.(*ast.InterfaceType); ok {
			for _, f := range x.Methods.List {
				for _, n := range f.Names {
					there[s.Name.Name+"."+n.Name] = true
				}
			}
		}
	}
}
