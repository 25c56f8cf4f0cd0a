package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/pipeline/source"
)

// standIns makes programs that only tell a version.
func standIns(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pg_dump", "pg_restore", "pg_dumpall", "psql"} {
		text := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Programs that do not fit the server, or the backup, are refused before anything is begun, with what is there and what
// to do.
func TestProgramsThatDoNotFit(t *testing.T) {
	srv := pg.Server(t)
	srv.NamedDatabase(t, "fits")
	server := query(t, "fits", `SELECT current_setting('server_version')`)
	older := newSource(t, Config{DSN: srv.DSN("fits"), BinDir: standIns(t, "12.9")})
	_, err := older.Dump(t.Context(), first)
	fails(t, err, "none is installed (found 12.9)")
	hasHint(t, err)
	_, err = older.Restore(t.Context(), first, source.RestoreOptions{Target: "never"})
	fails(t, err, "none is installed (found 12.9)")
	hasHint(t, err)
	_, err = newSource(t, Config{DSN: srv.DSN("fits")}).Restore(t.Context(), first, source.RestoreOptions{Target: "never", Info: source.Info{ToolVersion: "98.3"}})
	fails(t, err, "pg_restore of version 98 or newer is needed")
	hasHint(t, err)
	if majorOf(server) < 17 {
		newer := newSource(t, Config{DSN: srv.DSN("fits"), BinDir: standIns(t, "17.2")})
		for _, inPlace := range []bool{false, true} {
			_, err = newer.Restore(t.Context(), first, source.RestoreOptions{Target: "fits", Replace: true, RestoreChoices: source.RestoreChoices{InPlace: inPlace}})
			fails(t, err, "cannot restore into PostgreSQL")
			hasHint(t, err)
		}
	}
	noStray(t)
	nothingLeft(t, first)
}

func TestSpeaksTo(t *testing.T) {
	for _, test := range []struct {
		program, server string
		ok              bool
	}{{"15.4", "15.1", true}, {"16.9", "13.1", true}, {"17.0", "16.9", false}, {"17.0", "17.0", true}, {"18.1", "17.4", true}, {"18.1", "15.4", false}, {"", "15.4", true}} {
		if _, ok := speaksTo(tool{version: test.program}, test.server); ok != test.ok {
			t.Errorf("%s to %s: %v", test.program, test.server, ok)
		}
	}
}

// Two dumps at the same time, of two roles with a password each: neither program sees the other's.
func TestPasswordsDoNotMeet(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	passwords := map[string]string{"one_of_two": `first's "secret"`, "two_of_two": `second\:secret`}
	for role, password := range passwords {
		srv.Exec(t, "postgres", `CREATE ROLE `+role+` LOGIN SUPERUSER PASSWORD `+literal(password))
	}
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE one_of_two; DROP ROLE two_of_two`) })
	var dumps sync.WaitGroup
	var met, met2 = make(chan struct{}), make(chan struct{})
	for role, mine := range map[string]chan struct{}{"one_of_two": met, "two_of_two": met2} {
		theirs := met
		if role == "one_of_two" {
			theirs = met2
		}
		dumps.Go(func() {
			own := newSource(t, Config{DSN: srv.DSNFor(role, passwords[role], s.Database())})
			d, err := own.Dump(t.Context(), source.Attempt{Task: strings.ReplaceAll(role, "_", "-"), Token: 1})
			if err != nil {
				t.Error(err)
				close(mine)
				return
			}
			defer func() { _ = d.Close() }()
			err = d.Write(t.Context(), source.PartData, &onceAfter{n: 1, do: func() {
				close(mine)
				<-theirs // both programs run now
			}})
			if err != nil {
				t.Errorf("dump of %s: %v", role, err)
			}
		})
	}
	dumps.Wait()
	if os.Getenv("PGPASSWORD") != "" {
		t.Error("a password is in the environment of this process")
	}
}
