package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// long says whether the long tests are asked for.
func long() bool { return os.Getenv("FENCEPOST_LONG") != "" }

// rounds is how often something random is tried.
func rounds(short, full int) int {
	if long() {
		return full
	}
	return short
}

// newSeed is the seed of a test's random things; FENCEPOST_SEED repeats one.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("FENCEPOST_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed
	}
	return rand.Uint64()
}

// schemaOf is what pg_dump says of a database's schema, rights and owners.
func schemaOf(t *testing.T, database string) string {
	t.Helper()
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "pg_dump"), "--schema-only", "--exclude-schema=fencepost", "--dbname="+pg.Server(t).DSN(database))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, stderr.String())
	}
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func sameSchema(t *testing.T, want, got string) {
	t.Helper()
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Errorf("schemas differ from line %d: %q, then %q", i+1, strings.Join(a[min(i, len(a)):min(i+3, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+3, len(b))], "\n"))
			return
		}
	}
}

// Whatever is in a database: dumped and restored, into a new database or in place, it is the same.
func TestRandomDatabases(t *testing.T) {
	srv := pg.Server(t)
	roles := []string{`"random ü"`, `"random; --"`, "random_owner"}
	for _, role := range roles {
		srv.Exec(t, "postgres", "CREATE ROLE "+role)
	}
	t.Cleanup(func() {
		for _, role := range roles {
			srv.Exec(t, "postgres", "DROP ROLE "+role)
		}
	})
	seed := newSeed(t)
	for i := range rounds(2, 60) {
		t.Run(fmt.Sprintf("seed %d", seed+uint64(i)), func(t *testing.T) { oneRandomDatabase(t, seed+uint64(i), roles) })
	}
}

func oneRandomDatabase(t *testing.T, seed uint64, roles []string) {
	srv := pg.Server(t)
	name := "random \"db\""
	dsn := srv.NamedDatabase(t, name)
	sql := randomDatabase(seed, ident(name), roles)
	srv.Exec(t, name, sql)
	if t.Failed() {
		t.Logf("its SQL: %s", sql)
		return
	}
	before, schema := fingerprint(t, name), schemaOf(t, name)
	s := newSource(t, Config{DSN: dsn})
	b := takeBackup(t, s, first)

	named, _ := fill(t, s, first, b, source.RestoreOptions{Target: "random copy", Names: true})
	if err := named.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, before, fingerprint(t, "random copy"))
	sameSchema(t, schema, schemaOf(t, "random copy"))

	// In several streams, and in several sessions.
	streams := takeWith(t, s, source.DumpOptions{Jobs: 4})
	restored(t, s, streams, "random streams", source.RestoreChoices{})
	same(t, before, fingerprint(t, "random streams"))
	sameSchema(t, schema, schemaOf(t, "random streams"))
	restored(t, s, b, "random jobs", source.RestoreChoices{Jobs: 3})
	same(t, before, fingerprint(t, "random jobs"))
	sameSchema(t, schema, schemaOf(t, "random jobs"))

	// In place over what was changed meanwhile.
	tables := query(t, name, `SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text !~ '^(pg_|information)'`)
	srv.Exec(t, name, `TRUNCATE `+tables+` CASCADE; SELECT lo_unlink(1000); SELECT lo_from_bytea(0, 'new')`)
	extra := query(t, name, `SELECT oid FROM pg_largeobject_metadata ORDER BY oid DESC LIMIT 1`)
	r := begun(t, s, first, over(b, name))
	readBoth(t, r, b)
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Exec(t, name, `SELECT lo_unlink(`+extra+`)`)
	same(t, before, userPrint(t, name))
	sameSchema(t, schema, schemaOf(t, name))

	// As plain SQL, which has no large objects.
	restored(t, s, takeWith(t, s, source.DumpOptions{Format: source.FormatPlain, NoLargeObjects: true}), "random plain", source.RestoreChoices{})
	sameSchema(t, withoutObjects(schema), withoutObjects(schemaOf(t, "random plain")))
	if t.Failed() {
		t.Logf("its SQL: %s", sql)
	}
}

// withoutObjects leaves out what a schema says about large objects.
func withoutObjects(schema string) string {
	var b strings.Builder
	for _, piece := range strings.SplitAfter(schema, "\n\n") {
		if !strings.Contains(piece, "LARGE OBJECT") && !strings.Contains(piece, "Type: BLOB") && !strings.Contains(piece, "lo_create") {
			b.WriteString(piece)
		}
	}
	return b.String()
}

// At whatever place a stream is cut, breaks or is changed: no database is made of it.
func TestNothingOfHalfABackup(t *testing.T) {
	s := sampled(t, 0)
	withoutBlobs := source.DumpOptions{Format: source.FormatPlain, NoLargeObjects: true}
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	boom := errors.New("hash does not fit")
	for _, b := range []backup{takeBackup(t, s, first), takeWith(t, s, withoutBlobs)} {
		data := b.parts[source.PartData]
		for range rounds(3, 50) {
			at := len(archiveMagic) + random.IntN(len(data)-len(archiveMagic)-200)
			flipped := bytes.Clone(data)
			flipped[at] ^= 1 << random.IntN(8)
			for name, stream := range map[string]io.Reader{
				"cut":     bytes.NewReader(data[:at]),
				"broken":  io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(boom)),
				"flipped": io.MultiReader(bytes.NewReader(flipped), iotest.ErrReader(boom)),
			} {
				r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "half", Info: b.info})
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Read(t.Context(), source.PartData, stream); err == nil {
					t.Errorf("%s %s at %d of %d: no error", b.info.Format, name, at, len(data))
				}
				if err := r.Commit(t.Context()); err == nil {
					t.Errorf("%s %s at %d of %d: committed", b.info.Format, name, at, len(data))
				}
				if err := r.Abort(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	noStray(t)
	nothingLeft(t, first)
}

// Many tables and large objects go round on a server's default settings; what cannot is refused before.
func TestManyObjects(t *testing.T) {
	if !long() {
		t.Skip("long test: set FENCEPOST_LONG=1 for 5,000 tables and 30,000 large objects")
	}
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	for i := range 10 { // a transaction each: one cannot hold them all
		srv.Exec(t, s.Database(), fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..500 LOOP
			EXECUTE format('CREATE TABLE t%%s (a int, b text)', %d + i); END LOOP;
			PERFORM lo_from_bytea(0, 'x') FROM generate_series(1, 3000); END $$`, i*500))
	}
	b := takeBackup(t, s, first)
	restored(t, s, b, "many", source.RestoreChoices{})
	if got := query(t, "many", `SELECT (SELECT count(*) FROM pg_class WHERE relname ~ '^t[0-9]+$') || ' ' || (SELECT count(*) FROM pg_largeobject_metadata)`); got != "5000 30000" {
		t.Errorf("restored %s", got)
	}
	_, err := s.Restore(t.Context(), first, over(b, s.Database()))
	fails(t, err, "max_locks_per_transaction")
	hasHint(t, err)
	srv.Exec(t, s.Database(), `DO $$ BEGIN FOR i IN 5001..6500 LOOP EXECUTE format('CREATE TABLE t%s (a int)', i); END LOOP; END $$`)
	_, err = s.Dump(t.Context(), first)
	fails(t, err, "max_locks_per_transaction")
}
