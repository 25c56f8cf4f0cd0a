package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnv: an operator makes, fails and repairs an environment; what each command prints and its exit code.
func TestEnv(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "env"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		exit int
		says []string // of both outputs
	}{
		{"status", 2, []string{"which node?", "--home"}},
		{"--home " + dir + "/none status", 1, []string{"no warden has kept"}},
		{"--home DIR fail --cause x", 1, []string{"not sealed"}},
		{"--home DIR seal", 0, []string{"sealed generation 1"}},
		{"--home DIR status", 0, []string{"generation  1, open", "kept by     nobody"}},
		{"--home DIR slots", 0, []string{"Nobody is inside"}},
		{"--home DIR verify", 1, []string{"nobody keeps it", "1 problems"}},
		{"--home DIR evidence", 0, []string{"No generation has failed"}},
		{"--home DIR fail", 2, []string{"needs a cause"}},
		{"--home DIR fail --cause disk", 0, []string{"failed"}},
		{"--home DIR status", 0, []string{"failed      disk"}},
		{"--home DIR drain", 0, []string{"drained"}},
		{"--home DIR status", 0, []string{"not open", "ended by    disk"}},
		{"--home DIR sweep", 0, []string{"swept"}},
		{"--home DIR seal -o json", 0, []string{`"generation": 2`}},
		{"--home DIR evidence", 0, []string{"generation 1", "disk"}},
		{"--home DIR evidence -o json", 0, []string{`"cause": "disk"`}},
		{"--home DIR", 2, []string{"env needs a command"}},
		{"--home DIR polish", 2, []string{`no command "polish"`}},
	} {
		args := append([]string{"env"}, strings.Fields(strings.ReplaceAll(step.args, "DIR", dir))...)
		r := run(t, "", "", args...)
		if r.exit != step.exit {
			t.Errorf("%s: exit code %d, want %d: %s%s", step.args, r.exit, step.exit, r.stdout, r.stderr)
		}
		for _, word := range step.says {
			if !strings.Contains(r.stdout+r.stderr, word) {
				t.Errorf("%s: %q is not in %q", step.args, word, r.stdout+r.stderr)
			}
		}
	}
}
