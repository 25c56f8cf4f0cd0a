package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

func TestDivide(t *testing.T) {
	size := func(sizes ...int64) (out []sizedTable) {
		for i, bytes := range sizes {
			out = append(out, sizedTable{"s", fmt.Sprint(i), bytes})
		}
		return out
	}
	for _, test := range []struct {
		tables []sizedTable
		rest   int64
		n      int
		want   string // sizes of the tables in the further streams
	}{
		{nil, 0, 4, "[]"},
		{size(5), 0, 2, "[]"}, // the first stream is empty and takes it
		{size(5, 4), 1, 2, "[[5]]"},
		{size(9, 5, 4, 1), 100, 3, "[[9 1] [5 4]]"}, // the rest is large: all goes elsewhere
		{size(9, 5, 4, 1), 0, 3, "[[5] [4 1]]"},
		{size(3, 3, 3, 3), 1, 8, "[[3] [3] [3] [3]]"},
	} {
		lists := [][]int64{}
		for _, list := range divide(test.tables, test.rest, test.n) {
			var sizes []int64
			for _, one := range list {
				sizes = append(sizes, one.bytes)
			}
			lists = append(lists, sizes)
		}
		if got := fmt.Sprint(lists); got != test.want {
			t.Errorf("%v with a rest of %d over %d: %s, want %s", test.tables, test.rest, test.n, got, test.want)
		}
	}
}

