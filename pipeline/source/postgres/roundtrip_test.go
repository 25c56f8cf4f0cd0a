package postgres

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

func TestRoundTrip(t *testing.T) {
	srv := pg.Server(t)
	name := `Größe "x"; 'y' \ db`
	dsn := srv.NamedDatabase(t, name)
	if err := pgtest.Sample(t.Context(), dsn, 4<<20); err != nil {
		t.Fatal(err)
	}
	q := ident(name)
	srv.Exec(t, name, `CREATE ROLE "Leser in"; CREATE ROLE boss;
		ALTER DATABASE `+q+` OWNER TO boss; REVOKE ALL ON DATABASE `+q+` FROM PUBLIC; GRANT CONNECT ON DATABASE `+q+` TO "Leser in" WITH GRANT OPTION;
		ALTER DATABASE `+q+` SET search_path TO "$user", public, "My.Schema"; ALTER DATABASE `+q+` SET work_mem TO '7MB';
		ALTER DATABASE `+q+` SET my.own TO 'it''s \ 100 %'; ALTER ROLE "Leser in" IN DATABASE `+q+` SET DateStyle TO 'German, DMY';
		ALTER DATABASE `+q+` CONNECTION LIMIT 33; COMMENT ON DATABASE `+q+` IS 'mit ''Ä'' \ und
Zeilen'`)
	t.Cleanup(func() {
		srv.Exec(t, "postgres", `DROP DATABASE IF EXISTS `+q+` WITH (FORCE)`)
		srv.Exec(t, "postgres", `DROP DATABASE IF EXISTS "näu" WITH (FORCE)`)
		srv.Exec(t, "postgres", `DROP ROLE "Leser in", boss`)
	})
	s := newSource(t, Config{DSN: dsn})
	before := time.Now()
	b := takeBackup(t, s, first)
	if b.info.Database != name || b.info.Encoding != "UTF8" || b.info.SystemID == "" || b.info.Extensions["plpgsql"] == "" ||
		majorOf(b.info.ToolVersion) < majorOf(b.info.ServerVersion) || b.info.EstimateBytes < 4<<20 || b.info.AsOf.Sub(before).Abs() > time.Minute {
		t.Errorf("info says %+v", b.info)
	}
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: "näu"})
	if exists(t, "näu") {
		t.Error("the target exists before the commit")
	}
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Replaces != 0 || p.Undo != "" || exists(t, p.Database) {
		t.Errorf("prepared %+v", p)
	}
	same(t, fingerprint(t, name), fingerprint(t, "näu"))
	nothingLeft(t, first)
}

// A person without this program gives database.sql to psql.
func TestScriptIsForPsqlToo(t *testing.T) {
	srv := pg.Server(t)
	dsn := srv.NamedDatabase(t, "script source")
	srv.NamedDatabase(t, `script "target"`)
	srv.Exec(t, "postgres", `ALTER DATABASE "script source" SET search_path TO a, "B c"; COMMENT ON DATABASE "script source" IS ':database ''x'''`)
	b := takeBackup(t, newSource(t, Config{DSN: dsn}), first)
	runPsql(t, srv, `script "target"`, b.parts[source.PartDatabase])
	const facts = `SELECT concat(shobj_description(d.oid, 'pg_database'), (SELECT setconfig FROM pg_db_role_setting WHERE setdatabase = d.oid))
		FROM pg_database d WHERE datname = $1`
	want, got := query(t, "postgres", facts, "script source"), query(t, "postgres", facts, `script "target"`)
	if want != got || !strings.Contains(want, "B c") {
		t.Errorf("want %s, got %s", want, got)
	}
}

