package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestNarrowScreens: every table and sentence keeps to the width of the terminal, down to 60 columns; without a terminal
// nothing is cut.
func TestNarrowScreens(t *testing.T) {
	socket := daemon(t, newFake())
	for _, command := range [][]string{{"status"}, {"members"}, {"fences"}, {"recoveries"}, {"tasks"}, {"backup", "list"}} {
		for _, width := range []int{60, 80, 132} {
			env, stdout, stderr := world(socket, "")
			env.Width = width
			if exit := Main(t.Context(), command, env); exit != 0 {
				t.Fatalf("%v: %s", command, stderr)
			}
			for line := range strings.Lines(stdout.String()) {
				line = strings.TrimSuffix(line, "\n")
				table := strings.Contains(line, "…") || utf8.RuneCountInString(line) > width
				if n := utf8.RuneCountInString(line); table && n > max(width, leastWidth(command)) {
					t.Errorf("%v at %d columns: %d: %q", command, width, n, line)
				}
			}
		}
		env, stdout, _ := world(socket, "")
		if Main(t.Context(), command, env); strings.Contains(stdout.String(), "…") {
			t.Errorf("%v is cut without a terminal", command)
		}
	}
}

// leastWidth is what a table takes when all its columns are cut as far as they may be, with room for sentences beside it.
func leastWidth(command []string) int {
	columns := map[string]int{"status": 11, "members": 11, "fences": 11, "recoveries": 13, "tasks": 9, "backup": 11}[command[0]]
	return columns*(narrowest+2) + 10
}

func TestFit(t *testing.T) {
	for _, test := range []struct{ have, want []int }{
		{[]int{10, 20}, []int{10, 20}},
		{[]int{10, 40}, []int{10, 28}},
		{[]int{40, 40}, []int{19, 19}},
		{[]int{30, 30, 30, 30, 30, 30, 30, 30}, []int{6, 6, 6, 6, 6, 6, 6, 6}},
		{[]int{2, 3, 50}, []int{2, 3, 31}},
	} {
		if diff := cmp.Diff(test.want, fit(append([]int{}, test.have...), 40)); diff != "" {
			t.Errorf("%v in 40 columns (-want +got):\n%s", test.have, diff)
		}
	}
	if got := fit([]int{100, 100}, 0); got[0] != 100 {
		t.Error("cut without a width")
	}
	if got := cell("zürich", 4) + cell("a", 3) + "|"; got != "zür…a  |" {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]string{"one two", "three", "fourfive", "six"}, wrap("one  two three fourfive six", 7)); diff != "" {
		t.Error(diff)
	}
}

// TestColours: a screen with colours shows words that say how something is in them, and the text beneath is the same.
func TestColours(t *testing.T) {
	socket := daemon(t, newFake())
	plain, painted := "", ""
	for _, colours := range []bool{false, true} {
		env, stdout, _ := world(socket, "")
		env.Colours = colours
		Main(t.Context(), []string{"status"}, env)
		if plain = stdout.String(); !colours {
			painted, plain = plain, ""
			if strings.Contains(painted, "\x1b") {
				t.Error("colours that nobody wants")
			}
		}
	}
	for _, want := range []string{"\x1b[31moverdue\x1b[0m", "\x1b[32mgood\x1b[0m", "\x1b[1mDATABASE\x1b[0m", "\x1b[33m  ? "} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q", want)
		}
	}
	bare := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(plain)
	if diff := cmp.Diff(painted, bare); diff != "" {
		t.Error(diff)
	}
	var env Env
	if env = System("v"); env.Colours {
		t.Error("a test's output is no terminal")
	}
}

// TestVerdict is what a monitor is told by status --check.
func TestVerdict(t *testing.T) {
	critical := api.Alarm{Kind: "backup", Severity: api.Critical, Text: "late", Hint: "do"}
	warning := api.Alarm{Kind: "clock", Severity: api.Warning, Text: "off"}
	for _, test := range []struct {
		health string
		alarms []api.Alarm
		strict bool
		want   int
	}{
		{api.HealthWell, nil, true, 0},
		{api.HealthWarned, []api.Alarm{warning}, false, 0},
		{api.HealthWarned, []api.Alarm{warning}, true, 6},
		{api.HealthAlarmed, []api.Alarm{critical, warning}, false, 6},
		{api.HealthAlarmed, []api.Alarm{{Kind: "lease", Severity: api.Critical}}, false, 4},
		{api.HealthNoQuorum, []api.Alarm{{Kind: "quorum", Severity: api.Critical}}, false, 1},
	} {
		err := verdict(api.Overview{Health: test.health, Alarms: test.alarms}, test.strict)
		if got := api.ExitCode(err); got != test.want {
			t.Errorf("%s, strict %v: exit %d, want %d", test.health, test.strict, got, test.want)
		}
	}
	var stderr bytes.Buffer
	(&root{Env: Env{Stderr: &stderr}}).report(verdict(api.Overview{Alarms: []api.Alarm{critical, warning}}, false))
	if got := stderr.String(); got != "fencepost: late (and 1 more)\nhint: do\n" {
		t.Errorf("%q", got)
	}
}