func TestNamed(t *testing.T) {
	got := named([]sizedTable{{"b", "x.y", 1}, {"a", `q"|(`, 1}, {"b", "Z", 1}})
	if want := []string{`"a".("q""|(")`, `"b".("x.y"|"Z")`}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// odd makes a database of many tables of different sizes, with names that are special in patterns, keys between them, an
// inheritance, partitions, identities, large objects and a table whose rows are left out.
func odd(t *testing.T) *Source {
	t.Helper()
	s := newSource(t, Config{DSN: pg.Server(t).Database(t)})
	var b strings.Builder
	b.WriteString(`CREATE SCHEMA "S.x|(y)"; CREATE SCHEMA other;`)
	for i, name := range []string{`"a|b"`, `"a"`, `"b"`, `"x.y"`, `"(z)"`, `"q""uote"`, `"$dollar"`, `"st*r"`, `"wh?t"`, `"Größe"`, `"[c]"`, `"back\slash"`, `"A"`} {
		fmt.Fprintf(&b, `CREATE TABLE "S.x|(y)".%s (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a text);
			INSERT INTO "S.x|(y)".%s (a) SELECT repeat('x', 100) || g FROM generate_series(1, %d) g;
			CREATE TABLE other.%s AS SELECT * FROM "S.x|(y)".%s; CREATE INDEX ON other.%s (a);`, name, name, 50*(i+1), name, name, name)
	}
	b.WriteString(`CREATE TABLE child (b int) INHERITS ("S.x|(y)"."a"); INSERT INTO child SELECT g, 'c' || g, g FROM generate_series(1000, 3000) g;
		CREATE TABLE parts (k int, v text) PARTITION BY RANGE (k); CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000); INSERT INTO parts SELECT g, repeat('p', 50) FROM generate_series(0, 1999) g;
		ALTER TABLE other."a" ADD UNIQUE (id); ALTER TABLE other."b" ADD FOREIGN KEY (id) REFERENCES other."a" (id) NOT VALID;
		CREATE TABLE empty_rows AS SELECT g FROM generate_series(1, 5000) g; CREATE MATERIALIZED VIEW mv AS SELECT count(*) AS n FROM parts;
		CREATE UNLOGGED TABLE unlogged AS SELECT g FROM generate_series(1, 5000) g;
		SELECT lo_from_bytea(4000 + g, decode(repeat('ab', g), 'hex')) FROM generate_series(1, 50) g; COMMENT ON LARGE OBJECT 4001 IS 'first'`)
	pg.Server(t).Exec(t, s.Database(), b.String())
	return s
}

// Whatever is in a database, n streams of it are the whole, and nothing twice.
func TestStreams(t *testing.T) {
	s := odd(t)
	before, schema := fingerprint(t, s.Database()), schemaOf(t, s.Database())
	b := takeWith(t, s, source.DumpOptions{Jobs: 4})
	if b.info.Streams != 4 || len(b.parts) != 8 {
		t.Fatalf("%d streams in %d parts", b.info.Streams, len(b.parts))
	}
	for name, c := range map[string]source.RestoreChoices{"default": {}, "one": {Jobs: 1}, "many": {Jobs: 9}} {
		restored(t, s, b, "streams "+name, c)
		same(t, before, fingerprint(t, "streams "+name))
		sameSchema(t, schema, schemaOf(t, "streams "+name))
	}
	nothingLeft(t, first)
}

// What is chosen, at the dump or at the restore, is chosen of all streams.
func TestStreamsOfChosenParts(t *testing.T) {
	s := odd(t)
	whole := takeWith(t, s, source.DumpOptions{Jobs: 4})
	for name, test := range map[string]struct {
		dump    source.DumpOptions
		restore source.RestoreChoices
		query   string
		want    string
	}{
		"schema": {dump: source.DumpOptions{Schemas: []string{"other"}, Jobs: 3},
			query: `SELECT (SELECT count(*) FROM other."A") || ' ' || (SELECT count(*) FROM pg_class WHERE relname = 'parts') || ' ' || (SELECT count(*) FROM pg_largeobject_metadata)`, want: "650 0 50"},
		"no rows of one": {dump: source.DumpOptions{ExcludeRows: []string{"empty_rows"}, Jobs: 3},
			query: `SELECT (SELECT count(*) FROM empty_rows) || ' ' || (SELECT count(*) FROM unlogged) || ' ' || (SELECT count(*) FROM ONLY "S.x|(y)"."a")`, want: "0 5000 100"},
		"restore a schema": {restore: source.RestoreChoices{Schemas: []string{"other"}},
			query: `SELECT (SELECT count(*) FROM other."A") || ' ' || (SELECT count(*) FROM pg_indexes WHERE schemaname = 'other')`, want: "650 14"},
		"restore a table": {restore: source.RestoreChoices{Tables: []string{"parts_2"}},
			query: `SELECT (SELECT count(*) FROM parts_2) || ' ' || (SELECT count(*) FROM pg_class WHERE relname = 'parts_1')`, want: "1000 0"},
		"only definitions": {restore: source.RestoreChoices{SchemaOnly: true},
			query: `SELECT (SELECT count(*) FROM parts) || ' ' || (SELECT count(*) FROM pg_indexes WHERE schemaname = 'other')`, want: "0 14"},
	} {
		t.Run(name, func(t *testing.T) {
			b := whole
			if !test.dump.IsZero() {
				b = takeWith(t, s, test.dump)
			}
			restored(t, s, b, "chosen", test.restore)
			if got := query(t, "chosen", test.query); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "typo", Info: whole.info, RestoreChoices: source.RestoreChoices{Tables: []string{"no such"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read(t.Context(), source.PartPre, bytes.NewReader(whole.parts[source.PartPre])); err == nil {
		t.Error("a table that no stream has was not missed")
	}
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
}

// The tables stay what they are from the first stream to the last.
func TestStreamsHoldTheirTables(t *testing.T) {
	srv := pg.Server(t)
	s := odd(t)
	d, err := s.DumpWith(t.Context(), first, source.DumpOptions{Jobs: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	conn, err := pgx.Connect(t.Context(), srv.DSN(s.Database()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `SET lock_timeout = '200ms'; TRUNCATE other."A"`); sqlState(err) != "55P03" {
		t.Errorf("a table was emptied between two streams: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	srv.Exec(t, s.Database(), `TRUNCATE other."A"`)
}

// Somebody who wants to change a table stands between the snapshot's lock and a stream's: neither must wait for ever.
func TestStreamsGiveWay(t *testing.T) {
	srv := pg.Server(t)
	s := odd(t)
	s.lockWait = 300 * time.Millisecond
	d, err := s.DumpWith(t.Context(), first, source.DumpOptions{Jobs: 3})
	if err != nil {
		t.Fatal(err)
	}
	altered := make(chan struct{})
	go func() {
		defer close(altered)
		srv.Exec(t, s.Database(), `ALTER TABLE other."A" ADD more int`)
	}()
	await(t, "somebody to wait", func() bool {
		return query(t, "postgres", `SELECT count(*) FROM pg_locks WHERE NOT granted`) != "0"
	})
	err = d.Write(t.Context(), source.PartPre, io.Discard)
	fails(t, err, "somebody has waited", source.ErrUnavailable)
	hasHint(t, err)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	<-altered
	nothingLeft(t, first)
}

// A restore needs every stream, each once and in its stage.
func TestStreamsAreMissed(t *testing.T) {
	s := odd(t)
	b := takeWith(t, s, source.DumpOptions{Jobs: 3})
	for name, test := range map[string]struct {
		parts []string
		fails string // the part that is refused; "": Check fails
	}{
		"without one":      {parts: []string{source.PartPre, source.PartData, "data-2"}},
		"post too early":   {parts: []string{source.PartPre, source.PartData, source.PartPost}, fails: source.PartPost},
		"rows too early":   {parts: []string{source.PartData}, fails: source.PartData},
		"twice":            {parts: []string{source.PartPre, "data-2", "data-2"}, fails: "data-2"},
		"of another":       {parts: []string{source.PartPre, "data-4"}, fails: "data-4"},
		"script too early": {parts: []string{source.PartPre, source.PartDatabase}, fails: source.PartDatabase},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "missed", Info: b.info})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Abort() }()
			for i, part := range test.parts {
				err := r.Read(t.Context(), part, bytes.NewReader(b.parts[part]))
				if want := test.fails != "" && i == len(test.parts)-1; (err != nil) != want {
					t.Errorf("part %s: %v", part, err)
				}
			}
			if _, err := r.Check(t.Context()); err == nil {
				t.Error("it was found whole")
			}
		})
	}
	noStray(t)
}

// In whatever stream the backup breaks, nothing stays.
func TestStreamsBreak(t *testing.T) {
	s := odd(t)
	b := takeWith(t, s, source.DumpOptions{Jobs: 3})
	errBoom := errors.New("hash does not fit")
	for _, broken := range []string{source.PartPre, source.PartData, "data-3", source.PartPost} {
		t.Run(broken, func(t *testing.T) {
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "broken", Info: b.info})
			if err != nil {
				t.Fatal(err)
			}
			for _, stage := range source.Stages([]string{source.PartPre, source.PartData, "data-2", "data-3", source.PartPost}) {
				var wg sync.WaitGroup
				for _, part := range stage {
					var from io.Reader = bytes.NewReader(b.parts[part])
					if part == broken {
						from = io.MultiReader(io.LimitReader(from, int64(len(b.parts[part])-10)), iotest.ErrReader(errBoom))
					}
					wg.Go(func() {
						if err := r.Read(t.Context(), part, from); err == nil && part == broken {
							t.Errorf("part %s: no error", part)
						}
					})
				}
				wg.Wait()
			}
			if _, err := r.Check(t.Context()); err == nil {
				t.Error("it was found whole")
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
		})
	}
	noStray(t)
	nothingLeft(t, first)
}

// gate gives what it has, and its end when it is opened.
type gate struct {
	io.Reader
	given  chan struct{} // closed when it has given all
	opened <-chan struct{}
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		close(g.given)
		<-g.opened
	}
	return n, err
}

// A stream whose session is ended because another one has failed says what that was.
func TestStreamsTellTheFirstFailure(t *testing.T) {
	s := odd(t)
	b := takeWith(t, s, source.DumpOptions{Jobs: 3})
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "first failure", Info: b.info})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Abort() }()
	if err := r.Read(t.Context(), source.PartPre, bytes.NewReader(b.parts[source.PartPre])); err != nil {
		t.Fatal(err)
	}
	errBoom, over := errors.New("hash does not fit"), make(chan struct{})
	data := b.parts[source.PartData]
	victim := &gate{Reader: bytes.NewReader(data[:len(data)-10]), given: make(chan struct{}), opened: over}
	said := make(chan error, 1)
	go func() { said <- r.Read(t.Context(), source.PartData, victim) }()
	<-victim.given
	broken := io.MultiReader(bytes.NewReader(b.parts["data-2"][:100]), iotest.ErrReader(errBoom))
	if err := r.Read(t.Context(), "data-2", broken); !errors.Is(err, errBoom) {
		t.Errorf("the first: %v", err)
	}
	close(over)
	if err := <-said; !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "another part has failed") {
		t.Errorf("the other one: %v", err)
	}
}

