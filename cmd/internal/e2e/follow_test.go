package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/runbook"
)

// rehearsal is a day as a test has brought it about, with what the page about it calls otherwise.
type rehearsal struct {
	c     *cluster
	words map[string]string // of the page → here: names of nodes, databases, storages
	env   []string
	// hands are what a person does beside the program, by the page's command; before is done before a command is given.
	hands, before map[string]func()
	// empty is the machine that the page calls new.
	empty *emptyMachine
}

// follow does, word for word, what a page of package runbook says, and checks that it is answered what the page says.
func (r rehearsal) follow(name string) {
	t := r.c.t
	t.Helper()
	page, ok := runbook.Find(name)
	if !ok {
		t.Fatalf("there is no page %s", name)
	}
	for _, step := range page.Steps {
		command := r.here(step.Command)
		if first := r.before[command]; first != nil {
			first()
		}
		said, code := r.do(r.here(step.Machine), command)
		if code != step.Code {
			t.Fatalf("page %s, %s$ %s: exit code %d, want %d\n%s", name, step.Machine, step.Command, code, step.Code, said)
		}
		for _, line := range step.Says {
			if !answers(said, r.here(line)) {
				t.Errorf("page %s, %s$ %s: nothing says %q, but:\n%s", name, step.Machine, step.Command, line, said)
			}
		}
	}
}

// here is a text of a page with the names that things have here.
func (r rehearsal) here(text string) string {
	if len(r.words) == 0 {
		return text
	}
	longest := slices.SortedFunc(maps.Keys(r.words), func(a, b string) int { return len(b) - len(a) })
	for i, w := range longest {
		longest[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(`\b(`+strings.Join(longest, "|")+`)\b`).ReplaceAllStringFunc(text, func(w string) string { return r.words[w] })
}

// answers tells whether a line of a text is one of a page.
func answers(said, line string) bool {
	parts := strings.Split(strings.Join(strings.Fields(line), " "), "…")
	for have := range strings.Lines(said) {
		have = strings.Join(strings.Fields(have), " ")
		fits := strings.HasPrefix(have, strings.TrimSpace(parts[0])) && strings.HasSuffix(have, strings.TrimSpace(parts[len(parts)-1]))
		for _, p := range parts {
			_, rest, found := strings.Cut(have, strings.TrimSpace(p))
			fits, have = fits && found, rest
		}
		if fits {
			return true
		}
	}
	return false
}

// do gives one command on a machine.
func (r rehearsal) do(machine, command string) (said string, code int) {
	r.c.t.Helper()
	if act := r.hands[command]; act != nil {
		act()
		return "", 0
	}
	if machine != "ca" && machine != "new" && r.asService(machine, command) {
		return "", 0
	}
	cmd := exec.CommandContext(r.c.ctx, "bash", "-c", r.c.paths(machine, command))
	cmd.Dir, cmd.Env = r.c.dir, append(os.Environ(), "PATH="+filepath.Dir(daemon)+":"+os.Getenv("PATH"), "FENCEPOST_SOCKET="+r.c.socket(machine))
	if machine == "new" {
		cmd = exec.CommandContext(r.c.ctx, "/bin/bash", "-c", command)
		cmd.Dir, cmd.Env = r.empty.dir, append(slices.Clone(r.empty.env[1:]), r.empty.env[0]+":"+r.empty.dir)
	}
	cmd.Env = append(cmd.Env, r.env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// asService does what systemd does with a node.
func (r rehearsal) asService(node, command string) bool {
	c := r.c
	switch command {
	case "systemctl start fencepostd":
		c.start(node)
	case "systemctl stop fencepostd":
		if slices.Contains(c.running(), node) {
			c.halt(node)
		}
	case "systemctl restart fencepostd":
		c.halt(node)
		c.start(node)
	case "systemctl kill -s TERM fencepostd":
		if err := c.proc(node).cmd.Process.Signal(syscall.SIGTERM); err != nil {
			c.t.Fatal(err)
		}
	default:
		return false
	}
	return true
}

var (
	journal  = regexp.MustCompile(`journalctl -u fencepostd\b`)
	copyOver = regexp.MustCompile(`\bscp (\S+) (\w+):(\S+)`)
)

// paths are a command with the paths that things have here, where all machines are folders of one.
func (c *cluster) paths(machine, command string) string {
	command = copyOver.ReplaceAllStringFunc(command, func(text string) string {
		m := copyOver.FindStringSubmatch(text)
		from, to := c.paths(machine, m[1]), c.paths(m[2], m[3])
		return fmt.Sprintf("test %s -ef %s || cp %s %s", from, to, from, to)
	})
	command = journal.ReplaceAllString(command, "tail "+filepath.Join(c.dir, machine+".log"))
	return strings.NewReplacer("/etc/fencepost/node.yaml", c.file(machine), "/etc/fencepost/ca", c.dir, "/etc/fencepost", c.dir, "/var/lib/fencepost", c.home(machine)).Replace(command)
}

// TestAnswers: what a page says of an answer is told from what it does not.
func TestAnswers(t *testing.T) {
	const said = "n3 may come back with another home\nNAME   STATE\nn1     votes, ready\n"
	for line, want := range map[string]bool{
		"n3 may come back with another home": true, "n3 may come …": true, "… another home": true, "… n1 …": true, "n1 votes, …": true, "…": true,
		"n3 may come": false, "… n4 …": false, "ready …": false, "NAME STATE …": true, "n1 … ready": true, "n1 … votes": false, "… ready votes …": false,
	} {
		if got := answers(said, line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
