package protocol

import (
	"encoding/json"
	"testing"
	"time"
)

type inner struct {
	Old string
	New int `protocol:"3"`
}

type chosen string

func (c chosen) Needs() uint32 {
	if c == "later" {
		return 4
	}
	return 1
}

type sample struct {
	Name   string
	At     time.Time
	Spec   json.RawMessage
	Later  string           `protocol:"2"`
	Inner  inner            `json:"inner"`
	List   []inner          `json:"list"`
	Named  map[string]inner `json:"named"`
	To     *inner           `json:"to"`
	Any    any              `json:"any"`
	Choice chosen           `json:"choice"`
	Self   *sample          `json:"self"`
}

// TestNeeds: a record needs what the fields need that are in it, wherever they are; those that are not set need nothing.
func TestNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		row  any
		want uint32
	}{
		"nothing":        {nil, 1},
		"a text":         {"x", 1},
		"nothing later":  {sample{Name: "a", At: time.Now(), Spec: json.RawMessage(`{}`), Inner: inner{Old: "x"}, List: []inner{{}}, To: &inner{}}, 1},
		"a field":        {sample{Later: "x"}, 2},
		"a pointer":      {&sample{Later: "x"}, 2},
		"inside":         {sample{Later: "x", Inner: inner{New: 1}}, 3},
		"in a list":      {sample{List: []inner{{}, {New: 1}}}, 3},
		"in a map":       {sample{Named: map[string]inner{"a": {New: 1}}}, 3},
		"behind":         {sample{To: &inner{New: 1}}, 3},
		"of any kind":    {sample{Any: inner{New: 1}}, 3},
		"a value":        {sample{Choice: "later"}, 4},
		"an older value": {sample{Choice: "old"}, 1},
		"far below":      {sample{Self: &sample{Self: &sample{Choice: "later"}}}, 4},
		"in a row":       {[]sample{{}, {Later: "x"}}, 2},
	} {
		if got := Needs(c.row); got != c.want {
			t.Errorf("%s needs %d, want %d", name, got, c.want)
		}
	}
}
