package postgres

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/source"
)

// As many objects of each kind, but not of the same names: a verification notices, for each kind.
func TestCheckNames(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	srv.Exec(t, s.Database(), `CREATE TABLE a (x int PRIMARY KEY, y text CHECK (y <> '')); CREATE INDEX i ON a (y); CREATE VIEW v AS SELECT x FROM a;
		CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE e AS ENUM ('x'); CREATE SCHEMA s; SELECT lo_create(4711)`)
	b := takeBackup(t, s, first)
	for change, kind := range map[string]string{
		``:                                                   "",
		`ALTER TABLE a RENAME TO b`:                          "columns",
		`ALTER TABLE a RENAME y TO z`:                        "columns",
		`ALTER TABLE a ALTER y TYPE varchar(9)`:              "columns",
		`ALTER INDEX i RENAME TO j`:                          "indexes",
		`ALTER VIEW v RENAME TO w`:                           "columns",
		`ALTER FUNCTION f(int) RENAME TO g`:                  "routines",
		`ALTER TYPE e RENAME TO d`:                           "enums and domains",
		`ALTER SCHEMA s RENAME TO t`:                         "schemas",
		`SELECT lo_unlink(4711), lo_create(4712)`:            "large objects",
		`ALTER TABLE a RENAME CONSTRAINT a_y_check TO other`: "constraints",
	} {
		r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "names", Names: true, Info: b.info})
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r, b)
		if change != "" {
			srv.Exec(t, r.(*restore).prepared.Database, change)
		}
		if _, err = r.Check(t.Context()); kind == "" && err != nil {
			t.Error(err)
		} else if kind != "" {
			fails(t, err, "the "+kind+" of the new database", source.ErrIncomplete)
		}
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	}
	noStray(t)
}
