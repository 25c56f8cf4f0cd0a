package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// What certs makes, it renews and shows, and nothing is overwritten. It needs no daemon.
func TestCertsFromTheFirstToTheRenewed(t *testing.T) {
	dir := t.TempDir()
	say := func(exit int, args ...string) result {
		t.Helper()
		r := run(t, "/no/daemon", "", append([]string{"certs"}, args...)...)
		if r.exit != exit {
			t.Fatalf("certs %v: exit %d, want %d: %s%s", args, r.exit, exit, r.stdout, r.stderr)
		}
		return r
	}
	say(0, "init", "--dir", dir, "--group", "shop")
	say(0, "issue", "--dir", dir, "--group", "shop", "--node", "n1")
	before, err := os.ReadFile(filepath.Join(dir, "n1.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range [][]string{{"init", "--dir", dir, "--group", "shop"}, {"issue", "--dir", dir, "--group", "shop", "--node", "n1"}} {
		if r := say(1, again...); !strings.Contains(r.stderr, "overwrites nothing") {
			t.Errorf("%v: %s", again, r.stderr)
		}
	}
	say(0, "renew", "--dir", dir, "--node", "n1", "--valid", "49h")
	if after, err := os.ReadFile(filepath.Join(dir, "n1.key")); err != nil || string(after) != string(before) {
		t.Errorf("renewing changed the key (%v)", err)
	}
	var list []offline.CertFile
	if err := json.Unmarshal([]byte(say(0, "show", dir, "-o", "json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || !list[0].Authority || list[1].Name != "fencepost://shop/n1" {
		t.Errorf("%+v", list)
	}
	if text := say(0, "show", filepath.Join(dir, "n1.pem")).stdout; !strings.Contains(text, "fencepost://shop/n1") {
		t.Error(text)
	}
	if r := say(2, "issue", "--dir", dir, "--node", "N2"); !strings.Contains(r.stderr, `node "N2"`) {
		t.Error(r.stderr)
	}
	say(1, "renew", "--dir", dir, "--node", "n2")
	say(1, "show", filepath.Join(dir, "none"))
	if r := say(2, "show", filepath.Join(dir, "n1.key")); strings.Contains(r.stderr, string(before[30:50])) {
		t.Error("a key is in an error")
	}
	empty := t.TempDir()
	for _, there := range [][]string{{"issue", "--group", "shop", "--node", "n1"}, {"renew", "--node", "n1"}, {"rotate-ca", "begin"}, {"rotate-ca", "finish"}} {
		if r := say(1, append(there, "--dir", empty)...); !strings.Contains(r.stderr, "ca.key") || !strings.Contains(r.stderr, "hint: --dir is where") {
			t.Errorf("%v without an authority: %s", there, r.stderr)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := say(2, "issue", "--dir", dir, "--group", "shop", "--node", "n3"); !strings.Contains(r.stderr, "chmod 600") {
		t.Error(r.stderr)
	}
}
