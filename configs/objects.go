package configs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Object is one thing of the settings by itself.
type Object struct {
	Kind string          // one of Kinds
	Name string          // of a retention: its database's
	Spec json.RawMessage // an object with the keys of the file, those that have their default left out
}

// Protocol is the lowest protocol of the group whose programs understand what o says. A node of an older one would pass over it.
func (o Object) Protocol() uint32 {
	need := max(1, later(o.Kind, "", ""))
	var said map[string]any
	if json.Unmarshal(o.Spec, &said) != nil {
		return need
	}
	var look func(path string, v any)
	look = func(path string, v any) {
		need = max(need, later(o.Kind, path, fmt.Sprint(v)))
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				look(join(path, k), inner)
			}
		case []any:
			for _, inner := range v {
				look(path, inner)
			}
		}
	}
	for k, v := range said {
		look(k, v)
	}
	return need
}

// Kinds are the kinds of objects, in the order in which one may name those before it.
func Kinds() []string {
	return []string{"storage", "server", "database", "schedule", "retention", "binding", "approval", "hook", "mail", "rule", "heartbeat"}
}

// FileKinds are the kinds of what files of settings hold: objects, and users, who are accounts and no objects.
func FileKinds() []string { return append(Kinds(), "user") }

// ListOf is the key of the list that things of a kind are in; empty for no kind.
func ListOf(kind string) string {
	switch {
	case kind == "retention":
		return kind
	case slices.Contains(FileKinds(), kind):
		return kind + "s"
	}
	return ""
}

// entries are the lists of s by kind.
func (s *Settings) entries(kind string) reflect.Value {
	for f, v := range reflect.ValueOf(s).Elem().Fields() {
		if key(f) == ListOf(kind) {
			return v
		}
	}
	return reflect.Value{}
}

// nameOf is what an entry is called.
func nameOf(entry reflect.Value) string {
	for f, v := range entry.Fields() {
		if k := key(f); k == "name" || k == "database" {
			return v.String() // retention has no name, the others have it first
		}
	}
	return ""
}

// fresh is an entry of a kind of which nothing was said but what its defaults depend on.
func fresh(t reflect.Type, storageKind string) reflect.Value {
	v := reflect.New(t)
	if d, ok := v.Interface().(interface{ setDefaults(kind string) }); ok {
		d.setDefaults(storageKind)
	}
	return v.Elem()
}

// Objects are all of them, by kind and name.
func (s *Settings) Objects() []Object {
	out := []Object{}
	for _, kind := range Kinds() {
		list := s.entries(kind)
		var some []Object
		for i := range list.Len() {
			entry := list.Index(i)
			some = append(some, Object{kind, nameOf(entry), specOf(entry)})
		}
		slices.SortFunc(some, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, some...)
	}
	return out
}

// specOf is what an entry says that is not its default anyway.
func specOf(entry reflect.Value) json.RawMessage {
	kind := ""
	if s, ok := entry.Interface().(Storage); ok {
		kind = s.Kind
	}
	said := unlike(entry, fresh(entry.Type(), kind))
	if kind != "" {
		said["kind"] = kind
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic("configs: an entry of plain fields was not encoded: " + err.Error())
	}
	return text
}

func unlike(entry, usual reflect.Value) map[string]any {
	out := map[string]any{}
	for f, v := range entry.Fields() {
		was := usual.FieldByIndex(f.Index)
		switch {
		case section(f.Type):
			if inner := unlike(v, was); len(inner) > 0 {
				out[key(f)] = inner
			}
		case v.Kind() == reflect.Slice && v.Len() == 0 && was.Len() == 0:
		case !reflect.DeepEqual(v.Interface(), was.Interface()):
			out[key(f)] = encode(v)
		}
	}
	return out
}

