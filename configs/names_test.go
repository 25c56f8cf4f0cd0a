package configs

import (
	"strings"
	"testing"
)

// TestNamesHoldNoSeparators: what would end a name in a list, a path, a command line or a query is in none.
func TestNamesHoldNoSeparators(t *testing.T) {
	for _, name := range []string{"a,b", "a;b", "a b", "a/b", `a\b`, "../a", "..", "a\nb", "a'b", `a"b`, "a%2fb", "a:b", "-a", "ä"} {
		c := Default()
		c.Node = "n1"
		c.Storages = []Storage{{Name: name, Kind: "mem"}}
		c.Databases = []Database{{Name: name, DSN: NewDSN("postgres://h/d")}}
		err := c.Validate()
		for _, field := range []string{"storages[0].name: is", "databases[0].name: is"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%q: %v, want a line that begins %q", name, err, field)
			}
		}
	}
}
