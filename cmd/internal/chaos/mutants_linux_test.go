package chaos

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// mutantEnv names the mutant that the programs of a run are built with; none: they are whole.
const mutantEnv = "FENCEPOST_MUTANT"

// buildTags are those of the programs. With chaos they read from files by how much a clock is off, and how slow the log's disk is.
func buildTags() string {
	tags := "chaos"
	if m := os.Getenv(mutantEnv); m != "" {
		tags += ",mutant_" + m
	}
	return tags
}

// mutants are the rules that a build tag can take out, and who must miss each: tests of the product that fail with the tag, and
// the simulated world (package gms/internal/sim), which has each of its own rules' absence noticed by a broken invariant.
var mutants = []struct {
	name     string // of the tag mutant_NAME
	rule     string
	pkg, run string // tests that fail without the rule
	says     string // what they must say
	sim      string // the mutant of the simulated world; none: what fails plays the product's own code
}{
	{"adopt", "orphans are adopted under the fence on the dead run only", "gms/internal/state", "TestRule12_", "", ""},
	{"quorum", "where the leader had no stream, a majority must have seen the refusal", "gms/internal/sim", "TestNoHistoryBreaksAnInvariant$", "rule 3", ""},
	{"lease", "a run acts no longer than its lease", "cmd/internal/chaos", "TestChaosOfLeases", "held it with token", "lease_forgotten"},
	{"base", "a group made anew begins above all earlier numbers", "cmd/internal/chaos", "TestChaosMadeAnew", "held it with token", ""},
	{"guard", "a write reads the guard rows", "pipeline/ledger/postgres", "TestRule23_ShutOutBeforeTheFirstWrite|TestRule24_GuardIsReadUnderTheLock", "", "guard_unread"},
	{"advisory", "a write holds the advisory lock of its run", "pipeline/ledger/postgres", "TestRule24_GuardIsReadUnderTheLock", "", "unlocked_shut-out"},
	{"holders", "earlier holders of a fence are shut out", "pipeline/ledger/postgres", "TestRule23_EarlierHolder", "", "earlier_holders_let_in"},
	{"tombstone", "a dead attempt's manifest is made void", "pipeline", "TestRule26_ZombieBeforeManifest", "", "no_tombstone"},
	{"attempt", "a restore commits with its attempt's row", "pipeline/source/postgres", "TestCommitNeedsTheRow", "", "row_not_taken"},
	{"commit", "a restore's COMMIT is refused until it is released", "pipeline/source/postgres", "TestStrayCommit", "", "commit_at_the_end_of_input"},
}

// everywhere are the mutants that are tried in the short form, too.
const everywhere = " adopt quorum "

// Each rule that is taken out is missed within five minutes.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if os.Getenv("FENCEPOST_LONG") == "" && !strings.Contains(everywhere, " "+m.name+" ") {
				t.Skip("long test: set FENCEPOST_LONG=1 to try all mutants")
			}
			begun := time.Now()
			out, err := runTests(t, m.pkg, m.run, "-tags", "mutant_"+m.name)
			switch {
			case err == nil:
				t.Errorf("nobody misses that %s", m.rule)
			case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic: test timed out"), !strings.Contains(out, m.says):
				t.Errorf("the tests do not say what fails without it: %v\n%s", err, out)
			}
			t.Logf("without it (%s), after %v: %s", m.rule, time.Since(begun).Round(time.Second), firstFault(out))
			if m.sim == "" || os.Getenv("FENCEPOST_LONG") == "" {
				return
			}
			if out, err := runTests(t, "gms/internal/sim", "TestMutantsAreFound/"+m.sim+"$", "-v"); err != nil || !strings.Contains(out, "found in history") {
				t.Errorf("no history of the simulated world breaks an invariant without it: %v\n%s", err, out)
			}
		})
	}
}

// runTests runs tests of a package, as mutants if they are asked to.
func runTests(t *testing.T, pkg, run string, flags ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // with the time to build
	defer cancel()
	args := append([]string{"test", "-count=1", "-timeout", "5m", "-run", run}, flags...)
	test := exec.CommandContext(ctx, "go", append(args, "../../../"+pkg)...)
	_, name, _ := strings.Cut(strings.Join(flags, " "), "mutant_")
	test.Env = append(os.Environ(), mutantEnv+"="+name)
	text, err := test.CombinedOutput()
	return string(text), err
}

// firstFault is the first line of a test's output in which a file of tests speaks.
func firstFault(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") && !strings.Contains(line, "seed ") {
			return strings.TrimSpace(line)
		}
	}
	return cmp.Or(strings.TrimSpace(out), "nothing")
}
