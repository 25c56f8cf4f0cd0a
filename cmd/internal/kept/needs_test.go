package kept

import (
	"encoding/json"
	"errors"
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
	if c := Put("k", sample{Later: "x"}, 7); c.Protocol != 2 || c.Version != 7 || c.Key != "k" || !json.Valid(c.Value) {
		t.Errorf("%+v", c)
	}
}

// TestLaterRecordsAreRefused: what not all programs of the group understand is not kept, nor what is to be kept with it.
func TestLaterRecordsAreRefused(t *testing.T) {
	m := &Memory{Protocol: 2}
	if err := m.Commit(t.Context(), Put("a", inner{Old: "x"}, 0), Put("b", inner{New: 1}, 0)); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
	if all, err := m.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("%d records, %v", len(all), err)
	}
	if err := m.Commit(t.Context(), Put("a", sample{Later: "x"}, 0)); err != nil {
		t.Error(err)
	}
	m.Protocol = 3
	if err := m.Commit(t.Context(), Put("b", inner{New: 1}, 0)); err != nil {
		t.Error(err)
	}
	r, err := m.Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Commit(t.Context(), Again(r)); err != nil {
		t.Error(err)
	}
	if again := m.Local("b"); again.Version == r.Version || string(again.Value) != string(r.Value) {
		t.Errorf("%+v is %+v", r, again)
	}
}