// FromObjects makes settings of objects. It is as strict as a file's reading, but does not validate them. The error is an
// *Error with all problems; what it returns beside one is what could be read.
func FromObjects(objects []Object) (Settings, error) {
	var s Settings
	var ps problems
	for _, o := range objects {
		at := strings.TrimSpace(o.Kind + " " + o.Name)
		if !slices.Contains(Kinds(), o.Kind) {
			ps.add(at, "is of no known kind: want %s", strings.Join(Kinds(), ", "))
			continue
		}
		var said map[string]any
		d := json.NewDecoder(strings.NewReader(string(o.Spec)))
		d.UseNumber()
		if err := d.Decode(&said); err != nil {
			ps.add(at, "is no object with keys: %s", oneLine(err))
			continue
		}
		list := s.entries(o.Kind)
		entry := fresh(list.Type().Elem(), kindOf(said))
		before := len(ps)
		decode(said, entry, at, &ps)
		if len(ps) == before {
			list.Set(reflect.Append(list, entry))
		}
	}
	return s, ps.err("")
}

// indexed is the beginning of a path in a list.
var indexed = regexp.MustCompile(`^([a-z]+)\[([0-9]+)\]\.?`)

// Named are problems of s whose paths say names in the place of numbers: database shop: dsn: is missing.
func (s *Settings) Named(err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	out := &Error{File: e.File}
	for _, p := range e.Problems {
		if m := indexed.FindStringSubmatch(p.Path); m != nil {
			i, _ := strconv.Atoi(m[2]) // the expression takes digits only
			for _, kind := range FileKinds() {
				if list := s.entries(kind); ListOf(kind) == m[1] && i < list.Len() {
					p.Path = fmt.Sprintf("%s %s: %s", kind, nameOf(list.Index(i)), strings.TrimPrefix(p.Path, m[0]))
				}
			}
			p.Path = strings.TrimSuffix(p.Path, ": ")
		}
		out.Problems = append(out.Problems, p)
	}
	return out
}

// Append adds what is in other to s.
func (s *Settings) Append(other Settings) {
	for _, kind := range FileKinds() {
		list := s.entries(kind)
		list.Set(reflect.AppendSlice(list, other.entries(kind)))
	}
}

// Text is s as a file that LoadSettings reads, without explanations; lists of kinds that are not wanted are left out. No
// kinds: all.
func (s *Settings) Text(kinds ...string) string {
	var out strings.Builder
	for _, kind := range FileKinds() {
		list := s.entries(kind)
		if len(kinds) > 0 && !slices.Contains(kinds, kind) || list.Len() == 0 {
			continue
		}
		order := make([]reflect.Value, list.Len())
		for i := range order {
			order[i] = list.Index(i)
		}
		slices.SortFunc(order, func(a, b reflect.Value) int { return strings.Compare(nameOf(a), nameOf(b)) })
		fmt.Fprintf(&out, "%s:\n", ListOf(kind))
		for _, entry := range order {
			writeEntry(&out, entry)
		}
	}
	return out.String()
}

// writeEntry writes what an entry says that is not its default anyway.
func writeEntry(out *strings.Builder, entry reflect.Value) {
	kind := ""
	if s, ok := entry.Interface().(Storage); ok {
		kind = s.Kind
	}
	usual := fresh(entry.Type(), kind)
	lead := "  - "
	for f, v := range entry.Fields() {
		was := usual.FieldByIndex(f.Index)
		if reflect.DeepEqual(v.Interface(), was.Interface()) && key(f) != "kind" || v.Kind() == reflect.Slice && v.Len() == 0 && was.Len() == 0 {
			continue
		}
		fmt.Fprintf(out, "%s%s: %s\n", lead, key(f), written(v, was))
		lead = "    "
	}
}

// written is a value as a file has it; a section is in one line.
func written(v, was reflect.Value) string {
	switch x := v.Interface().(type) {
	case DSN:
		return text(x.raw)
	case Secret:
		return text(x.raw)
	}
	if !section(v.Type()) {
		return yamlScalar(v)
	}
	var parts []string
	for f, inner := range v.Fields() {
		usual := was.FieldByIndex(f.Index)
		if !reflect.DeepEqual(inner.Interface(), usual.Interface()) {
			parts = append(parts, key(f)+": "+written(inner, usual))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
