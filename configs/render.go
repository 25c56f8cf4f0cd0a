package configs

import (
	"embed"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sources are the files that document the keys: their comments are the only place where a key is explained.
//
//go:embed admin.go configs.go notify.go recurring.go security.go settings.go
var sources embed.FS

const (
	introduction = `The configuration of one fencepost node. Every key is here with its default; node is the only one that must be given. Each key
can also come from the environment, which wins over this file: FENCEPOST_RAFT_VOTERS=5 is raft.voters (lists of texts with commas between them; lists of
things with names come from the file only). Unknown keys are errors. A key that says so may be a reference instead of a value: env:NAME is an environment
variable, file:PATH the first line of a file, command:PROGRAM the first line that a program prints (without a shell, within half a minute): a secret is
better off there than here. fencepost init writes a set of these for several nodes, fencepost doctor examines one.`
	width = 118
)

// Render writes c as a file that Load reads, every key explained. Secrets are left out: what has one is written as its
// reference, or with *** in its place, so that the result can be shown to anybody.
func Render(c *Config) string {
	r := renderer{docs: documentation()}
	r.comment("", introduction)
	r.section(reflect.ValueOf(*c), "")
	return r.out.String()
}

// docs are the comments of types and of their fields ("Raft", "Raft.Voters").
type docs map[string]string

// documentation reads the comments. The files are part of the program: that they cannot be read is impossible.
func documentation() docs {
	d := docs{}
	entries, err := sources.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		text, err := sources.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		file, err := goparser.ParseFile(token.NewFileSet(), e.Name(), text, goparser.ParseComments)
		if err != nil {
			panic(err)
		}
		d.read(file)
	}
	return d
}

func (d docs) read(file *ast.File) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			d[named.Name.Name] = group.Doc.Text()
			fields, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					d[named.Name.Name+"."+name.Name] = f.Doc.Text()
				}
			}
		}
	}
}

type renderer struct {
	docs docs
	out  strings.Builder
}

// section writes the keys of a struct.
func (r *renderer) section(v reflect.Value, indent string) {
	previous := ""
	for f, value := range v.Fields() {
		if indent == "" {
			r.out.WriteString("\n")
		}
		doc := r.docs[v.Type().Name()+"."+f.Name]
		switch {
		case section(f.Type):
			if doc == "" {
				doc = r.docs[f.Type.Name()]
			}
			r.comment(indent, keyed(doc, v.Type(), f.Type))
			fmt.Fprintf(&r.out, "%s%s:\n", indent, key(f))
			r.section(value, indent+"  ")
			continue
		case f.Type.Kind() == reflect.Slice && section(f.Type.Elem()):
			r.list(v.Type(), f, value, doc, indent)
			continue
		case doc == "":
			doc = "See " + previous + "."
		default:
			previous = key(f)
		}
		r.comment(indent, keyed(doc, v.Type()))
		fmt.Fprintf(&r.out, "%s%s: %s\n", indent, key(f), yamlScalar(value))
	}
}

// list writes a list of things with names: what they are, their keys, and those that there are.
func (r *renderer) list(owner reflect.Type, f reflect.StructField, v reflect.Value, doc, indent string) {
	elem := f.Type.Elem()
	if doc == "" {
		doc = r.docs[elem.Name()]
	}
	r.comment(indent, keyed(doc, owner, elem))
	fmt.Fprintf(&r.out, "%s# The keys of an entry:\n", indent)
	r.entries(elem, indent, "#   ")
	if v.Len() == 0 {
		fmt.Fprintf(&r.out, "%s%s: []\n", indent, key(f))
		return
	}
	fmt.Fprintf(&r.out, "%s%s:\n", indent, key(f))
	for i := range v.Len() {
		r.entry(v.Index(i), indent+"  ")
	}
}

// entries explains the keys of a list's entries, as a comment.
func (r *renderer) entries(t reflect.Type, indent, prefix string) {
	previous := ""
	for f := range t.Fields() {
		doc := r.docs[t.Name()+"."+f.Name]
		if doc == "" {
			doc = "see " + previous + "."
		} else {
			previous = key(f)
		}
		if section(f.Type) {
			fmt.Fprintf(&r.out, "%s%s%s: %s\n", indent, prefix, key(f), firstLine(keyed(doc, t, f.Type)))
			r.entries(f.Type, indent, prefix+"  ")
			continue
		}
		text := keyed(strings.Join(strings.Fields(doc), " "), t)
		for i, line := range fill(key(f)+": "+text, width-len(indent)-len(prefix)-2) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintf(&r.out, "%s%s%s\n", indent, prefix, line)
		}
	}
}

func firstLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// entry writes what is set in an entry of a list.
func (r *renderer) entry(v reflect.Value, indent string) {
	lead := "- "
	for f, value := range v.Fields() {
		if value.IsZero() {
			continue
		}
		if section(f.Type) {
			fmt.Fprintf(&r.out, "%s%s%s: %s\n", indent, lead, key(f), flow(value))
		} else {
			fmt.Fprintf(&r.out, "%s%s%s: %s\n", indent, lead, key(f), yamlScalar(value))
		}
		lead = "  "
	}
	if lead == "- " {
		fmt.Fprintf(&r.out, "%s- {}\n", indent)
	}
}

func flow(v reflect.Value) string {
	var parts []string
	for f, value := range v.Fields() {
		if !value.IsZero() {
			parts = append(parts, key(f)+": "+yamlScalar(value))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// comment writes text as a comment: paragraphs are filled, what is set in by a tab stays as it is.
func (r *renderer) comment(indent, text string) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			for _, line := range fill(strings.Join(paragraph, " "), width-len(indent)-2) {
				fmt.Fprintf(&r.out, "%s# %s\n", indent, line)
			}
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
			flush()
			fmt.Fprintf(&r.out, "%s#   %s\n", indent, strings.TrimPrefix(line, "\t"))
		case strings.TrimSpace(line) == "":
			flush()
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
}

// goName is what a field or type may be called.
var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// keyed puts keys in the place of the names of fields: an operator knows only keys. A name at the beginning of the text is
// that of what is explained, and is left away.
func keyed(text string, types ...reflect.Type) string {
	names := map[string]string{}
	for _, t := range types {
		if t.Kind() != reflect.Struct {
			continue
		}
		for f := range t.Fields() {
			names[f.Name] = key(f)
		}
	}
	first, rest, _ := strings.Cut(text, " ")
	if goName.FindString(first) == first {
		for _, verb := range []string{"is ", "are "} {
			if after, ok := strings.CutPrefix(rest, verb); ok {
				return replaced(capital(after), names)
			}
		}
		if k, ok := names[first]; ok {
			return k + " " + replaced(rest, names)
		}
	}
	return replaced(text, names)
}

// replaced has keys in the place of names; a name that is an ordinary word at the beginning of a sentence stays.
func replaced(text string, names map[string]string) string {
	before := ""
	return word.ReplaceAllStringFunc(text, func(w string) string {
		k, ok := names[w]
		begins := before == "" || strings.HasSuffix(before, ".")
		before = w
		if !ok || begins && strings.ToLower(w[1:]) == w[1:] && w != strings.ToUpper(w) {
			return w
		}
		return k
	})
}

// word is a word with what ends a sentence after it.
var word = regexp.MustCompile(`[A-Za-z]+|\.`)

// openings are words that begin a sentence; others are values, and stay as they are.
var openings = []string{"the", "a", "an", "how", "what", "where", "which", "who", "whose", "after", "called", "its", "names", "web", "mail", "byte", "places", "gossip", "recurring", "autonomous"}

func capital(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if slices.Contains(openings, first) {
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// fill breaks text into lines of at most n columns.
func fill(text string, n int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > n:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// bare is a text that YAML takes for the text that it is.
var bare = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// scalar is a value as the file has it.
func yamlScalar(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return shortDuration(x)
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = text(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case fmt.Stringer:
		if n, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
		return text(x.String())
	case string:
		return text(x)
	}
	if v.Kind() == reflect.String {
		return text(v.String())
	}
	return fmt.Sprint(v.Interface())
}

func text(s string) string {
	switch s {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return strconv.Quote(s)
	}
	if bare.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// shortDuration leaves the units away that are zero: 72h, not 72h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

const settingsIntroduction = `Settings of a whole fencepost group: ` + "`fencepost apply -f DIR`" + ` has the group know what the files of a directory say, ` +
	"`fencepost export`" + ` writes what it knows. What an entry says nothing of has its default. Secrets are references that each node follows for itself:
env:NAME is an environment variable, file:PATH the first line of a file, command:PROGRAM the first line that a program prints.`

// RenderSettings writes s as a file that LoadSettings reads, every key explained.
func RenderSettings(s Settings) string {
	r := renderer{docs: documentation()}
	r.comment("", settingsIntroduction)
	r.section(reflect.ValueOf(s), "")
	return r.out.String()
}
