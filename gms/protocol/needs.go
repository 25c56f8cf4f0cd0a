package protocol

import (
	"reflect"
	"strconv"
	"sync"
)

// protocolTag is the tag of a field that came with a later protocol of the group than the first: `protocol:"2"`.
const protocolTag = "protocol"

// Needs is the lowest protocol of the group whose programs understand all that is in row: the highest of the tags of its fields
// that are not zero, at whatever depth, and of what values say themselves that have a method Needs. 1 when nothing came later.
// A program of an older protocol would pass over such a field, and lose it when it writes the record again.
func Needs(row any) uint32 {
	if row == nil {
		return 1
	}
	return needs(reflect.ValueOf(row))
}

// needer is a value that is not understood by its fields alone.
type needer interface{ Needs() uint32 }

func needs(v reflect.Value) uint32 {
	if !v.IsValid() || plain(v.Type()) {
		return 1
	}
	need := uint32(1)
	if v.CanInterface() {
		if n, ok := v.Interface().(needer); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			need = n.Needs()
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		need = max(need, needs(v.Elem()))
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			need = max(need, needs(v.Index(i)))
		}
	case reflect.Map:
		for _, x := range v.Seq2() {
			need = max(need, needs(x))
		}
	case reflect.Struct:
		for f, x := range v.Fields() {
			if !x.IsZero() {
				need = max(need, cameWith(f), needs(x))
			}
		}
	}
	return need
}

// cameWith is the protocol that a field came with. A tag that is no number is a mistake in the program.
func cameWith(f reflect.StructField) uint32 {
	tag := f.Tag.Get(protocolTag)
	if tag == "" {
		return 1
	}
	n, err := strconv.ParseUint(tag, 10, 32)
	if err != nil {
		panic("protocol: the field " + f.Name + " has the tag protocol:" + strconv.Quote(tag))
	}
	return uint32(n)
}

// plains remembers of types whether they are plain.
var plains sync.Map // reflect.Type to bool

// plain tells whether nothing in a type can ever need more than protocol 1, so that its values need not be looked at.
func plain(t reflect.Type) bool {
	if known, ok := plains.Load(t); ok {
		return known.(bool)
	}
	is := plainly(t, map[reflect.Type]bool{})
	plains.Store(t, is)
	return is
}

// plainly is plain; what is being looked at is taken for plain below itself.
func plainly(t reflect.Type, looking map[reflect.Type]bool) bool {
	if looking[t] {
		return true
	}
	looking[t] = true
	if t.Implements(reflect.TypeFor[needer]()) {
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return false
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return plainly(t.Elem(), looking)
	case reflect.Struct:
		for f := range t.Fields() {
			if cameWith(f) > 1 || !plainly(f.Type, looking) {
				return false
			}
		}
	}
	return true
}
