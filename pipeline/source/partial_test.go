package source

import (
	"reflect"
	"testing"
)

// TestPartial: whatever leaves something out that a restore needs says so; each new option has to be judged here.
func TestPartial(t *testing.T) {
	whole := map[string]bool{"Format": true, "Jobs": true, "NoSubscriptions": true, "NoGlobals": true, "RolePasswords": true}
	if got := (DumpOptions{}).Partial(); got != "" {
		t.Errorf("nothing asked for: %q", got)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[DumpOptions]()) {
		var o DumpOptions
		switch v := reflect.ValueOf(&o).Elem().FieldByIndex(f.Index); v.Kind() {
		case reflect.String:
			v.SetString("plain")
		case reflect.Int:
			v.SetInt(2)
		case reflect.Bool:
			v.SetBool(true)
		default:
			v.Set(reflect.ValueOf([]string{"x"}))
		}
		if got := o.Partial(); (got == "") != whole[f.Name] {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
}
