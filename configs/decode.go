package configs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parser is a value with a text form of its own.
type parser interface{ parse(text string) error }

// field is one leaf of Config: a value, or a list.
type field struct {
	path string
	typ  reflect.Type
}

// list says whether the field is a list of things with names; those come from the file
// only.
func (f field) list() bool { return f.typ.Kind() == reflect.Slice && section(f.typ.Elem()) }

// leaves are all fields below the section t, in order.
func leaves(t reflect.Type, prefix string) []field {
	var out []field
	for f := range t.Fields() {
		path := join(prefix, key(f))
		if section(f.Type) {
			out = append(out, leaves(f.Type, path)...)
			continue
		}
		out = append(out, field{path: path, typ: f.Type})
	}
	return out
}

// section says whether t has keys of its own.
func section(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[parser]())
}

func key(f reflect.StructField) string { return f.Tag.Get("yaml") }

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// decode puts what a file says (maps, lists, texts, numbers) into dst. It reports keys
// that dst has not and values of another kind; their text it never repeats.
func decode(value any, dst reflect.Value, path string, ps *problems) {
	if value == nil {
		return
	}
	switch {
	case section(dst.Type()):
		decodeSection(value, dst, path, ps)
	case dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.String:
		decodeTexts(value, dst, path, ps)
	case dst.Kind() == reflect.Slice:
		decodeList(value, dst, path, ps)
	default:
		if err := decodeLeaf(value, dst); err != nil {
			ps.add(path, "%v", err)
		}
	}
}

func decodeSection(value any, dst reflect.Value, path string, ps *problems) {
	settings, ok := value.(map[string]any)
	if !ok {
		ps.add(path, "want a section: keys below it, indented")
		return
	}
	known := map[string]reflect.Value{}
	for f, v := range dst.Fields() {
		known[key(f)] = v
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		at := join(path, name)
		if v, ok := known[name]; ok {
			decode(settings[name], v, at, ps)
			continue
		}
		ps.add(at, "unknown key%s", meant(path, name, slices.Sorted(maps.Keys(known))))
	}
}

// meant is the remedy for an unknown key: a near one beside it, or the same word
// elsewhere in the file.
func meant(path, name string, siblings []string) string {
	if near := nearest(name, siblings); near != "" {
		return fmt.Sprintf(": did you mean %s?", join(path, near))
	}
	for _, f := range leaves(reflect.TypeFor[Config](), "") {
		if strings.HasSuffix(f.path, "."+name) {
			return fmt.Sprintf(": did you mean %s?", f.path)
		}
	}
	return fmt.Sprintf(": known here are %s", strings.Join(siblings, ", "))
}

func decodeList(value any, dst reflect.Value, path string, ps *problems) {
	entries, ok := value.([]any)
	if !ok {
		ps.add(path, "want a list: one entry per line, each begun with a dash")
		return
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(entries), len(entries)))
	for i, entry := range entries {
		elem := dst.Index(i)
		if d, ok := elem.Addr().Interface().(interface{ setDefaults(kind string) }); ok {
			d.setDefaults(kindOf(entry))
		}
		decode(entry, elem, fmt.Sprintf("%s[%d]", path, i), ps)
	}
}

// kindOf is the kind of a list's entry, on which its defaults depend; empty when it says
// none.
func kindOf(entry any) string {
	settings, _ := entry.(map[string]any)
	kind, _ := settings["kind"].(string)
	return kind
}

// decodeTexts takes a list of texts, or one text with commas, as the environment has it.
func decodeTexts(value any, dst reflect.Value, path string, ps *problems) {
	out := []string{}
	switch value := value.(type) {
	case string:
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	case []any:
		for i, entry := range value {
			text, ok := entry.(string)
			if !ok {
				ps.add(fmt.Sprintf("%s[%d]", path, i), "want a text: put it in quotes")
				continue
			}
			out = append(out, text)
		}
	default:
		ps.add(path, "want a list of texts")
	}
	dst.Set(reflect.ValueOf(out))
}

func decodeLeaf(value any, dst reflect.Value) error {
	if dst.Kind() == reflect.String {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("want a text: put it in quotes")
		}
		dst.SetString(text)
		return nil
	}
	text, ok := scalar(value)
	if !ok {
		return fmt.Errorf("want one value, not a list or a section")
	}
	switch at := dst.Addr().Interface().(type) {
	case parser:
		return at.parse(text)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want a duration with its unit, such as 500ms, 30s, 15m or 72h")
		}
		*at = d
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("want a whole number")
		}
		*at = n
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		*at = b
	}
	return nil
}

func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case int, int64, uint64, float64, bool:
		return fmt.Sprint(value), true
	default:
		return "", false
	}
}

// encode is the inverse of decode.
func encode(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case DSN:
		return value.raw
	case Secret:
		return value.raw
	case fmt.Stringer:
		return value.String()
	}
	switch {
	case v.Kind() == reflect.Struct:
		out := map[string]any{}
		for f, fv := range v.Fields() {
			if fv.Kind() != reflect.Slice || !fv.IsNil() {
				out[key(f)] = encode(fv)
			}
		}
		return out
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = encode(v.Index(i))
		}
		return out
	case v.Kind() == reflect.String:
		return v.String()
	default:
		return v.Interface()
	}
}