// Into an empty database in place, one after the other in its one transaction; what cannot be is refused.
func TestStreamsInPlace(t *testing.T) {
	srv := pg.Server(t)
	s := odd(t)
	before := fingerprint(t, s.Database())
	b := takeWith(t, s, source.DumpOptions{Jobs: 3})
	target := newSource(t, Config{DSN: srv.Database(t)})
	o := source.RestoreOptions{Target: target.Database(), Info: b.info, RestoreChoices: source.RestoreChoices{InPlace: true}}

	o.Jobs = 2
	_, err := target.Restore(t.Context(), first, o)
	fails(t, err, "one transaction")
	o.Jobs, o.Replace = 0, true
	_, err = target.Restore(t.Context(), first, o)
	fails(t, err, "several streams")

	o.Replace = false
	r := begun(t, target, first, o)
	readBoth(t, r, b)
	if n := query(t, target.Database(), `SELECT count(*) FROM pg_class WHERE relname = 'parts'`); n != "0" {
		t.Error("something is visible before the commit")
	}
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, before, userPrint(t, target.Database()))
}

// One archive with its indexes made in several sessions: the same as with one.
func TestRestoreJobsOfOneArchive(t *testing.T) {
	s := odd(t)
	before, schema := fingerprint(t, s.Database()), schemaOf(t, s.Database())
	b := takeBackup(t, s, first)
	restored(t, s, b, "jobs", source.RestoreChoices{Jobs: 4})
	same(t, before, fingerprint(t, "jobs"))
	sameSchema(t, schema, schemaOf(t, "jobs"))

	// Of a longer archive only the beginning is kept: with all definitions in it, and with less.
	toc := bytes.Index(b.parts[source.PartData], bytes.Repeat([]byte("x"), 100)) // the first row
	for name, kept := range map[string]int{"jobs beginning": toc, "jobs too little": toc / 2} {
		s.inMemory = int64(kept)
		restored(t, s, b, name, source.RestoreChoices{Jobs: 4})
		same(t, before, fingerprint(t, name))
		sameSchema(t, schema, schemaOf(t, name))
	}

	plain := takeWith(t, s, source.DumpOptions{Format: source.FormatPlain, NoLargeObjects: true})
	_, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "jobs plain", Info: plain.info, RestoreChoices: source.RestoreChoices{Jobs: 2}})
	fails(t, err, "plain")
	_, err = s.DumpWith(t.Context(), first, source.DumpOptions{Format: source.FormatPlain, Jobs: 2})
	fails(t, err, "plain")
	_, err = s.DumpWith(t.Context(), first, source.DumpOptions{Jobs: source.MaxStreams + 1})
	fails(t, err, "at most 32")
}
