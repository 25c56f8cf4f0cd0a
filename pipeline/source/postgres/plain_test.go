package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// plainSample is a sample without large objects.
func plainSample(t *testing.T) *Source {
	t.Helper()
	s := sampled(t, 0)
	pg.Server(t).Exec(t, s.Database(), `SELECT lo_unlink(oid) FROM pg_largeobject_metadata`)
	return s
}

func TestPlainRoundTrip(t *testing.T) {
	s := plainSample(t)
	b := takeWith(t, s, source.DumpOptions{Format: source.FormatPlain})
	if b.info.Format != source.FormatPlain || !bytes.Contains(b.parts[source.PartData], []byte("CREATE TABLE public.customers")) {
		t.Errorf("info says %+v", b.info)
	}
	restored(t, s, b, "from plain", source.RestoreChoices{})
	same(t, fingerprint(t, s.Database()), fingerprint(t, "from plain"))
	nothingLeft(t, first)
}

// Nothing of a plain script that is cut, changed or hostile stays, and nothing in it is a command of psql.
func TestPlainRefused(t *testing.T) {
	s := plainSample(t)
	b := takeWith(t, s, source.DumpOptions{Format: source.FormatPlain})
	data := string(b.parts[source.PartData])
	owned := filepath.Join(t.TempDir(), "owned")
	end := strings.Index(data, "\n"+plainEnd)
	boom := errors.New("hash does not fit")
	inside := func(text string) io.Reader {
		at := strings.Index(data, "CREATE TABLE")
		return strings.NewReader(data[:at] + text + "\n" + data[at:])
	}
	foreign := "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE t ();\n%s\n--\n-- PostgreSQL database dump complete\n--\n\n"
	for _, c := range []struct {
		name, part string
		kind       error
		stream     io.Reader
	}{
		{"cut in the middle", "lacks the line", source.ErrIncomplete, strings.NewReader(data[:len(data)/2])},
		{"cut before its end", "lacks the line", source.ErrIncomplete, strings.NewReader(data[:end])},
		{"empty", "lacks the line", source.ErrIncomplete, strings.NewReader("")},
		{"reader fails midway", boom.Error(), boom, io.MultiReader(strings.NewReader(data[:len(data)/2]), iotest.ErrReader(boom))},
		{"reader fails at the end", boom.Error(), boom, io.MultiReader(strings.NewReader(data), iotest.ErrReader(boom))},
		{"an archive", "it is no plain dump", nil, strings.NewReader("-\x00PGDMP" + strings.Repeat("x", 1<<20))},
		{"shell", "command for psql", nil, inside(`\! touch ` + owned)},
		{"copy from program", "command for psql", nil, inside(`\copy t from program 'touch ` + owned + `'`)},
		{"connect", "command for psql", nil, inside(`\connect postgres`)},
		{"output", "command for psql", nil, inside(`\o ` + owned)},
		{"guessed key", "command for psql", nil, inside(`\unrestrict ` + strings.Fields(data[strings.Index(data, `\restrict`):])[1])},
		{"in the head", "command for psql", nil, strings.NewReader(`\! touch ` + owned + "\n" + data)},
		{"after the end", "goes on after its end", nil, strings.NewReader(data + `\! touch ` + owned + "\n")},
		{"foreign, SQL error", "syntax error", nil, strings.NewReader(fmt.Sprintf(foreign, "CREATE TABEL x ();"))},
		{"foreign, last statement", "does not exist", nil, strings.NewReader(fmt.Sprintf(foreign, "SELECT no_such();"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "plain", Info: source.Info{Format: source.FormatPlain}})
			if err != nil {
				t.Fatal(err)
			}
			err = r.Read(t.Context(), source.PartData, c.stream)
			if fails(t, err, c.part); c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
			if err := r.Commit(t.Context()); err == nil {
				t.Error("committed")
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(owned); err == nil {
				t.Error("a command of the script was run")
			}
		})
	}
	noStray(t)
	nothingLeft(t, first)
}

// A script that pg_dump of long ago wrote on another machine has no restriction of its own.
func TestForeignPlain(t *testing.T) {
	s := plainSample(t)
	data := string(takeWith(t, s, source.DumpOptions{Format: source.FormatPlain}).parts[source.PartData])
	var old strings.Builder
	for line := range strings.Lines(data) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) {
			old.WriteString(line)
		}
	}
	dropLater(t, "foreign")
	r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "foreign", Info: source.Info{Format: source.FormatPlain}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read(t.Context(), source.PartData, strings.NewReader(old.String())); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, got := fingerprint(t, s.Database()), fingerprint(t, "foreign")
	same(t, want, got)
}

