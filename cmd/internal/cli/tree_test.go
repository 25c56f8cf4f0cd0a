package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// once are the commands that do one thing, or look once: they have no --watch. A command that shows what changes by itself
// gets its flag from live.
var once = []string{
	"backup accept", "backup create", "backup delete", "backup note", "backup pin", "backup replicate", "backup undelete", "backup unpin", "cancel",
	"catalog rebuild", "certs init", "certs issue", "certs renew", "certs rotate-ca", "certs show", "claim free", "claim quarantine", "claim show", "completion",
	"component pause", "component resume", "component run", "doctor", "env drain", "env evidence", "env fail", "env seal", "env slots", "env status",
	"env sweep", "env verify", "event append", "event restart", "event rm", "fence lower", "fence raise", "init", "globals diff", "globals restore", "group rebase", "group restore", "item put", "item query",
	"ledger adopt", "ledger copy", "ledger init", "ledger move", "ledger reconcile", "ledger show",
	"keyring add", "keyring list", "keyring rekey", "keyring remove", "keyring use", "kit check", "kit make", "kit open", "man", "node add", "node drain", "node forget", "node may-restart", "node remove",
	"node replace", "node undrain",
	"notify test", "prune", "recoveries drop", "recoveries retry", "recoveries show", "reload", "restore", "restore-script", "runbook", "schedule disable", "schedule enable", "schedule run",
	"storage add", "storage adopt", "storage auth", "storage check", "storage globals", "storage list", "storage restore", "storage set", "storage test", "undo", "verify",
	"version", "audit", "apply", "export", "server look", "setting ls", "setting rm", "setting set", "setting show", "database forget", "token create", "token rm", "upgrade finalize", "user add", "user password", "user rm", "user set",
	"approval approve", "approval refuse", "backup manifest", "database test",
}

// shown are the command lines of all golden files.
func shown(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	below, belowErr := filepath.Glob("testdata/*/*.txt") // places, remote, e2e; those in people are no command lines
	if err := errors.Join(err, belowErr); err != nil {
		t.Fatal(err)
	}
	files = append(files, below...)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if command, ok := strings.CutPrefix(line, "$ fencepost "); ok {
				lines = append(lines, strings.TrimSpace(command))
			}
		}
	}
	return lines
}

// TestEveryCommand holds for each command, so that no new one escapes: what it is for, examples that are understood, -o,
// the exit codes in its help, --watch or a place among those that look once, and its JSON in a golden file.
func TestEveryCommand(t *testing.T) {
	golden := shown(t)
	top := (&root{}).command()
	for _, cmd := range family(top) {
		name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "fencepost"), " ")
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q, want one sentence without a full stop", name, cmd.Short)
		}
		if cmd.InheritedFlags().Lookup("output") == nil && cmd != top {
			t.Errorf("%s: has no -o", name)
		}
		help := helpOf(t, name)
		if !strings.Contains(help, exitCodes) {
			t.Errorf("%s: its help has no table of exit codes", name)
		}
		leaf := cmd.Run != nil || cmd.RunE != nil && (len(cmd.Commands()) == 0 || cmd.Flags().Lookup("watch") != nil)
		if !leaf {
			continue
		}
		checkExamples(t, top, cmd, name)
		if watches := cmd.Flags().Lookup("watch") != nil; watches == slices.Contains(once, name) {
			t.Errorf("%s: --watch is there: %v; a command is made by live, or is in the list once of this test", name, watches)
		}
		if !inGolden(golden, name) {
			t.Errorf("%s: no golden file has its JSON: add `$ fencepost %s ... -o json` to one of testdata and run with -update", name, name)
		}
	}
}

func helpOf(t *testing.T, name string) string {
	t.Helper()
	got := run(t, "/nowhere", "", append(strings.Fields(name), "--help")...)
	if got.exit != 0 || got.stderr != "" {
		t.Errorf("%s --help: %+v", name, got)
	}
	return got.stdout
}

func inGolden(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return (line == name || strings.HasPrefix(line, name+" ")) && strings.Contains(line, "-o json")
	})
}

// checkExamples holds that a command has examples, one of them of itself, and that each is understood.
func checkExamples(t *testing.T, top, cmd *cobra.Command, name string) {
	t.Helper()
	own := false
	for line := range strings.Lines(cmd.Example) {
		_, line, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "sudo -u fencepost "), "fencepost ")
		if !found {
			t.Errorf("%s: the example %q is of another program", name, line)
			continue
		}
		words := words(line)
		called, rest, err := top.Find(words)
		if err != nil {
			t.Errorf("%s: example %q: %v", name, line, err)
			continue
		}
		own = own || called == cmd
		if err := called.ParseFlags(rest); err != nil {
			t.Errorf("%s: example %q: %v", name, line, err)
		}
		if err := called.ValidateArgs(called.Flags().Args()); err != nil {
			t.Errorf("%s: example %q: %v", name, line, err)
		}
	}
	if !own {
		t.Errorf("%s: has no example of its own: add one to examples.go, or set Example", name)
	}
}

