package configs

import (
	"reflect"
)

// Differences are the dotted paths of the keys that differ between a and b, in the order of the file. Of a list it says
// only that it differs.
func Differences(a, b *Config) []string {
	return differences(reflect.ValueOf(*a), reflect.ValueOf(*b), "")
}

func differences(a, b reflect.Value, prefix string) (paths []string) {
	for f, v := range a.Fields() {
		path := join(prefix, key(f))
		other := b.FieldByIndex(f.Index)
		switch {
		case section(f.Type):
			paths = append(paths, differences(v, other, path)...)
		case !reflect.DeepEqual(v.Interface(), other.Interface()):
			paths = append(paths, path)
		}
	}
	return paths
}