func TestPlainCannotBegin(t *testing.T) {
	s := plainSample(t)
	info := source.Info{Format: source.FormatPlain}
	for part, o := range map[string]source.RestoreOptions{
		"only be restored into a new database": {Target: s.Database(), RestoreChoices: source.RestoreChoices{InPlace: true}},
		"only be restored as it is":            {Target: "new", RestoreChoices: source.RestoreChoices{NoOwner: true}},
	} {
		o.Info = info
		_, err := s.Restore(t.Context(), first, o)
		fails(t, err, part)
	}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "psql"), []byte("#!/bin/sh\necho 'psql (PostgreSQL) 15.13'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := newSource(t, Config{DSN: pg.Server(t).DSN(s.Database()), BinDir: old}).Restore(t.Context(), first, source.RestoreOptions{Target: "new", Info: info})
	fails(t, err, "psql 15.13 cannot be kept")
	hasHint(t, err)
	noStray(t)
}

func TestKnowsRestrict(t *testing.T) {
	for version, want := range map[string]bool{
		"12.22": false, "13.21": false, "13.22": true, "14.19": true, "15.13": false, "15.18": true, "16.9": false, "17.6": true, "17.5": false, "18.0": true, "18beta3": true, "": false,
	} {
		if knowsRestrict(version) != want {
			t.Errorf("%s: want %v", version, want)
		}
	}
}

func TestBeforeCommit(t *testing.T) {
	for held, want := range map[string]string{
		"a;\nCOMMIT;\n\n--\n-- done\n--\n\n\\unrestrict x\n\n": "a;\n",
		"copy data\nCOMMIT;\nmore\n\\.\nCOMMIT;\n":             "copy data\nCOMMIT;\nmore\n\\.\n",
		"a;\nCOMMIT;\nb;\n":     "",
		"a;\n":                  "",
		"a;\nCOMMIT;\n\\! ls\n": "",
		"a;\nCOMMIT":            "",
	} {
		got, err := beforeCommit([]byte(held))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", held, got, err)
		}
	}
}

// Whatever the sizes of the writes, what is passed on and what is held make the whole, and what is held is the end.
func TestHoldBack(t *testing.T) {
	for _, sizes := range [][]int{{1}, {heldBack}, {heldBack + 1}, {heldBack - 1, 1, 1}, {3 * heldBack, 5}, {5, 3 * heldBack}, {100, 200, heldBack, heldBack, 7}} {
		var passed, all bytes.Buffer
		h := &holdBack{w: &passed}
		for i, n := range sizes {
			piece := bytes.Repeat([]byte{byte('a' + i)}, n)
			all.Write(piece)
			if k, err := h.Write(piece); k != n || err != nil {
				t.Fatal(k, err)
			}
		}
		if got := passed.String() + string(h.held); got != all.String() || len(h.held) != min(heldBack, all.Len()) {
			t.Errorf("%v: %d passed, %d held of %d", sizes, passed.Len(), len(h.held), all.Len())
		}
	}
}

// Scripts that make databases and roles of their own are refused before they have made any.
func TestScriptOfItsOwnDatabase(t *testing.T) {
	s := plainSample(t)
	srv := pg.Server(t)
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	script := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(bin, program), append(args, "--dbname="+srv.DSN(s.Database()))...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(out), s.Database(), "made by a script")
	}
	roles := script("pg_dumpall", "--roles-only")
	for want, text := range map[string]string{
		"makes its own database":     script("pg_dump", "--create"),
		"a script of a whole server": strings.ReplaceAll(roles, "postgres", "role_of_a_script"),
	} {
		r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "plain", Info: source.Info{Format: source.FormatPlain}})
		if err != nil {
			t.Fatal(err)
		}
		fails(t, r.Read(t.Context(), source.PartData, strings.NewReader(text)), want)
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	}
	if got := query(t, "postgres", `SELECT count(*) FROM pg_database WHERE datname = 'made by a script'`); got != "0" {
		t.Error("the script has made a database")
	}
	if got := query(t, "postgres", `SELECT count(*) FROM pg_roles WHERE rolname = 'role_of_a_script'`); got != "0" {
		t.Error("the script has made a role")
	}
	noStray(t)
	nothingLeft(t, first)
}
