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

// mutants are the rules that a build tag can take out, and who must miss each.
var mutants = []struct {
	name     string // of the tag mutant_NAME
	rule     string
	pkg, run string // tests that fail without the rule
}{
	{"adopt", "orphans are adopted under the fence on the dead run only", "gms/internal/state", "TestRule12_"},
	{"quorum", "where the leader had no stream, a majority must have seen the refusal", "gms/internal/detect", "TestScripts"},
	{"guard", "a write reads the guard rows", "pipeline/ledger/postgres", "TestRule23_ShutOutBeforeTheFirstWrite|TestRule24_GuardIsReadUnderTheLock"},
	{"advisory", "a write holds the advisory lock of its run", "pipeline/ledger/postgres", "TestRule24_GuardIsReadUnderTheLock"},
	{"holders", "earlier holders of a fence are shut out", "pipeline/ledger/postgres", "TestRule23_EarlierHolder"},
	{"tombstone", "a dead attempt's manifest is made void", "pipeline", "TestRule26_ZombieBeforeManifest"},
	{"attempt", "a restore commits with its attempt's row", "pipeline/source/postgres", "TestCommitNeedsTheRow"},
	{"commit", "a restore's COMMIT is refused until it is released", "pipeline/source/postgres", "TestStrayCommit"},
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
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // with the time to build
			defer cancel()
			test := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "5m", "-tags", "mutant_"+m.name, "-run", m.run, "../../../"+m.pkg)
			test.Env = append(os.Environ(), mutantEnv+"="+m.name)
			begun := time.Now()
			out, err := test.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("nobody misses that %s", m.rule)
			case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out"):
				t.Errorf("the tests do not say what fails without it: %v\n%s", err, out)
			}
			t.Logf("without it (%s), after %v: %s", m.rule, time.Since(begun).Round(time.Second), firstFault(string(out)))
		})
	}
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
