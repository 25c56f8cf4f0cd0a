package age_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor/age"
)

// The id is that of the recipients in their order, wherever they are written; an identity alone is known by its recipient, and
// a passphrase has none: whoever saw it could guess.
func TestKitID(t *testing.T) {
	a, b, s := x25519(t), x25519(t), ed25519Pair(t, "")
	id := func(f age.Files) string {
		t.Helper()
		k, err := age.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		return age.New(age.Options{Keys: k}).KitID()
	}
	both := id(age.Files{Recipients: []string{a.recipient, b.recipient}})
	if len(both) != 16 {
		t.Errorf("id %q", both)
	}
	for what, other := range map[string]age.Files{
		"another order": {Recipients: []string{b.recipient, a.recipient}}, "one": {Recipients: []string{a.recipient}},
	} {
		if id(other) == both {
			t.Errorf("%s has the same id", what)
		}
	}
	for what, pair := range map[string][2]age.Files{
		"a file":    {{Recipients: []string{a.recipient, b.recipient}}, {RecipientsFile: file(t, a.recipient+"\n# x\n"+b.recipient+"\n", 0o600), Identity: b.identity}},
		"identity":  {{Recipients: []string{a.recipient}}, {Identity: a.identity}},
		"a comment": {{Recipients: []string{s.recipient}}, {Recipients: []string{s.recipient + " somebody@somewhere"}}},
	} {
		if one, two := id(pair[0]), id(pair[1]); one != two || one == "" {
			t.Errorf("%s: %q, %q", what, one, two)
		}
	}
	if got := id(age.Files{Passphrase: file(t, strings.Repeat("long ", 4), 0o600)}); got != "" {
		t.Errorf("a passphrase has the id %q", got)
	}
}
