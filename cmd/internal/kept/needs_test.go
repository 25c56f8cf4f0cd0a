package kept

import (
	"encoding/json"
	"errors"
	"testing"
)

type inner struct {
	Old string
	New int `protocol:"3"`
}

type sample struct {
	Later string `protocol:"2"`
}

// TestPutAsksForItsProtocol: what a record needs goes with it.
func TestPutAsksForItsProtocol(t *testing.T) {
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
