package postgres

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// TestGlobalsText: statements of pg_dumpall are told apart by what they are about, whatever names and texts hold.
func TestGlobalsText(t *testing.T) {
	const text = `--
-- PostgreSQL database cluster dump
--

\restrict aBcD

SET default_transaction_read_only = off;
SET client_encoding = 'UTF8';

--
-- Roles
--

CREATE ROLE "a;""b";
ALTER ROLE "a;""b" WITH NOSUPERUSER INHERIT LOGIN PASSWORD 'SCRAM-SHA-256$4096:x''y' VALID UNTIL '2030-01-01 00:00:00+00';
COMMENT ON ROLE "a;""b" IS 'first; -- no comment
\unrestrict second';
CREATE ROLE plain;
ALTER ROLE plain WITH NOSUPERUSER LOGIN;
COMMENT ON ROLE plain IS E'back\\''slash;';
ALTER ROLE plain SET work_mem TO '64MB';
GRANT "a;""b" TO plain WITH ADMIN OPTION GRANTED BY postgres;
GRANT SET ON PARAMETER work_mem TO plain;
CREATE TABLESPACE fast OWNER plain LOCATION '/srv/fast';
ALTER TABLESPACE fast SET (random_page_cost=1.1);
GRANT ALL ON TABLESPACE fast TO "a;""b";
TRUNCATE plain.secrets;

\unrestrict aBcD

--
-- PostgreSQL database cluster dump complete
--
`
	g, err := parseGlobals(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []globalKey{
		{source.GlobalRole, `a;"b`}, {source.GlobalRole, "plain"}, {source.GlobalSetting, "work_mem of plain"}, {source.GlobalMembership, `plain in a;"b`},
		{source.GlobalParameter, "work_mem"}, {source.GlobalTablespace, "fast"}, {source.GlobalUnknown, "TRUNCATE plain.secrets"},
	}
	if !slices.Equal(g.order, want) {
		t.Errorf("things %v, want %v", g.order, want)
	}
	if n := len(g.made[globalKey{source.GlobalTablespace, "fast"}]); n != 3 {
		t.Errorf("the tablespace has %d statements", n)
	}
	d := compareGlobals(g, globals{}, true)
	all := allTexts(append(d.Missing, d.Differ...))
	if strings.Contains(all, "SCRAM") || !strings.Contains(all, `PASSWORD '…' VALID UNTIL '2030`) {
		t.Errorf("shown: %s", all)
	}
	if !slices.ContainsFunc(d.Missing, func(g source.Global) bool { return g.Name == "plain" && g.NoPassword }) || d.Missing[0].NoPassword {
		t.Errorf("who has no password: %+v", d.Missing)
	}
	if len(d.Differ) != 1 || d.Differ[0].Kind != source.GlobalUnknown {
		t.Errorf("what is not understood: %+v", d.Differ)
	}
	other, err := parseGlobals(strings.ReplaceAll(text, "4096:x", "4096:z"))
	if err != nil {
		t.Fatal(err)
	}
	if d := compareGlobals(g, other, false); len(d.Missing)+len(d.Differ)+len(d.Extra) != 0 {
		t.Errorf("without passwords: %+v", d)
	}
	if d := compareGlobals(g, other, true); len(d.Differ) != 1 || d.Differ[0].Name != `a;"b` {
		t.Errorf("with passwords: %+v", d)
	}
	for _, cut := range []string{text[:strings.Index(text, "INHERIT")], `CREATE ROLE "x`, "COMMENT ON ROLE x IS 'y;\n"} {
		if _, err := parseGlobals(cut); !errors.Is(err, source.ErrIncomplete) {
			t.Errorf("%.30q is taken: %v", cut, err)
		}
	}
}

func allTexts(list []source.Global) string {
	var b strings.Builder
	for _, g := range list {
		b.WriteString(strings.Join(append(g.Want, g.Have...), "\n") + "\n")
	}
	return b.String()
}

// FuzzGlobalsText: whatever is read, nothing panics, and what is shown has no password.
func FuzzGlobalsText(f *testing.F) {
	for _, seed := range []string{"CREATE ROLE x;", "ALTER ROLE x WITH PASSWORD 'y';", `GRANT "a""b" TO c;`, "E'\\", "\\restrict x\nSET a = b;", "ALTER ROLE x PASSWORD 'a' PASSWORD 'b';"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := splitStatements(text); err == nil {
			for _, s := range list {
				s.about()
				if p := s.password(); p != nil && s.hidden()[p.from:p.from+len("'…'")] != "'…'" {
					t.Errorf("%q shows %q", s.text, s.hidden())
				}
			}
		}
		_, _ = parseGlobals(text)
	})
}

