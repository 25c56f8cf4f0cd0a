package app

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// filled sets every field of a request to something.
func filled[T any](t *testing.T) T {
	t.Helper()
	var all T
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(3)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("plain")
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{v.Type().Field(i).Name}))
		default:
			t.Fatalf("field %s is of a kind that this test does not know", v.Type().Field(i).Name)
		}
	}
	return all
}

// missing names the fields that are zero, or hold what another was given.
func missing(options any) []string {
	var names []string
	v := reflect.ValueOf(options)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if list, ok := v.Field(i).Interface().([]string); v.Field(i).IsZero() || ok && !slices.Equal(list, []string{name}) {
			names = append(names, name)
		}
	}
	return names
}

// What a request says of a dump or restore reaches the source, but for what no request can ask for.
func TestRequestsReachTheSource(t *testing.T) {
	if got := missing(restoreChoices(filled[api.RestoreBackup](t))); len(got) > 0 {
		t.Errorf("choices lost: %v", got)
	}
	if got, want := missing(dumpOptions(filled[api.CreateBackup](t))), []string{"ExcludeRows", "NoSubscriptions"}; !slices.Equal(got, want) {
		t.Errorf("options lost: %v, want %v", got, want)
	}
	if !restoreChoices(api.RestoreBackup{Backup: "b"}).IsZero() || !dumpOptions(api.CreateBackup{Database: "d"}).IsZero() {
		t.Error("nothing asked for is something")
	}
}
