package postgres

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/pipeline/source"
)

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"empty":          {},
		"bad url":        {DSN: "postgres://u:hunter2%zz@h/x"},
		"space in port":  {DSN: "postgres://u:hunter2@h:x y/db"},
		"bad keyword":    {DSN: "host=h password=hunter2 dbname"},
		"open quote":     {DSN: "password='hunter2 dbname=x"},
		"ssl password":   {DSN: "host=h dbname=x sslpassword=hunter2"},
		"bad ssl mode":   {DSN: "host=h dbname=x password=hunter2 sslmode=maybe"},
		"negative grace": {DSN: "host=h dbname=x", Grace: -1},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a child is given means the same to libpq's rules as what we put in.
func TestConninfoRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[^\x00]{1,20}`).Draw(t, "name")
		w, err := parseDSN("host=h user=u dbname=d sslmode=require options='-c x=y'", 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := keywordSettings(w.conninfo(address{"h", 5}, name, "app"))
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"dbname": name, "host": "h", "port": "5", "user": "u", "sslmode": "require", "options": "-c x=y", "application_name": "app"} {
			if got[key] != want {
				t.Errorf("%s: want %q, got %q", key, want, got[key])
			}
		}
	})
}

func TestAddressesArePinned(t *testing.T) {
	w, err := parseDSN("host=a,b,a port=1,2,1 dbname=d user=u sslmode=prefer password=x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]address{{"a", 1}, {"b", 2}}, w.addresses(), cmp.AllowUnexported(address{})); d != "" {
		t.Fatal(d)
	}
	c := w.config(address{"b", 2}, "other", "app")
	if c.Host != "b" || c.Port != 2 || c.Database != "other" || c.RuntimeParams["application_name"] != "app" || c.TLSConfig == nil {
		t.Errorf("config is for %s:%d/%s", c.Host, c.Port, c.Database)
	}
	for _, f := range c.Fallbacks {
		if f.Host != "b" || f.TLSConfig != nil {
			t.Errorf("falls back to %+v", f)
		}
	}
	if w.base.Database != "d" {
		t.Error("the parsed DSN was changed")
	}
}

func TestRedactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[^\x00*]{8,20}`).Draw(t, "secret")
		text := strings.Join([]string{
			"raw " + secret, "url " + url.QueryEscape(secret), "path " + url.PathEscape(secret), url.UserPassword("u", secret).String(),
			"conninfo '" + conninfoEscaper.Replace(secret) + "'", base64.StdEncoding.EncodeToString([]byte(secret)),
		}, "\n")
		clean := redactor{"", secret}.clean(text)
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if strings.Contains(clean, form) {
				t.Errorf("%q is in %q", form, clean)
			}
		}
		if strings.Count(clean, "***") < 6 {
			t.Errorf("want six stars, got %q", clean)
		}
	})
}

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.StringMatching(`[a-zü数]{1,40}`).Filter(func(s string) bool { return len(s) <= maxName }).Draw(t, "target")
		other := rapid.StringMatching(`[a-zü数]{1,40}`).Filter(func(s string) bool { return len(s) <= maxName && s != target }).Draw(t, "other")
		a := source.Attempt{Task: rapid.StringMatching(`[a-z0-9-]{1,32}`).Draw(t, "task"), Token: rapid.Uint64Range(1, 1<<53-1).Draw(t, "token")}
		name := preparedName(target, a)
		for _, n := range []string{name, undoName(target, a)} {
			if len(n) > maxName || !utf8.ValidString(n) {
				t.Errorf("%q is no name", n)
			}
		}
		if name == preparedName(other, a) || undoName(target, a) == undoName(other, a) {
			t.Errorf("%q and %q share a name", target, other)
		}
		if token, ok := preparedBy(name, a.Task); !ok || token != a.Token {
			t.Errorf("%q is not recognized", name)
		}
		if _, ok := preparedBy(name, a.Task+"x"); ok {
			t.Errorf("%q is taken for another task's", name)
		}
		if len(tag(a)) > maxName {
			t.Errorf("tag %q is too long", tag(a))
		}
	})
}

func TestChooseTool(t *testing.T) {
	found := []tool{{"a", "14.2"}, {"b", "15.3"}, {"c", "15.18"}, {"d", "17.0"}, {"e", "18beta1"}}
	for need, want := range map[int]string{0: "a", 14: "a", 15: "c", 16: "d", 18: "e", 19: ""} {
		if got, ok := choose(found, need); got.path != want || ok != (want != "") {
			t.Errorf("for %d: %+v, %v", need, got, ok)
		}
	}
	for version, want := range map[string]int{"15.18": 15, "18beta1": 18, "9.6.24": 9, "": 0, "x": 0} {
		if got := majorOf(version); got != want {
			t.Errorf("major of %q is %d", version, got)
		}
	}
}

