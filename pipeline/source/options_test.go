package source

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type plainSource struct {
	Source
	dumped bool
}

func (p *plainSource) Dump(context.Context, Attempt) (Dump, error) {
	p.dumped = true
	return nil, nil
}

type choosingSource struct {
	plainSource
	got DumpOptions
}

func (c *choosingSource) DumpWith(_ context.Context, _ Attempt, o DumpOptions) (Dump, error) {
	c.got = o
	return nil, nil
}

func TestDumpWith(t *testing.T) {
	plain := &plainSource{}
	if _, err := DumpWith(t.Context(), plain, Attempt{}, DumpOptions{}); err != nil || !plain.dumped {
		t.Errorf("without options: %v", err)
	}
	if _, err := DumpWith(t.Context(), plain, Attempt{}, DumpOptions{SchemaOnly: true}); err == nil || !strings.Contains(err.Error(), "everything") {
		t.Errorf("options that a source does not know: %v", err)
	}
	choosing, want := &choosingSource{}, DumpOptions{Tables: []string{"a"}}
	if _, err := DumpWith(t.Context(), choosing, Attempt{}, want); err != nil || !reflect.DeepEqual(choosing.got, want) {
		t.Errorf("passed on %+v, %v", choosing.got, err)
	}
}

// Options are kept in ledgers and manifests: they come back as they were, and nothing is written for none.
func TestOptionsAsJSON(t *testing.T) {
	for _, o := range []DumpOptions{{}, {Format: FormatPlain, Schemas: []string{"a.b"}, ExcludeRows: []string{`"x"`}, NoGlobals: true}} {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var back DumpOptions
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(o, back) {
			t.Errorf("%s came back as %+v, %v", text, back, err)
		}
		if o.IsZero() != (string(text) == "{}") {
			t.Errorf("zero is %v, written %s", o.IsZero(), text)
		}
	}
	choices := RestoreChoices{InPlace: true, NoOwner: true}
	if choices.IsZero() || choices.Partial() || !(RestoreChoices{Tables: []string{"t"}}).Partial() || !(RestoreChoices{}).IsZero() {
		t.Error("what counts as partial, or as zero")
	}
}
