package postgres

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// A database whose tables lie in a tablespace that the other server does not have: the restore says so, and goes without.
func TestTablespaceThatIsNotThere(t *testing.T) {
	from := pgtest.New(t, pgtest.Options{Settings: map[string]string{"allow_in_place_tablespaces": "on"}})
	s := newSource(t, Config{DSN: from.Database(t)})
	from.Exec(t, s.Database(), `CREATE TABLESPACE fast LOCATION ''`)
	from.Exec(t, s.Database(), `CREATE TABLE goods TABLESPACE fast AS SELECT generate_series(1, 100) AS id`)
	b := takeWith(t, s, source.DumpOptions{})

	to := newSource(t, Config{DSN: pgtest.New(t, pgtest.Options{}).DSN("postgres")})
	into := func(c source.RestoreChoices) (err error) {
		t.Helper()
		r, err := to.Restore(t.Context(), first, source.RestoreOptions{Target: "goods", Info: b.info, RestoreChoices: c})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
		}()
		for _, stage := range source.Stages(slices.Collect(maps.Keys(b.parts))) {
			for _, part := range stage {
				if err := r.Read(t.Context(), part, bytes.NewReader(b.parts[part])); err != nil {
					return err
				}
			}
		}
		_, err = r.Check(t.Context())
		return err
	}
	err := into(source.RestoreChoices{})
	fails(t, err, "a tablespace is missing", source.ErrIncomplete)
	hasHint(t, err)
	if err := into(source.RestoreChoices{NoTablespaces: true}); err != nil {
		t.Error(err)
	}
}
