package source

import (
	"reflect"
	"testing"
)

func TestStages(t *testing.T) {
	for _, test := range []struct {
		parts []string
		want  [][]string
	}{
		{nil, nil},
		{[]string{PartData, PartDatabase}, [][]string{{PartData}, {PartDatabase}}},
		{[]string{PartPre, PartPost, "data-10", PartData, "data-2", PartDatabase, PartGlobals},
			[][]string{{PartPre}, {PartData, "data-2", "data-10"}, {PartPost}, {PartDatabase}, {PartGlobals}}},
		{[]string{"data-1", "data-02", "data-100", "database"}, [][]string{{"data-1"}, {"data-02"}, {"data-100"}, {"database"}}}, // no streams
	} {
		if got := Stages(test.parts); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.parts, got, test.want)
		}
	}
}
