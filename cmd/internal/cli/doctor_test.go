package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// TestDoctor: what the running daemon and the other nodes are alarmed about is examined beside the configuration; a daemon
// that does not run is no failure of its own.
func TestDoctor(t *testing.T) {
	got := run(t, daemon(t, newFake()), "", "doctor", "--config", "/nowhere/node.yaml", "-o", "json")
	var exams []offline.Exam
	if err := json.Unmarshal([]byte(got.stdout), &exams); err != nil || got.exit != 1 || !strings.Contains(got.stderr, "2 examinations failed\nhint: ") {
		t.Fatalf("%v: %+v", err, got)
	}
	state := map[string]string{}
	for _, e := range exams {
		state[e.What+" "+e.About] = e.State
	}
	for what, want := range map[string]string{
		"configuration /nowhere/node.yaml": offline.ExamFailed, "daemon n1": offline.ExamOK, "backup books": offline.ExamFailed,
		"voters shop": offline.ExamWarning, "clock all nodes": offline.ExamOK,
	} {
		if state[what] != want {
			t.Errorf("%s is %q, want %s", what, state[what], want)
		}
	}
	got = run(t, "/nowhere/a.sock", "", "doctor", "--config", "/nowhere/node.yaml")
	if got.exit != 1 || !strings.Contains(got.stdout, "skipped  daemon: it does not run") || !strings.Contains(got.stdout, "mend: `fencepost init`") ||
		!strings.HasSuffix(got.stdout, "\n0 ok, 0 warnings, 1 failed, 2 skipped\n") {
		t.Errorf("%+v", got)
	}
}

// TestDoctorWithSettings: what only the group's settings name is examined, too, whether a daemon tells them or a file does;
// and what the file of the node has, too, counts there.
func TestDoctorWithSettings(t *testing.T) {
	dir := t.TempDir()
	config, settings, disk := filepath.Join(dir, "node.yaml"), filepath.Join(dir, "settings.yaml"), filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		config:   "node: n1\nhome: " + dir + "/home\nadmin:\n  socket: " + dir + "/sock\ndatabases:\n  - name: here\n    dsn: postgres://u@127.0.0.1:1/here?connect_timeout=1\n",
		settings: "storages:\n  - name: spare\n    kind: local\n    path: " + disk + "\ndatabases:\n  - name: here\n    dsn: env:HERE\n  - name: there\n    dsn: postgres://u@127.0.0.1:1/there?connect_timeout=1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	examined := func(socket string, args ...string) map[string]string {
		t.Helper()
		got := run(t, socket, "", append([]string{"doctor", "--read-only", "--config", config, "-o", "json"}, args...)...)
		var exams []offline.Exam
		if err := json.Unmarshal([]byte(got.stdout), &exams); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		state := map[string]string{}
		for _, e := range exams {
			state[e.What+" "+e.About] = e.State
		}
		return state
	}
	for what, want := range map[string]string{"storage spare": offline.ExamOK, "database there": offline.ExamFailed, "settings database here": offline.ExamWarning, "settings of the group": ""} {
		if got := examined("/nowhere/a.sock", "--settings", settings); got[what] != want {
			t.Errorf("by a file: %s is %q, want %q", what, got[what], want)
		}
	}
	if got := examined(daemon(t, newFake())); got["storage disk"] == "" || got["database pg1.shop"] == "" {
		t.Errorf("by a daemon: %v", got)
	}
	if got := examined("/nowhere/a.sock"); got["storage spare"] != "" || got["settings of the group"] != offline.ExamSkipped {
		t.Errorf("by nobody: %v", got)
	}
}

// TestExportOfWhatThereIs: no file says of a kind that there is nothing, but one that said otherwise before.
func TestExportOfWhatThereIs(t *testing.T) {
	socket, dir := daemon(t, newFake()), filepath.Join(t.TempDir(), "out")
	written := func() (list []string) {
		t.Helper()
		if got := run(t, socket, "", "export", "-f", dir); got.exit != 0 {
			t.Fatalf("%+v", got)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			list = append(list, filepath.Base(f))
		}
		return list
	}
	if got := written(); !slices.Equal(got, []string{"servers.yaml", "storages.yaml", "users.yaml"}) {
		t.Errorf("written: %v", got)
	}
	old := filepath.Join(dir, "schedules.yaml")
	if err := os.WriteFile(old, []byte("schedules:\n  - name: nightly\n    database: shop\n    cron: \"@daily\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	written()
	if text, err := os.ReadFile(old); err != nil || string(text) != "schedules: []\n" {
		t.Errorf("an older file says %q, %v", text, err)
	}
	if got := run(t, socket, "", "apply", "-f", dir, "--plan", "--prune"); got.exit != 0 || !strings.Contains(got.stdout, "nothing to change") {
		t.Errorf("what was exported, applied: %+v", got)
	}
}