func TestVersionFits(t *testing.T) {
	for _, c := range []struct {
		server, backup string
		fits           bool
	}{{"15.18", "15.2", true}, {"17.0", "15.2", true}, {"15.18", "16.0", false}, {"12.4", "12.4", false}, {"15.18", "", true}} {
		if p, ok := versionFits(c.server, source.Info{ServerVersion: c.backup}); ok != c.fits || (!ok && (p.what == "" || p.hint == "")) {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

func TestCompareCounts(t *testing.T) {
	for _, c := range []struct {
		want, got map[string]int64
		says      string
	}{
		{map[string]int64{"tables": 2}, map[string]int64{"tables": 2}, ""},
		{map[string]int64{"tables": 2}, map[string]int64{"tables": 1}, "2 tables and the new database has 1"},
		{map[string]int64{"views": 1}, nil, "1 views and the new database has 0"},
		{nil, map[string]int64{"triggers": 1}, "0 triggers and the new database has 1"},
	} {
		if p, ok := (expected{counts: c.want}).compare(c.got); ok != (c.says == "") || !strings.Contains(p.what, c.says) {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

func TestCreateStatement(t *testing.T) {
	for want, l := range map[string]source.Locale{
		`CREATE DATABASE "a""b" TEMPLATE template0 ENCODING 'UTF8'`:                                                                   {},
		`CREATE DATABASE "a""b" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'd''e'`:                                    {Provider: "c", Collate: "C", Ctype: "d'e"},
		`CREATE DATABASE "a""b" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER 'icu' ICU_LOCALE 'de'`: {Provider: "i", Collate: "C", Ctype: "C", Name: "de"},
	} {
		if got := createStatement(`a"b`, "UTF8", l); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestSplitNames(t *testing.T) {
	for list, want := range map[string][]string{
		`"$user", public`: {"$user", "public"},
		`"a ""b, c", d`:   {`a "b, c`, "d"},
		`""`:              {""},
		``:                nil,
		`"",x`:            {"", "x"},
	} {
		if d := cmp.Diff(want, splitNames(list)); d != "" {
			t.Errorf("%s: %s", list, d)
		}
	}
}

// A script comes back as it was; anything cut from its end is noticed; a value cannot pass for the last line.
func TestScriptEncoding(t *testing.T) {
	comment := "x';\n" + scriptMark + "{}\n\\"
	s := script{Owner: `o"w`, ConnLimit: -1, Comment: &comment, Counts: map[string]int64{"tables": 3},
		Rights:   []right{{Role: "", Right: "CONNECT"}, {Role: `r"`, Right: "CREATE", Option: true}},
		Settings: []setting{{Name: "search_path", Value: `"a", b`}, {Role: "r", Name: "my.own", Value: "'; DROP DATABASE x; --"}},
		Labels:   []label{{"p", "l'"}}}
	b, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeScript(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, got); d != "" {
		t.Error(d)
	}
	for n := range len(b) {
		if _, err := decodeScript(strings.NewReader(string(b[:n]))); !errors.Is(err, source.ErrIncomplete) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	statements, err := s.statements(`"d"`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`ALTER DATABASE "d" OWNER TO "o""w"`,
		`REVOKE ALL ON DATABASE "d" FROM PUBLIC, "o""w"`,
		`GRANT CONNECT ON DATABASE "d" TO PUBLIC`,
		`GRANT CREATE ON DATABASE "d" TO "r""" WITH GRANT OPTION`,
		`ALTER DATABASE "d" SET "search_path" TO 'a', 'b'`,
		`ALTER ROLE "r" IN DATABASE "d" SET "my"."own" TO '''; DROP DATABASE x; --'`,
		`SECURITY LABEL FOR "p" ON DATABASE "d" IS 'l'''`,
		`COMMENT ON DATABASE "d" IS E'x'';` + "\n" + scriptMark + "{}\n" + `\\'`,
	}
	if d := cmp.Diff(want, statements); d != "" {
		t.Error(d)
	}
	s.Rights = []right{{Right: "CONNECT ON DATABASE x TO y; --"}}
	if _, err := s.statements(`"d"`); err == nil {
		t.Error("a right that is none was taken")
	}
}

func TestExplainOutput(t *testing.T) {
	for output, want := range map[string]string{
		`pg_dump: error: Dumping the contents of table "t" failed
pg_dump: detail: Error message from server: server closed the connection unexpectedly`: "ended the session",
		`pg_restore: error: could not execute query: ERROR:  could not extend file "base/1/2": No space left on device`:                               "disk is full",
		`pg_dump: error: query failed: ERROR:  permission denied for table t`:                                                                         "lacks a right",
		`pg_restore: error: could not execute query: ERROR:  role "x" does not exist`:                                                                 "role is missing",
		`pg_restore: error: could not execute query: ERROR:  extension "x" is not available`:                                                          "extension is missing",
		"pg_dump: error: query failed: FATAL:  terminating connection due to conflict with recovery\npg_dump: detail: Query was: x":                   "replay on the standby cancelled",
		"pg_dump: error: query failed: ERROR:  canceling statement due to conflict with recovery":                                                     "replay on the standby cancelled",
		"pg_restore: error: could not execute query: ERROR:  division by zero\nCommand was: x\npg_restore: error: a worker process died unexpectedly": "division by zero",
		`pg_restore: error: could not set default_tablespace to fast: ERROR:  invalid value for parameter "default_tablespace": "fast"`:               "tablespace is missing",
		`something new`: "pg_x ended with exit status 1: something new",
		"":              "pg_x ended with exit status 1",
	} {
		p := explainOutput("pg_x", output, "exit status 1")
		if !strings.Contains(p.what, want) || len(p.kinds) == 0 || !errors.Is(p.kinds[0], source.ErrIncomplete) {
			t.Errorf("%q: %+v", output, p)
		}
	}
	for code, want := range map[string]error{"57P03": source.ErrUnavailable, "53300": source.ErrUnavailable, "08006": source.ErrUnavailable, "57014": nil, "28P01": nil, "3D000": nil} {
		p := explainCode(code, "said so")
		if got := len(p.kinds) == 1 && errors.Is(p.kinds[0], source.ErrUnavailable); got != (want != nil) || p.hint == "" {
			t.Errorf("%s: %+v", code, p)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var m messages
	for range 100 {
		if _, err := m.Write([]byte(strings.Repeat("x", 3*maxLine) + "\nwarning: y\x1b[31m\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.text()); n > (keptLines+1)*(maxLine+1) {
		t.Errorf("kept %d bytes", n)
	}
	if w := m.warnings(); len(w) != keptLines || w[0] != "warning: y [31m" {
		t.Errorf("warnings: %q", w)
	}
}
