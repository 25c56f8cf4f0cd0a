package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	c := config(t)
	a, _ := start(t, c)
	r := &reloader{file: file, running: *running, level: level, log: log, notify: a.takeNotify}
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
	write("node: n1\nlog: {level: debug}\nnotify: {after: 7s, hooks: [{name: chat, url: 'http://127.0.0.1:1/x'}]}\n")
	if got, err = client.Reload(t.Context()); err != nil || !slices.Equal(got.Applied, []string{"notify.after", "notify.hooks"}) {
		t.Errorf("%+v, %v", got, err)
	}
	until(t, a, "who is told says the file as it is now", func() bool {
		fit := a.outfitNow()
		return len(fit.cfg.Notify.Hooks) == 1 && fit.cfg.Notify.After == 7*time.Second && !a.notifier.Nobody() && slices.Contains(a.namesInFile(), "hook chat")
	})
	write("node: n1\nlog: {level: info}\nnotify: {hooks: [{name: chat, url: 'http://127.0.0.1:1/x', template: '{{.Nothing}}'}]}\n")
	if _, err = client.Reload(t.Context()); api.ExitCode(err) != api.ExitUsage || !strings.Contains(err.Error(), "notify.hooks[0]") || level.Level() != slog.LevelDebug {
		t.Errorf("a template that is none: %v, level %v", err, level.Level())
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
	b.Log.Level, b.Notify = "debug", configs.Notify{}
	different := configs.Differences(&a, &b)
	for _, key := range reloadable {
		if !slices.ContainsFunc(different, func(path string) bool { return path == key || strings.HasPrefix(path, key+".") }) {
			t.Errorf("there is no %s", key)
		}
	}
	for _, path := range different {
		if !takesEffect(path) {
			t.Errorf("%s does not take effect", path)
		}
	}
	if takesEffect("notifying") || takesEffect("log.format") {
		t.Error("what only begins like a key takes effect")
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
