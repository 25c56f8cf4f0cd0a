package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestByteSizeText(t *testing.T) {
	cases := map[string]ByteSize{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "20MiB": 20 << 20, "20 MiB": 20 << 20,
		"2KB": 2000, "3MB": 3e6, "1GB": 1e9, "1TiB": 1 << 40, "1TB": 1e12, "1GiB": 1 << 30,
	}
	for text, want := range cases {
		var got ByteSize
		if err := got.parse(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}

// TestByteSizeRoundTrip: what String writes, parse reads.
func TestByteSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := ByteSize(rapid.Int64Min(0).Draw(t, "size") >> rapid.IntRange(0, 60).Draw(t, "shift"))
		var got ByteSize
		if err := got.parse(want.String()); err != nil || got != want {
			t.Fatalf("%d became %q became %d (%v)", int64(want), want, int64(got), err)
		}
	})
}

func TestRequireOf(t *testing.T) {
	for _, c := range []struct {
		r           Require
		total, want int
		text        string
	}{{RequireAll, 3, 3, "all"}, {RequireAny, 3, 1, "any"}, {2, 3, 2, "2"}} {
		if got := c.r.Of(c.total); got != c.want || c.r.String() != c.text {
			t.Errorf("%v of %d is %d, want %d", c.r, c.total, got, c.want)
		}
		var back Require
		if err := back.parse(c.text); err != nil || back != c.r {
			t.Errorf("%q became %v (%v)", c.text, back, err)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"voters", "followers", "reap_after", "bind"}
	for word, want := range map[string]string{
		"voter": "voters", "voetrs": "voters", "Voters": "voters", "folowers": "followers",
		"reapafter": "reap_after", "bnd": "bind", "path": "", "": "", "colour": "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// TestDSNHidesPassword prints secrets in every way we can think of.
func TestDSNHidesPassword(t *testing.T) {
	for _, raw := range []string{
		"postgres://u:hunter2@h:5432/d",
		"postgres://u:hunter2@h/d?sslpassword=hunter2&password=hunter2",
		"postgres://u:hunter%2@broken/d",
		"postgresql://h/d?password=hunter2",
		"host=h password=hunter2 dbname=d",
		"host=h password='a hunter2 b' dbname=d",
		"host=h password=a\\ hunter2",
		"host=h sslpassword=hunter2 passfile=/hunter2",
		"host=h password = hunter2",
	} {
		d := NewDSN(raw)
		c := Config{Databases: []Database{{Name: "x", DSN: d}}, Ledger: Ledger{DSN: d}}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "dsn", d, "config", c)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "dsn", d, "config", c)
		shown := []string{d.String(), string(text), logged.String()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			shown = append(shown, fmt.Sprintf(verb, d), fmt.Sprintf(verb, &d), fmt.Sprintf(verb, c), fmt.Sprintf(verb, []DSN{d}))
		}
		for _, s := range shown {
			if strings.Contains(s, "hunter") || strings.Contains(s, fmt.Sprintf("%x", "hunter")) {
				t.Errorf("%q is shown as %q", raw, s)
			}
		}
	}
}

// TestSecretHidesItsValue does the same for other secrets.
func TestSecretHidesItsValue(t *testing.T) {
	s := NewSecret("hunter2")
	c := Config{Storages: []Storage{{Name: "x", AccessKey: s, SecretKey: s}}}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "secret", s, "config", c)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "secret", s, "config", c)
	shown := []string{s.String(), string(text), logged.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, c), fmt.Sprintf(verb, []Secret{s}))
	}
	for _, text := range shown {
		if strings.Contains(text, "hunter") || strings.Contains(text, fmt.Sprintf("%x", "hunter")) {
			t.Errorf("shown as %q", text)
		}
	}
	if got := NewSecret("env:NAME").String(); got != "env:NAME" {
		t.Errorf("a reference is shown as %q", got)
	}
	if err := json.Unmarshal([]byte(`"***"`), &s); err == nil {
		t.Error("a printed secret was taken for a real one")
	}
}

func TestSecretResolve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(" hunter2 \nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\nhunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_KEY", "hunter2")
	for _, raw := range []string{"hunter2", "env:SHOP_KEY", "file:" + file} {
		if got, err := NewSecret(raw).Resolve(); err != nil || got != "hunter2" {
			t.Errorf("%q resolved to %q, %v", raw, got, err)
		}
	}
	for raw, want := range map[string]string{
		"env:NO_KEY": "environment variable NO_KEY is not set", "file:" + file + ".no": "read the secret: open", "file:" + empty: "is empty", "": "is empty",
	} {
		if got, err := NewSecret(raw).Resolve(); err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q resolved to %q, error %v, want one with %q", raw, got, err, want)
		}
	}
}

func TestDSNShowsTheRest(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://u:p@h:5432/d?sslmode=require":                     "postgres://u:***@h:5432/d",
		"postgres://u@h/d":                                            "postgres://u@h/d",
		"host=h port=5 user=u password=p dbname=d application_name=x": "host=h port=5 user=u password=*** dbname=d",
		"env:SHOP":    "env:SHOP",
		"file:/etc/x": "file:/etc/x",
		"":            "",
	} {
		if got := NewDSN(raw).String(); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
	var d DSN
	if err := json.Unmarshal([]byte(`"postgres://u:***@h/d"`), &d); err == nil {
		t.Error("a printed dsn was taken for a real one")
	}
}

func TestDSNResolve(t *testing.T) {
	const secret = "postgres://u:hunter2@h/d"
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(" "+secret+" \nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_DSN", secret)
	t.Setenv("BAD_DSN", "hunter2")
	for _, raw := range []string{secret, "env:SHOP_DSN", "file:" + file} {
		if got, err := NewDSN(raw).Resolve(); err != nil || got != secret {
			t.Errorf("%q resolved to %q, %v", raw, got, err)
		}
	}
	for raw, want := range map[string]string{
		"env:NO_DSN":           "environment variable NO_DSN is not set",
		"env:BAD_DSN":          "env:BAD_DSN: is no connection string",
		"file:" + bad:          "is no connection string",
		"file:" + file + ".no": "no such file",
		"":                     "is no connection string",
	} {
		got, err := NewDSN(raw).Resolve()
		if err == nil || got != "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q resolved to %q, error %v, want one with %q", raw, got, err, want)
		}
	}
}
