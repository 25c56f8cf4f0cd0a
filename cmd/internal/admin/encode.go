package admin

import (
	"encoding/json"
	"reflect"
)

// encode is v as JSON in which no list and no map is null, at any depth, so that readers
// need not ask.
func encode[T any](v T) ([]byte, error) {
	fill(reflect.ValueOf(&v).Elem())
	return json.Marshal(v)
}

// fill puts empty lists and maps where there are none. Lists, and what pointers lead to, are copied before something in
// them is changed: they belong to the backend.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		fill(own.Elem())
		v.Set(own)
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() {
				fill(field)
			}
		}
	}
}
