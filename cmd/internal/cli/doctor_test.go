package cli

import (
	"encoding/json"
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
		!strings.HasSuffix(got.stdout, "\n0 ok, 0 warnings, 1 failed, 1 skipped\n") {
		t.Errorf("%+v", got)
	}
}
