package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// person opens the page that was printed and types what it shows.
type person struct {
	screen *bytes.Buffer
	typed  io.Reader
}

func (p *person) Read(b []byte) (int, error) {
	if p.typed == nil {
		res, err := http.Get(regexp.MustCompile(`http\S+`).FindString(p.screen.String()))
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		code, err := io.ReadAll(res.Body)
		if err != nil {
			return 0, err
		}
		p.typed = strings.NewReader(string(code) + "\n")
	}
	return p.typed.Read(b)
}

// authorizing is a node's configuration with a storage whose token shall be in the file.
func authorizing(t *testing.T, endpoint, token string) (config string) {
	t.Helper()
	config = filepath.Join(t.TempDir(), "n1.yaml")
	text := fmt.Sprintf("node: n1\nstorages:\n- {name: box, kind: dropbox, app_key: %s, refresh_token: %q, endpoint: %q}\n- {name: m, kind: mem}\n",
		dropboxtest.DefaultAppKey, token, endpoint)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestStorageAuth(t *testing.T) {
	box, err := dropboxtest.New(dropboxtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(box)
	defer web.Close()
	file := filepath.Join(t.TempDir(), "box.token")
	if err := os.WriteFile(file, []byte("an old one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := authorizing(t, web.URL, "file:"+file)
	env, stdout, stderr := world("", "somebody")
	env.Stdin = &person{screen: stderr}
	if exit := Main(t.Context(), []string{"storage", "auth", "box", "--config", config}, env); exit != 0 {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	value := strings.TrimSpace(string(token))
	if !strings.HasPrefix(value, "refresh-") || strings.Contains(stdout.String()+stderr.String(), value) || !strings.Contains(stdout.String(), file) {
		t.Errorf("the file holds %q, and people see\n%s%s", token, stdout, stderr)
	}

	before := string(token)
	for _, c := range []struct {
		stdin, want string
		args        []string
	}{
		{"wrong\n", "the code is wrong", []string{"box", "--config", config}},
		{"", "no code was typed", []string{"box", "--config", config}},
		{"x", "kind mem, which needs no authorizing", []string{"m", "--config", config}},
		{"x", `has no storage named "bax"`, []string{"bax", "--config", config}},
		{"x", "refresh_token is env:BOX: write file:PATH", []string{"box", "--config", authorizing(t, web.URL, "env:BOX")}},
		{"x", "which node?", []string{"box"}},
	} {
		got := run(t, "", c.stdin, append([]string{"storage", "auth"}, c.args...)...)
		if got.exit == 0 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q: exit %d, %s", c.args, got.exit, got.stderr)
		}
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != before {
		t.Errorf("the token became %q, %v", now, err)
	}
}
