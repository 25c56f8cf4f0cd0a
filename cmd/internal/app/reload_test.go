package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// TestReload: what can change while the node runs does, what cannot is named, and a file that is not valid changes nothing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("node: n1\n")
	running, err := configs.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	log, level := logger(running.Log, &bytes.Buffer{})
	r := &reloader{file: file, running: *running, level: level, log: log}
	c := config(t)
	a, _ := start(t, c)
	ready(t, a) // what changes something is noted in the audit trail, which the group keeps
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	if _, err := client.Reload(t.Context()); err == nil {
		t.Error("a node without a file was reloaded")
	}
	a.reloadBy(r.reload)

	write("node: n1\nlog: {level: debug}\nraft: {voters: 5}\nbackup: {max_concurrent: 7}\n")
	got, err := client.Reload(t.Context())
	want := api.Reload{File: file, Applied: []string{"log.level"}, Restart: []string{"raft.voters", "backup.max_concurrent"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if level.Level() != slog.LevelDebug {
		t.Error(level.Level())
	}
	if got, err = client.Reload(t.Context()); err != nil || len(got.Applied) != 0 || len(got.Restart) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	write("node: n1\nlog: {level: loud}\n")
	if _, err = client.Reload(t.Context()); api.ExitCode(err) != api.ExitUsage || !strings.Contains(err.Error(), "log.level") {
		t.Error(err)
	}
	if level.Level() != slog.LevelDebug {
		t.Error("a file that is not valid has changed something")
	}
}

// TestEachReloadableKeyIsOne: what is said to be reloadable is a key of the file.
func TestEachReloadableKeyIsOne(t *testing.T) {
	a, b := configs.Default(), configs.Default()
	b.Log.Level = "debug"
	if diff := cmp.Diff(reloadable, configs.Differences(&a, &b)); diff != "" {
		t.Error(diff)
	}
}

// TestPrintAndCheck: the daemon prints the configuration as it counts, without passwords, and checks one, without starting.
func TestPrintAndCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for file, text := range map[string]string{
		good: "node: n1\nraft: {voters: 5}\ndatabases: [{name: shop, dsn: 'postgres://u:hunter2@h/d'}]\n", bad: "node: n1\nraft: {votres: 5}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args           []string
		exit           int
		stdout, stderr string
	}{
		{[]string{"--config", good, "--print-config"}, 0, "  voters: 5\n", ""},
		{[]string{"--config", good, "--print-config"}, 0, "  - name: shop\n", ""},
		{[]string{"--config", good, "--check-config"}, 0, "good.yaml: ok\n", ""},
		{[]string{"--config", good, "--check"}, 0, "good.yaml: ok\n", ""},
		{[]string{"--config", bad, "--print-config"}, 2, "", "raft.votres: unknown key: did you mean raft.voters?"},
		{[]string{"--config", bad, "--check-config"}, 2, "", "raft.votres: unknown key"},
	} {
		var stdout, stderr bytes.Buffer
		exit := Main(test.args, "test", &stdout, &stderr)
		if exit != test.exit || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) || strings.Contains(stdout.String(), "hunter2") {
			t.Errorf("%v: exit %d, %s%s", test.args, exit, stdout.String(), stderr.String())
		}
	}
}
