package postgres

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// takeWith dumps with options.
func takeWith(t *testing.T, s *Source, o source.DumpOptions) backup {
	t.Helper()
	d, err := s.DumpWith(t.Context(), first, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	b := backup{parts: map[string][]byte{}}
	for _, part := range d.Parts() {
		var buf bytes.Buffer
		if err := d.Write(t.Context(), part, &buf); err != nil {
			t.Fatal(err)
		}
		b.parts[part] = buf.Bytes()
	}
	b.info = d.Info()
	return b
}

// restored restores into a new database of that name and commits.
func restored(t *testing.T, s *Source, b backup, target string, c source.RestoreChoices) {
	t.Helper()
	r, _ := fill(t, s, first, b, source.RestoreOptions{Target: target, RestoreChoices: c})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// relationsOf lists what is in a database: schema.name:kind.
func relationsOf(t *testing.T, database string) string {
	t.Helper()
	return query(t, database, `SELECT coalesce(string_agg(x, ' ' ORDER BY x), '') FROM (
		SELECT nspname || '.' || relname || ':' || relkind::text AS x FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND relkind IN ('r', 'v', 'p', 'S')) q`)
}

// filtered makes a database of two schemas with odd names, a large object and a function.
func filtered(t *testing.T) *Source {
	t.Helper()
	s := newSource(t, Config{DSN: pg.Server(t).Database(t)})
	pg.Server(t).Exec(t, s.Database(), `CREATE SCHEMA "My.Schema"; CREATE SCHEMA "my"; CREATE SCHEMA "q""uo*te";
		CREATE TABLE "My.Schema"."Big Table" AS SELECT 1 AS a; CREATE TABLE "My.Schema".small AS SELECT 2 AS a; CREATE VIEW "My.Schema".v AS SELECT a FROM "My.Schema".small;
		CREATE TABLE my.log_1 AS SELECT 3 AS a; CREATE TABLE my.log_2 AS SELECT 4 AS a; CREATE TABLE my."LOG_3" AS SELECT 5 AS a;
		CREATE TABLE "q""uo*te"."a.b" AS SELECT 6 AS a; CREATE TABLE "plain" AS SELECT 7 AS a;
		CREATE FUNCTION "My.Schema".f() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT lo_from_bytea(4711, 'kept')`)
	return s
}

func TestFilters(t *testing.T) {
	s := filtered(t)
	mine := "My.Schema.Big Table:r My.Schema.small:r My.Schema.v:v"
	logs := "my.LOG_3:r my.log_1:r my.log_2:r"
	for i, c := range []struct {
		o       source.DumpOptions
		want    string
		objects string
	}{
		{source.DumpOptions{Schemas: []string{"My.Schema"}}, mine, "1"},
		{source.DumpOptions{Schemas: []string{`"My.Schema"`, "m?"}}, mine + " " + logs, "1"},
		{source.DumpOptions{Schemas: []string{`q"""uo*te"`}}, `q"uo*te.a.b:r`, "1"},
		{source.DumpOptions{Tables: []string{"my.log_*"}}, "my.log_1:r my.log_2:r", "1"},
		{source.DumpOptions{Tables: []string{`"My.Schema".Big Table`, `"a.b"`}}, `My.Schema.Big Table:r q"uo*te.a.b:r`, "1"},
		{source.DumpOptions{ExcludeSchemas: []string{"My.Schema", `q*`}}, logs + " public.plain:r", "1"},
		{source.DumpOptions{ExcludeTables: []string{"*.*og_?", `"a.b"`, "v"}, NoLargeObjects: true},
			"My.Schema.Big Table:r My.Schema.small:r my.LOG_3:r public.plain:r", "0"},
		{source.DumpOptions{SchemaOnly: true, Schemas: []string{"my"}}, logs, "0"},
	} {
		t.Run(fmt.Sprintf("%+v", c.o), func(t *testing.T) {
			b, target := takeWith(t, s, c.o), fmt.Sprintf("filtered %d", i)
			restored(t, s, b, target, source.RestoreChoices{})
			if got := relationsOf(t, target); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
			if got := query(t, target, `SELECT count(*) FROM pg_largeobject_metadata`); got != c.objects {
				t.Errorf("%s large objects", got)
			}
			if b.info.Options.SchemaOnly != c.o.SchemaOnly || b.info.Options.NoLargeObjects != c.o.NoLargeObjects {
				t.Errorf("info says %+v", b.info.Options)
			}
		})
	}
	t.Run("rows", func(t *testing.T) {
		restored(t, s, takeWith(t, s, source.DumpOptions{ExcludeRows: []string{"my.log_1"}}), "without rows", source.RestoreChoices{})
		if got := query(t, "without rows", `SELECT (SELECT count(*) FROM my.log_1) || ' ' || (SELECT count(*) FROM my.log_2)`); got != "0 1" {
			t.Errorf("rows %s", got)
		}
	})
}

// A filter with a typo is an error, and so is one that contradicts another.
func TestWrongFilters(t *testing.T) {
	s := filtered(t)
	for part, o := range map[string]source.DumpOptions{
		"filter nowhere matches nothing":       {Schemas: []string{"my", "nowhere"}},
		"filter MY matches nothing":            {Schemas: []string{"MY"}},
		"filter my.Log_1 matches nothing":      {Tables: []string{"my.Log_1"}},
		`filter "my.log_1" matches nothing`:    {ExcludeTables: []string{`"my.log_1"`}},
		"filter gone matches nothing":          {ExcludeSchemas: []string{"gone"}},
		"filter log_9 matches nothing":         {ExcludeRows: []string{"log_9"}},
		"filter pg_class matches nothing":      {Tables: []string{"pg_class"}},
		"more than one dot":                    {Tables: []string{"My.Schema.small"}},
		"exclude each other":                   {Schemas: []string{"my"}, Tables: []string{"plain"}},
		"not a name or pattern":                {Tables: []string{`"open`}},
		`format "tar" is not`:                  {Format: "tar"},
		"role passwords are part of":           {NoGlobals: true, RolePasswords: true},
		"zero byte":                            {Tables: []string{"a\x00b"}},
		`filter "" is not a name or pattern`:   {Schemas: []string{""}},
		`filter "x." is not a name or pattern`: {Tables: []string{"x."}},
		"with its 1 large objects":             {Format: source.FormatPlain},
		`filter -h matches nothing`:            {Tables: []string{"-h"}},
		`filter a) OR true -- matches nothing`: {Schemas: []string{"a) OR true --"}},
		`filter \d+ matches nothing`:           {Schemas: []string{`\d+`}},
		`filter $(id);`:                        {Tables: []string{"$(id);"}},
	} {
		t.Run(part, func(t *testing.T) {
			_, err := s.DumpWith(t.Context(), first, o)
			fails(t, err, part)
			early := s.CheckOptions(o)
			if inServer := strings.Contains(err.Error(), "matches nothing in the database") || strings.Contains(err.Error(), "large objects"); inServer != (early == nil) {
				t.Errorf("said without the server: %v", early)
			}
		})
	}
	nothingLeft(t, first)
}

// Rights are asked for what is dumped, and for no more.
func TestFilteredRights(t *testing.T) {
	srv := pg.Server(t)
	s := filtered(t)
	srv.Exec(t, s.Database(), `CREATE ROLE partly LOGIN PASSWORD 'p'; GRANT USAGE ON SCHEMA my TO partly; GRANT SELECT ON ALL TABLES IN SCHEMA my TO partly`)
	t.Cleanup(func() { srv.Exec(t, s.Database(), `DROP OWNED BY partly; DROP ROLE partly`) })
	role := newSource(t, Config{DSN: srv.DSNFor("partly", "p", s.Database())})
	takeWith(t, role, source.DumpOptions{Schemas: []string{"my"}, NoLargeObjects: true})
	for part, o := range map[string]source.DumpOptions{
		"large object 4711": {Schemas: []string{"my"}}, "plain": {Tables: []string{"plain"}, NoLargeObjects: true}, "passwords": {RolePasswords: true},
	} {
		_, err := role.DumpWith(t.Context(), first, o)
		fails(t, err, part)
		hasHint(t, err)
	}
}

func TestRestoreChoices(t *testing.T) {
	srv := pg.Server(t)
	s := filtered(t)
	srv.Exec(t, s.Database(), `CREATE ROLE owner_of_one; ALTER TABLE my.log_1 OWNER TO owner_of_one; GRANT SELECT ON plain TO owner_of_one;
		CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION e();
		CREATE SUBSCRIPTION sub CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false)`)
	const dropSub = `ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE); DROP SUBSCRIPTION sub`
	t.Cleanup(func() {
		srv.Exec(t, s.Database(), dropSub)
		srv.Exec(t, s.Database(), `DROP OWNED BY owner_of_one; DROP ROLE owner_of_one`)
	})
	b := takeBackup(t, s, first)
	const facts = `SELECT concat_ws(' ', (SELECT count(*) FROM pg_event_trigger), (SELECT count(*) FROM pg_subscription WHERE subdbid = d.oid),
		(SELECT relowner::regrole FROM pg_class WHERE relname = 'log_1'), (SELECT relacl IS NOT NULL FROM pg_class WHERE relname = 'plain'),
		(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname !~ '^pg_' AND nspname <> 'information_schema'),
		(SELECT count(*) FROM pg_largeobject_metadata)) FROM pg_database d WHERE datname = current_database()`
	for i, c := range []struct {
		choices source.RestoreChoices
		want    string // event triggers, subscriptions, owner of log_1, rights on plain, tables, large objects
	}{
		{source.RestoreChoices{NoSubscriptions: true, NoEventTriggers: true}, "0 0 owner_of_one t 7 1"},
		{source.RestoreChoices{NoSubscriptions: true, NoOwner: true, NoPrivileges: true}, "1 0 postgres f 7 1"},
		{source.RestoreChoices{SchemaOnly: true, NoEventTriggers: true}, "0 1 owner_of_one t 7 0"},
	} {
		t.Run(fmt.Sprintf("%+v", c.choices), func(t *testing.T) {
			target := fmt.Sprintf("choice %d", i)
			restored(t, s, b, target, c.choices)
			if got := query(t, target, facts); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
			if !c.choices.NoSubscriptions {
				t.Cleanup(func() { srv.Exec(t, target, dropSub) })
			}
		})
	}
	for want, c := range map[string]source.RestoreChoices{
		"public.plain:r":                   {Tables: []string{"plain"}},
		"my.log_1:r":                       {Tables: []string{"log_1"}},
		"my.LOG_3:r my.log_1:r my.log_2:r": {Schemas: []string{"my"}},
		"My.Schema.Big Table:r my.log_2:r": {Tables: []string{"log_2", "Big Table"}, Schemas: []string{"my", "My.Schema"}},
	} {
		t.Run(want, func(t *testing.T) {
			restored(t, s, b, "some of it", c)
			if got := relationsOf(t, "some of it"); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
	t.Run("wrong name", func(t *testing.T) {
		r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "none of it", Info: b.info, RestoreChoices: source.RestoreChoices{Tables: []string{"Log_1"}}})
		if err != nil {
			t.Fatal(err)
		}
		fails(t, r.Read(t.Context(), source.PartData, bytes.NewReader(b.parts[source.PartData])), "not found", source.ErrIncomplete)
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	})
}

// With every dump go the roles of the server, unless somebody or the configuration says otherwise.
func TestGlobals(t *testing.T) {
	srv := pg.Server(t)
	s := filtered(t)
	srv.Exec(t, "postgres", `CREATE ROLE with_hash LOGIN PASSWORD 'very secret'`)
	t.Cleanup(func() { srv.Exec(t, "postgres", `DROP ROLE with_hash`) })
	configured := func(use GlobalsUse) *Source { return newSource(t, Config{DSN: srv.DSN(s.Database()), Globals: use}) }
	for name, c := range map[string]struct {
		s         *Source
		o         source.DumpOptions
		has, hash bool
	}{
		"by default":                  {s, source.DumpOptions{}, true, false},
		"plain":                       {s, source.DumpOptions{Format: source.FormatPlain, NoLargeObjects: true}, true, false},
		"streams":                     {s, source.DumpOptions{Jobs: 2}, true, false},
		"with passwords":              {s, source.DumpOptions{RolePasswords: true}, true, true},
		"none":                        {s, source.DumpOptions{NoGlobals: true}, false, false},
		"configured with passwords":   {configured(GlobalsPasswords), source.DumpOptions{}, true, true},
		"asked for none all the same": {configured(GlobalsPasswords), source.DumpOptions{NoGlobals: true}, false, false},
		"configured none":             {configured(GlobalsNone), source.DumpOptions{}, false, false},
		"asked for all the same":      {configured(GlobalsNone), source.DumpOptions{RolePasswords: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := takeWith(t, c.s, c.o)
			text := string(b.parts[source.PartGlobals])
			if strings.Contains(text, "CREATE ROLE with_hash") != c.has || strings.Contains(text, "SCRAM-SHA-256") != c.hash {
				t.Errorf("globals are %s", text)
			}
			if g := b.info.Globals; (g != nil) != c.has || c.has && *g != (source.Globals{Passwords: c.hash}) {
				t.Errorf("the manifest says %+v", g)
			}
			if c.has && c.o.Format == "" { // a restore passes over them
				restored(t, s, b, "with globals", source.RestoreChoices{})
			}
		})
	}
	d, err := newSource(t, Config{DSN: srv.DSN(s.Database()), BinDir: fakeTools(t, `printf -- '--\n-- PostgreSQL database cluster dump\n'`)}).Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	fails(t, d.Write(t.Context(), source.PartGlobals, &bytes.Buffer{}), "no whole list of roles", source.ErrIncomplete)
	_, err = s.DumpWith(t.Context(), first, source.DumpOptions{NoGlobals: true, RolePasswords: true})
	fails(t, err, "shall be left out")
}

// A role that may just read its database takes them too. Where it may not, or lacks the program, the dump is good without
// and says so.
func TestGlobalsOfTheLeastRole(t *testing.T) {
	srv := pg.Server(t)
	s := filtered(t)
	srv.Exec(t, s.Database(), `CREATE ROLE modest LOGIN PASSWORD 'p' IN ROLE pg_read_all_data; ALTER LARGE OBJECT 4711 OWNER TO modest;
		REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC`)
	t.Cleanup(func() {
		srv.Exec(t, s.Database(), `GRANT CONNECT ON DATABASE postgres, template1 TO PUBLIC; GRANT SELECT ON pg_auth_members TO PUBLIC;
			REASSIGN OWNED BY modest TO postgres; DROP OWNED BY modest; DROP ROLE modest`)
	})
	modest := func(cfg Config) *Source {
		cfg.DSN = srv.DSNFor("modest", "p", s.Database())
		return newSource(t, cfg)
	}
	b := takeWith(t, modest(Config{}), source.DumpOptions{})
	if !strings.Contains(string(b.parts[source.PartGlobals]), "CREATE ROLE modest") || *b.info.Globals != (source.Globals{}) {
		t.Errorf("globals are %s, %+v", b.parts[source.PartGlobals], b.info.Globals)
	}
	tools := t.TempDir()
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(filepath.Join(bin, "pg_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range programs {
		if filepath.Base(path) != "pg_dumpall" {
			if err := os.Symlink(path, filepath.Join(tools, filepath.Base(path))); err != nil {
				t.Fatal(err)
			}
		}
	}
	lacks := func(cfg Config, why string) {
		t.Helper()
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b := takeWith(t, modest(cfg), source.DumpOptions{})
		if _, has := b.parts[source.PartGlobals]; has || b.info.Globals == nil || !strings.Contains(b.info.Globals.Lacking, why) || !strings.Contains(log.String(), why) {
			t.Errorf("want none because of %q: parts %v, %+v, log %s", why, has, b.info.Globals, &log)
		}
	}
	lacks(Config{BinDir: tools}, "pg_dumpall of version 15 or newer is needed")
	// pg_read_all_data reads the catalogs too, whatever PUBLIC may
	srv.Exec(t, s.Database(), `REVOKE pg_read_all_data FROM modest; GRANT USAGE ON SCHEMA my, "My.Schema", "q""uo*te" TO modest;
		GRANT SELECT ON ALL TABLES IN SCHEMA my, "My.Schema", "q""uo*te", public TO modest; REVOKE SELECT ON pg_auth_members FROM PUBLIC`)
	lacks(Config{}, "may not read pg_auth_members")
}

// Whatever a name is made of, its quoted form matches it and nothing else.
func TestPatternsMeanThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune(`aB_."*?$^()[]{}|+\-' üÄ数%;`)), 1, 12, -1).Draw(t, "name")
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		p, err := parseTable(quoted + "." + quoted)
		if err != nil {
			t.Fatal(err)
		}
		if p.glob() != quoted+"."+quoted {
			t.Fatalf("%s became %s", quoted, p.glob())
		}
		re := regexp.MustCompile(p.nameRegex)
		if !re.MatchString(name) || re.MatchString(name+"x") || re.MatchString("x"+name) || re.MatchString(strings.ToUpper(name)) != (strings.ToUpper(name) == name) {
			t.Fatalf("%s does not match just %q", p.nameRegex, name)
		}
		s, err := parseSchema(quoted)
		if err != nil || s.glob() != quoted || s.nameRegex != p.nameRegex {
			t.Fatalf("as a schema: %+v, %v", s, err)
		}
	})
}

func TestPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"a": `*."a"`, "a.b": `"a"."b"`, "log_*": `*."log_"*`, "S?.T*": `"S"?."T"*`, `"a.b".c`: `"a.b"."c"`, `"a""b"`: `*."a""b"`, `a"*"b`: `*."a*b"`, "*": "*.*",
	} {
		if p, err := parseTable(text); err != nil || p.glob() != want {
			t.Errorf("%s: want %s, got %s, %v", text, want, p.glob(), err)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a.b.c", `"a`, `""`} {
		if p, err := parseTable(text); err == nil {
			t.Errorf("%q was taken as %s", text, p.glob())
		}
	}
	if f, err := parseFilters(source.DumpOptions{Schemas: []string{"a.b"}}); err != nil || !slices.Contains(f.args(), `--schema="a.b"`) || !slices.Contains(f.args(), "-b") {
		t.Errorf("%+v %v", f, err)
	}
}