// words are those of a command line, as a shell has them, up to the end of the command.
func words(line string) (list []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range strings.TrimSpace(line) + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && c == ' ':
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if end := slices.IndexFunc(list, func(w string) bool { return w == "|" || w == "||" || w == ">" || w == "<" || w == "&&" }); end >= 0 {
		list = list[:end]
	}
	return list
}

// TestEveryExampleIsOfACommand: what is in the table of examples belongs to somebody.
func TestEveryExampleIsOfACommand(t *testing.T) {
	var names []string
	for _, cmd := range family((&root{}).command()) {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "fencepost"), " "))
	}
	for name := range examples {
		if !slices.Contains(names, name) {
			t.Errorf("examples.go has examples of %q, which is no command", name)
		}
	}
}

// TestCompletion: each shell gets a script that knows the commands.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := run(t, "/nowhere", "", "completion", shell)
		if got.exit != 0 || !strings.Contains(got.stdout, "fencepost") || strings.Count(got.stdout, "\n") < 50 {
			t.Errorf("%s: exit %d, %d lines", shell, got.exit, strings.Count(got.stdout, "\n"))
		}
	}
	if got := run(t, "/nowhere", "", "__complete", "backup", "cr"); got.exit != 0 || !strings.Contains(got.stdout, "create") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "/nowhere", "", "completion", "cmd"); got.exit != 2 {
		t.Errorf("%+v", got)
	}
}

// TestCompletionOfNames: a shell is offered what the daemon knows, by the word in the usage of a command, and nothing without a
// daemon; each word of a usage is one that is known, or a new name, a file or a choice of the command's own.
func TestCompletionOfNames(t *testing.T) {
	socket := daemon(t, newFake())
	for line, want := range map[string]string{
		"restore ": "pg1.shop\n", "backup show ": "b1\tshop\n", "node drain ": "n1\n", "storage check ": "disk\n", "setting ls ": "heartbeat\n",
		"setting set server ": "pg1\n", "server look ": "pg2\n", "user set ": "ann\n", "approval approve ": "ask2\tdelete backup", "schedule run ": "nightly\n",
		"backup create shop --storage ": "disk\n", "component pause ": "backup\n", "cancel ": "t1\tcreate shop",
	} {
		got := run(t, socket, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got.exit != 0 || !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, "\n:4\n") {
			t.Errorf("%s\n%s%s\nwant %q", line, got.stdout, got.stderr, want)
		}
	}
	if got := run(t, "/nowhere/a.sock", "", "__complete", "restore", ""); got.exit != 0 || got.stdout != ":4\n" {
		t.Errorf("without a daemon: %+v", got)
	}
	if got := run(t, socket, "", "__complete", "user", "add", ""); got.exit != 0 || got.stdout != ":4\n" {
		t.Errorf("a new name: %+v", got)
	}
	own := []string{"FILE", "DIR", "KIT", "ITEM", "ID", "TYPE", "RUN", "RECEIVER", "KEY=VALUE", "begin", "sign", "finish", "bash", "zsh", "fish", "CLAIM", "EVENT", "KEY", "FINGERPRINT", "TEXT", "RUNBOOK"}
	for _, cmd := range family((&root{}).command()) {
		for at := range 3 {
			for _, word := range wordsAt(cmd, at) {
				if completed[word] == nil && !slices.Contains(own, word) {
					t.Errorf("%s: %s is completed by nothing: add it to completed", cmd.CommandPath(), word)
				}
			}
		}
	}
}

// TestManPages: a page for each command, with its options, examples and exit codes, that no text in it can break.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if got := run(t, "/nowhere", "", "man", dir); got.exit != 0 {
		t.Fatalf("%+v", got)
	}
	for _, cmd := range family((&root{}).command()) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n", ".SH EXIT STATUS\n", `\-\-output`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", pageName(cmd), want)
			}
		}
	}
	if got := roff(".not a request\n'nor this\nback\\slash"); got != "\\&.not a request\n\\&'nor this\nback\\eslash" {
		t.Errorf("%q", got)
	}
	if got := run(t, "/nowhere", "", "man", filepath.Join(dir, "nowhere")); got.exit != 1 {
		t.Errorf("%+v", got)
	}
}
