package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// documentedName is something that is exported, with what is said of it.
type documentedName struct {
	name   string // Name, Type.Method or Type.Field
	text   string // its doc and its comment at the end of the line
	pos    token.Pos
	kind   string // func, method, type, field, value
	fails  bool   // a function that returns an error
	option bool   // a field of a struct that a host fills in
}

// documented lists what a package exports, with its words. A group of constants or variables, and several fields in one
// declaration, share theirs.
func (c checked) documented() (list []documentedName) {
	for _, f := range c.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				recv := receiverName(d)
				if !d.Name.IsExported() || recv != "" && !ast.IsExported(recv) {
					continue
				}
				n := documentedName{name: d.Name.Name, text: d.Doc.Text(), pos: d.Pos(), kind: "func", fails: returnsError(d.Type)}
				if recv != "" {
					n.name, n.kind = recv+"."+n.name, "method"
				}
				list = append(list, n)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					list = append(list, documentedSpec(d, s)...)
				}
			}
		}
	}
	return list
}

func documentedSpec(d *ast.GenDecl, s ast.Spec) (list []documentedName) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		text := s.Doc.Text() + s.Comment.Text()
		if text == "" {
			text = d.Doc.Text()
		}
		for _, n := range s.Names {
			if n.IsExported() {
				list = append(list, documentedName{name: n.Name, text: text, pos: n.Pos(), kind: "value"})
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		text := s.Doc.Text() + s.Comment.Text()
		if text == "" {
			text = d.Doc.Text()
		}
		list = append(list, documentedName{name: s.Name.Name, text: text, pos: s.Pos(), kind: "type"})
		list = append(list, documentedMembers(s, text)...)
	}
	return list
}

// documentedMembers lists fields and methods. One that has no words of its own may be named in those of the field before it,
// or of its type.
func documentedMembers(s *ast.TypeSpec, ofType string) (list []documentedName) {
	var fields *ast.FieldList
	kind, filled := "field", false
	switch x := s.Type.(type) {
	case *ast.StructType:
		fields = x.Fields
		filled = regexp.MustCompile(`(Config|Options|Policy)$`).MatchString(s.Name.Name)
	case *ast.InterfaceType:
		fields, kind = x.Methods, "method"
	default:
		return nil
	}
	before := "" // what is said of the field before
	for _, f := range fields.List {
		text := f.Doc.Text() + f.Comment.Text()
		for _, n := range f.Names {
			if !n.IsExported() {
				continue
			}
			own := text
			if own == "" && namedIn(before, n.Name) {
				own = before
			}
			if own == "" && namedIn(ofType, n.Name) {
				own = ofType
			}
			before = own
			d := documentedName{name: s.Name.Name + "." + n.Name, text: own, pos: n.Pos(), kind: kind, option: filled}
			if ft, ok := f.Type.(*ast.FuncType); ok && kind == "method" {
				d.fails = returnsError(ft)
			}
			list = append(list, d)
		}
	}
	return list
}

func namedIn(text, name string) bool { return regexp.MustCompile(`\b` + name + `\b`).MatchString(text) }

func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func returnsError(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	for _, r := range f.Results.List {
		if id, ok := r.Type.(*ast.Ident); ok && id.Name == "error" {
			return true
		}
	}
	return false
}

var (
	tellsErrors  = regexp.MustCompile(`\bErr[A-Z]\w*|[Ee]rror|\bfail|\brefuse|\bnil\b|\bctx\b`)
	tellsDefault = regexp.MustCompile(`(?i)\bdefault|\brequired|\bnil\b|\b0\b|\bempty|\bzero|\bfalse\b|\bset\b|\bnone\b|\bwithout\b|\bomitted|\bleft out|\boptional|\bnegative`)
	selfEvident  = regexp.MustCompile(`\.(Error|Is|Unwrap|String)$`) // what the language says of them is enough
)

// docProblems finds what a stranger would miss: words at all; what an error may be; what an option is when it is not set;
// what to use instead of a deprecated name.
func docProblems(c checked) (problems []string) {
	for _, d := range c.documented() {
		miss := func(what string) {
			problems = append(problems, fmt.Sprintf("%s: %s %s %s", c.at(d.pos), d.kind, d.name, what))
		}
		switch {
		case strings.TrimSpace(d.text) == "":
			if !selfEvident.MatchString(d.name) {
				miss("has no doc")
			}
		case d.fails && !tellsErrors.MatchString(d.text) && !selfEvident.MatchString(d.name):
			miss("returns an error and does not say which, or when")
		case d.option && !tellsDefault.MatchString(d.text):
			miss("does not say what it is when nobody sets it")
		case strings.Contains(d.text, "Deprecated:") && !deprecation.MatchString(d.text):
			miss(`is deprecated; say "Deprecated: since vX.Y.0, use Z."`)
		}
	}
	return problems
}

// brokenLinks finds what docs of a package link to and what is not there: [Name], and [Type.Member].
func (c checked) brokenLinks() (problems []string) {
	for _, f := range c.files {
		for _, group := range f.Comments {
			for _, m := range regexp.MustCompile(`\[([A-Z]\w*)(?:\.([A-Z]\w*))?\]`).FindAllStringSubmatch(group.Text(), -1) {
				o := c.types.Scope().Lookup(m[1])
				if o != nil && m[2] != "" {
					o, _, _ = types.LookupFieldOrMethod(o.Type(), true, c.types, m[2])
				}
				if o == nil {
					problems = append(problems, fmt.Sprintf("%s: %s links to nothing", c.at(group.Pos()), m[0]))
				}
			}
		}
	}
	return problems
}

// TestEveryNameIsDocumented: each exported name of the library, down to fields and methods of interfaces, has a doc that
// says what a stranger cannot guess.
func TestEveryNameIsDocumented(t *testing.T) {
	for _, c := range ofLibrary(t, false) {
		for _, problem := range append(docProblems(c), c.brokenLinks()...) {
			t.Error(problem)
		}
	}
}