// TestRestoreGlobals: what a dump holds of its server is made on another one, with the passwords, once; what is there stays as it
// is, and is told.
func TestRestoreGlobals(t *testing.T) {
	from, to := pg.Server(t), pgtest.New(t, pgtest.Options{})
	t.Cleanup(func() {
		from.Exec(t, "postgres", `REVOKE SET ON PARAMETER log_statement FROM gr_bob; DROP ROLE gr_staff, "gr_Ann's", gr_bob, gr_there`)
	})
	from.Exec(t, "postgres", `CREATE ROLE gr_staff NOLOGIN; CREATE ROLE "gr_Ann's" LOGIN PASSWORD 'open sesame' IN ROLE gr_staff; CREATE ROLE gr_bob LOGIN CONNECTION LIMIT 3;
		COMMENT ON ROLE gr_bob IS 'it''s; bob'; ALTER ROLE gr_bob SET work_mem TO '64MB'; GRANT SET ON PARAMETER log_statement TO gr_bob; CREATE ROLE gr_there LOGIN`)
	to.Exec(t, "postgres", `CREATE ROLE gr_there NOLOGIN; CREATE ROLE gr_only`)
	text := globalsOf(t, newSource(t, Config{DSN: from.DSN("postgres"), Globals: GlobalsPasswords}))
	dst := newSource(t, Config{DSN: to.DSN("postgres")})
	before, err := dst.CompareGlobals(t.Context(), first, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"membership gr_Ann's in gr_staff", "parameter log_statement", "role gr_Ann's", "role gr_bob", "role gr_staff", "setting work_mem of gr_bob"}
	if got := ours(before.Missing); !slices.Equal(got, want) || !before.Passwords {
		t.Errorf("missing are %q, want %q; passwords %v", got, want, before.Passwords)
	}
	if extra, differ := ours(before.Extra), ours(before.Differ); !slices.Equal(extra, []string{"role gr_only"}) || !slices.Equal(differ, []string{"role gr_there"}) {
		t.Errorf("only there: %q; different: %q", extra, differ)
	}
	if strings.Contains(allTexts(slices.Concat(before.Missing, before.Differ, before.Extra)), "SCRAM") {
		t.Error("a hash of a password is shown")
	}
	made, err := dst.RestoreGlobals(t.Context(), first, text)
	if err != nil || !slices.Equal(ours(made), want) {
		t.Fatalf("made %q, %v", ours(made), err)
	}
	if made, err := dst.RestoreGlobals(t.Context(), first, text); err != nil || len(made) != 0 {
		t.Errorf("a second time: %q, %v", ours(made), err)
	}
	after, err := dst.CompareGlobals(t.Context(), first, text)
	if err != nil || len(after.Missing) != 0 || !slices.Equal(ours(after.Differ), ours(before.Differ)) {
		t.Errorf("afterwards: %+v, %v", after, err)
	}
	ann := newSource(t, Config{DSN: to.DSNFor("gr_Ann's", "open sesame", "postgres")})
	if _, err := ann.Databases(t.Context(), first); err != nil {
		t.Errorf("the password does not open the new server: %v", err)
	}
	if got := to.Text(t, "postgres", `SELECT rolcanlogin::text FROM pg_roles WHERE rolname = 'gr_there'`); got != "false" {
		t.Errorf("a role that was there has been changed: login %s", got)
	}

	_, err = ann.RestoreGlobals(t.Context(), first, strings.ReplaceAll(text, "gr_bob", "gr_carl"))
	if err == nil || strings.Contains(err.Error(), "SCRAM") {
		t.Errorf("a role without rights: %v", err)
	}
	if n := to.Text(t, "postgres", `SELECT count(*)::text FROM pg_roles WHERE rolname = 'gr_carl'`); n != "0" {
		t.Error("a part of what failed has been made")
	}
	restoreTablespaces(t, dst, to)
}

// restoreTablespaces: one whose directory is not there is told with what to do; what was made before stays, and the next call
// makes the rest.
func restoreTablespaces(t *testing.T, dst *Source, srv *pgtest.Server) {
	t.Helper()
	away := filepath.Join(srv.Dir, "away")
	text := "CREATE ROLE gr_owner;\nALTER ROLE gr_owner WITH NOLOGIN;\nCREATE TABLESPACE gr_fast OWNER gr_owner LOCATION '" + away +
		"';\nALTER TABLESPACE gr_fast SET (random_page_cost=1.1);\n"
	made, err := dst.RestoreGlobals(t.Context(), first, text)
	if err == nil || !strings.Contains(err.Error(), "directory must be there") || !slices.Equal(ours(made), []string{"role gr_owner"}) {
		t.Errorf("made %q, %v", ours(made), err)
	}
	srv.Exec(t, "postgres", "COPY (SELECT) TO PROGRAM 'mkdir "+away+"'") // it belongs to the server
	if made, err = dst.RestoreGlobals(t.Context(), first, text); err != nil || !slices.Equal(ours(made), []string{"tablespace gr_fast"}) {
		t.Errorf("then made %q, %v", ours(made), err)
	}
	if d, err := dst.CompareGlobals(t.Context(), first, text); err != nil || len(d.Missing) != 0 || len(ours(d.Differ)) != 1 {
		t.Errorf("afterwards %+v, %v", d, err)
	}
}

func globalsOf(t *testing.T, s *Source) string {
	t.Helper()
	d, err := s.Dump(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var b bytes.Buffer
	if err := d.Write(t.Context(), source.PartGlobals, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ours are what this test has made, in order; other tests share the server.
func ours(list []source.Global) (names []string) {
	for _, g := range list {
		if strings.Contains(g.Name, "gr_") || g.Name == "log_statement" {
			names = append(names, g.Kind+" "+g.Name)
		}
	}
	slices.Sort(names)
	return names
}
