package postgres

import "testing"

func TestOlderExtension(t *testing.T) {
	for _, c := range []struct {
		have, want string
		older      bool
	}{
		{"1.6", "1.8", true}, {"1.8", "1.6", false}, {"1.6", "1.6", false}, {"1.9", "1.10", true}, {"1.10", "1.9", false},
		{"2.9", "3.0", true}, {"3.0", "2.9", false}, {"3.4.0", "3.4.2", false}, {"3.3.9", "3.4.0", true}, {"3", "4", true}, {"3", "3.1", false},
		{"", "1.0", false}, {"1.0", "", false}, {"unpackaged", "1.0", false}, {"2024-01", "2025-01", false},
	} {
		if got := olderExtension(c.have, c.want); got != c.older {
			t.Errorf("%q, the backup has %q: older is %t", c.have, c.want, got)
		}
	}
}
