package postgres

import (
	"errors"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/pipeline/source"
)

// TestDatabases lists what can be dumped, whatever it is called, and opens each by the server's DSN and its name.
func TestDatabases(t *testing.T) {
	server := pg.Server(t)
	odd := `My "odd"/'name'`
	for _, name := range []string{"plain_1", odd} {
		server.NamedDatabase(t, name)
	}
	server.NamedDatabase(t, "closed_1")
	server.Exec(t, "postgres", `ALTER DATABASE closed_1 WITH ALLOW_CONNECTIONS false`)
	s := newSource(t, Config{DSN: server.DSN("postgres")})
	names, err := s.Databases(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"plain_1": true, odd: true, "postgres": true, "closed_1": false, "template0": false, "template1": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("%q: listed %t, want %t: %q", name, !want, want, names)
		}
	}
	server.Exec(t, odd, `CREATE TABLE there (n int)`)
	one := newSource(t, Config{DSN: server.DSN("postgres"), Database: odd})
	if got := takeBackup(t, one, first); got.info.Database != odd || len(got.parts[source.PartData]) == 0 {
		t.Errorf("dumped %q", got.info.Database)
	}
	away := newSource(t, Config{DSN: "postgres://u@127.0.0.1:1/x"})
	if _, err := away.Databases(t.Context(), first); !errors.Is(err, source.ErrUnavailable) {
		t.Error(err)
	}
}
