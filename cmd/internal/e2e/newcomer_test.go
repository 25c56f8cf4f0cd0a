package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// firstSteps are the commands by which the README has a newcomer run three nodes, word for word but for what is a reader's
// own: the database, the hook, and ports that nobody else has. The programs are built already.
func firstSteps(t *testing.T, dsn, hook string, port int) string {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(text), "\n## Three nodes of your own\n")
	_, steps, begun := strings.Cut(page, "\n```\n")
	steps, _, ended := strings.Cut(steps, "\n```\n")
	if !found || !begun || !ended {
		t.Fatal("README.md has no first steps")
	}
	for _, own := range []struct{ is, want string }{
		{`(?m)^make build$`, ""},
		{`(?m)^SHOP=\S+`, "SHOP='" + dsn + "'"},
		{`(?m)^HOOK=\S+`, "HOOK='" + hook + "'"},
		{`fencepost init `, fmt.Sprintf("fencepost init --base-port %d ", port)},
	} {
		pattern := regexp.MustCompile(own.is)
		if n := len(pattern.FindAllString(steps, -1)); n != 1 {
			t.Fatalf("the first steps of README.md have %s %d times", own.is, n)
		}
		steps = pattern.ReplaceAllLiteralString(steps, own.want)
	}
	return steps
}

// freePorts is the first of so many ports in a row that are free, for TCP and UDP.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	first := freePort(t)
	for last := first; last < first+n-1; {
		next := freePort(t)
		if next != last+1 {
			first = next
		}
		last = next
	}
	return first
}

// heard is what a hook was sent, by kind.
type heard struct {
	Kind   string `json:"kind"`
	Alarms []struct {
		Kind string `json:"kind"`
	} `json:"alarms"`
}

// hook is a receiver of messages; it takes each.
func hook(t *testing.T) (url string, messages <-chan heard) {
	t.Helper()
	came := make(chan heard, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m heard
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("the hook was sent no message: %v", err)
		}
		came <- m
	}))
	t.Cleanup(s.Close)
	return s.URL, came
}

// TestNewcomer: who follows the README and nothing else has three nodes with TLS and a gossip key, a database in two
// storages by a schedule, a restored copy of it, and a hook that hears of a node that stops.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	const made = "shop_copy" // by the README
	t.Cleanup(func() { execute(t, dsn, "DROP DATABASE IF EXISTS "+made) })
	url, messages := hook(t)
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Symlink(filepath.Dir(daemon), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}

	// At its end, whatever it is, the shell stops the nodes that are left; before, it waits until the test has seen enough.
	script := "set -euo pipefail\ntrap 'kill $(jobs -rp) && wait' EXIT\n" + firstSteps(t, dsn, url, freePorts(t, 23)) + "\necho 'all is done'\nread\n"
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	var errs strings.Builder
	cmd.Stderr = &errs
	enough, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return
		}
		for _, pid := range append(descendants(cmd.Process.Pid), cmd.Process.Pid) { // of a test that has failed
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	})
	var out strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != "all is done"; {
		fmt.Fprintln(&out, lines.Text())
	}
	tell := func() { t.Fatalf("%s%s%s", out.String(), errs.String(), lastLines(dir)) }
	for _, want := range []string{"n3.yaml: ok", "votes", "chat      ok", "completed", "near", "far", made} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() {
		tell()
	}
	same(t, "the restored copy", print(t, dsn), print(t, strings.Replace(dsn, "/"+nameIn(t, dsn), "/"+made, 1)))

	limit := time.After(2 * time.Minute)
	for tested, alarmed := false, false; !tested || !alarmed; {
		select {
		case m := <-messages:
			tested = tested || m.Kind == "test"
			for _, a := range m.Alarms {
				alarmed = alarmed || a.Kind == "voters"
			}
		case <-limit:
			t.Errorf("the hook heard of the test: %v, of the node that stopped: %v", tested, alarmed)
			tell()
		}
	}
	if t.Failed() {
		tell()
	}
	if _, err := io.WriteString(enough, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the first steps end with %v", err)
		tell()
	}
}

// lastLines are the last words of each node.
func lastLines(dir string) string {
	var b strings.Builder
	logs, _ := filepath.Glob(filepath.Join(dir, "try", "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s: %s\n", filepath.Base(path), lastLine(string(text)))
	}
	return b.String()
}