// Names that have broken other tools. One database gets each in turn, and is dumped and replaced under it.
func TestOddNames(t *testing.T) {
	srv := pg.Server(t)
	srv.NamedDatabase(t, "even")
	srv.Exec(t, "even", `CREATE TABLE t AS SELECT g FROM generate_series(1, 100) g`)
	before := fingerprint(t, "even")
	current := "even"
	for _, name := range []string{
		"my db", `A"b'c`, "数据", `x;$(id)`, "-h", "../../etc", `a\b`, "a=b", "postgresql://evil/x", "host=evil", "%41", " UPPER", `\`, "`id`",
		strings.Repeat("ü", 31), strings.Repeat("x", 63),
	} {
		t.Run(name, func(t *testing.T) {
			srv.Exec(t, "postgres", `ALTER DATABASE `+ident(current)+` RENAME TO `+ident(name))
			current = name
			s := newSource(t, Config{DSN: srv.DSN(name)})
			b := takeBackup(t, s, first)
			srv.Exec(t, name, `DELETE FROM t`)
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: name, Replace: true, Info: b.info})
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{source.PartData, source.PartDatabase} {
				if err := r.Read(t.Context(), part, bytes.NewReader(b.parts[part])); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, before, fingerprint(t, name))
		})
	}
	srv.Exec(t, "postgres", `ALTER DATABASE `+ident(current)+` RENAME TO even`)
	noStray(t)
}

// Encoding and locale cannot be changed later: a new database gets those of the backup.
func TestLocaleIsKept(t *testing.T) {
	srv := pg.Server(t)
	const facts = `SELECT concat_ws(' ', pg_encoding_to_char(encoding), datcollate, datctype, to_jsonb(d) ->> 'datlocprovider',
		coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')) FROM pg_database d WHERE datname = $1`
	for name, how := range map[string]string{
		"latin":  `ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`,
		"ascii":  `ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`,
		"utf":    `ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'`,
		"german": `LOCALE_PROVIDER icu ICU_LOCALE 'de-DE-u-co-phonebk'`,
	} {
		t.Run(name, func(t *testing.T) {
			dropLater(t, name)
			srv.Exec(t, "postgres", `CREATE DATABASE `+name+` TEMPLATE template0 `+how)
			srv.Exec(t, name, `CREATE TABLE t AS SELECT 'Grüße' AS a`)
			b := takeBackup(t, newSource(t, Config{DSN: srv.DSN(name)}), first)
			r, _ := fill(t, newSource(t, Config{DSN: srv.DSN(name)}), first, b, source.RestoreOptions{Target: name + " again"})
			if err := r.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want, got := query(t, "postgres", facts, name), query(t, "postgres", facts, name+" again"); want != got {
				t.Errorf("want %s, got %s", want, got)
			}
			if name != "ascii" { // its texts cannot be shown in another encoding
				same(t, fingerprint(t, name), fingerprint(t, name+" again"))
			}
		})
	}
}

func TestSnapshotIsOfItsMoment(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	before := fingerprint(t, s.Database())
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	srv.Exec(t, s.Database(), `DELETE FROM pictures; CREATE TABLE later (); COMMENT ON DATABASE `+ident(s.Database())+` IS 'later'`)
	b := backup{parts: map[string][]byte{}, info: d.Info()}
	for _, part := range d.Parts() {
		var w strings.Builder
		if err := d.Write(t.Context(), part, &w); err != nil {
			t.Fatal(err)
		}
		b.parts[part] = []byte(w.String())
	}
	r, _ := fill(t, s, first, b, source.RestoreOptions{Target: "of its moment"})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, before, fingerprint(t, "of its moment"))
}

// A role that owns nothing but its database can dump and restore it.
func TestWithoutSuperuser(t *testing.T) {
	srv := pg.Server(t)
	srv.Exec(t, "postgres", `CREATE ROLE plain LOGIN CREATEDB PASSWORD 'plain secret'`)
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP OWNED BY plain; DROP ROLE plain`) })
	srv.NamedDatabase(t, "plain db")
	srv.Exec(t, "postgres", `ALTER DATABASE "plain db" OWNER TO plain`)
	dropLater(t, "plain db", undoName("plain db", first))
	dsn := srv.DSNFor("plain", "plain secret", "plain db")
	if err := pgtest.Sample(t.Context(), dsn, 0); err == nil {
		t.Log("this version lets an owner create in schema public")
	}
	srv.Exec(t, "plain db", `SET ROLE plain; CREATE SCHEMA mine; CREATE TABLE mine.t AS SELECT 1 AS a; SELECT lo_from_bytea(777, 'x')`)
	s := newSource(t, Config{DSN: dsn})
	b := takeBackup(t, s, first)
	before := fingerprint(t, "plain db")
	r, _ := fill(t, s, first, b, source.RestoreOptions{Target: "plain db", Replace: true, KeepOld: time.Hour})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, before, fingerprint(t, "plain db"))
}

// DSNs in all forms reach the same database, for us and for the children.
func TestDSNForms(t *testing.T) {
	srv := pg.Server(t)
	srv.NamedDatabase(t, "forms 'x'")
	port := fmt.Sprint(srv.Port)
	quoted := conninfoEscaper.Replace(oddPassword)
	for name, dsn := range map[string]string{
		"url":      srv.DSN("forms 'x'"),
		"keyword":  `host=127.0.0.1 port=` + port + ` user = postgres  password='` + quoted + `' dbname='forms \'x\'' sslmode=disable`,
		"two":      `host=127.0.0.1,127.0.0.1 port=1,` + port + ` user=postgres password='` + quoted + `' dbname='forms \'x\'' sslmode=prefer`,
		"timeouts": srv.DSN("forms 'x'") + "&statement_timeout=1&application_name=mine&search_path=nowhere",
	} {
		t.Run(name, func(t *testing.T) {
			b := takeBackup(t, newSource(t, Config{DSN: dsn}), first)
			if !strings.HasPrefix(string(b.parts[source.PartData]), archiveMagic) {
				t.Error("no archive")
			}
		})
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv("PGPASSWORD", oddPassword)
		t.Setenv("PGHOST", "127.0.0.1")
		t.Setenv("PGPORT", port)
		t.Setenv("PGDATABASE", "elsewhere")
		takeBackup(t, newSource(t, Config{DSN: `user=postgres dbname='forms \'x\''`}), first)
	})
}

// Time limits that the role brings along end neither a dump nor a restore, which take as long as they take: also while a
// restore has to wait for its bytes, which no client program lifts the last of these limits for.
func TestTimeLimitsOfTheRole(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 4<<20)
	for _, sql := range []string{
		`CREATE ROLE hasty SUPERUSER LOGIN PASSWORD 'h'`,
		`ALTER ROLE hasty SET statement_timeout = '5ms'`, `ALTER ROLE hasty SET lock_timeout = '1ms'`,
		`ALTER ROLE hasty SET idle_in_transaction_session_timeout = '500ms'`, `ALTER ROLE hasty SET idle_session_timeout = '500ms'`,
	} {
		srv.Exec(t, "postgres", sql)
	}
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE hasty`) })
	second := source.Attempt{Task: "t-2", Token: first.Token + 1}
	dropLater(t, s.Database(), undoName(s.Database(), second))
	before := fingerprint(t, s.Database())
	hasty := newSource(t, Config{DSN: srv.DSNFor("hasty", "h", s.Database())})
	b := takeBackup(t, hasty, first)
	for _, way := range []struct {
		name string
		o    source.RestoreOptions
	}{
		{"new database", source.RestoreOptions{Target: s.Database(), Replace: true}},
		{"in place", source.RestoreOptions{Target: s.Database(), Replace: true, RestoreChoices: source.RestoreChoices{InPlace: true}}},
	} {
		t.Run(way.name, func(t *testing.T) {
			way.o.Info = b.info
			r, err := hasty.Restore(t.Context(), second, way.o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Abort(); err != nil {
					t.Error(err)
				}
			}()
			data := b.parts[source.PartData]
			waits := &onceRead{do: func() {
				await(t, "a session of the restore to wait for twice the limit", func() bool {
					return query(t, "postgres", `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'
						AND wait_event = 'ClientRead' AND clock_timestamp() - state_change > interval '1 s'`, tag(second)) != "0"
				})
			}}
			half := len(data) / 2
			if err := r.Read(t.Context(), source.PartData, io.MultiReader(bytes.NewReader(data[:half]), waits, bytes.NewReader(data[half:]))); err != nil {
				t.Fatal(err)
			}
			if err := r.Read(t.Context(), source.PartDatabase, bytes.NewReader(b.parts[source.PartDatabase])); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := fingerprint(t, s.Database())
			delete(after.Tables, "fencepost.attempt")
			for _, difference := range pgtest.Diff(pgtest.Print{Tables: before.Tables, Objects: before.Objects}, pgtest.Print{Tables: after.Tables, Objects: after.Objects}) {
				t.Error(difference)
			}
		})
	}
}

// onceRead is an empty stream that does something when it is read.
type onceRead struct {
	do   func()
	once sync.Once
}

func (o *onceRead) Read([]byte) (int, error) {
	o.once.Do(o.do)
	return 0, io.EOF
}
