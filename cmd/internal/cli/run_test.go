package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/admin"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience is far above what anything here takes.
const patience = 30 * time.Second

// daemon serves f as the real daemon does and gives its socket.
func daemon(t *testing.T, f *fake) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "a.sock")
	store, who, trail := people(t)
	h := admin.NewHandler(admin.Backend{Members: f, Recoveries: f, Operator: f, Drains: f, Keyring: f, Notifier: f, Reloader: f, Usage: f, Tasks: f, Backups: f, Requests: f, Keeping: f, Storages: f, Settings: f, Ledgers: f, GroupStates: f, Autonomous: f, Recurring: f, Watch: f.watch, Accounts: who, Trail: trail, Kept: store, Now: now})
	s := admin.NewServer(socket, h, slog.New(slog.DiscardHandler))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Stop(ctx)
		if err := errors.Join(ctx.Err(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// result is what one command line did.
type result struct {
	stdout, stderr string
	exit           int
}

// world is an Env of a test; stdin is what a person types, nobody is there when empty.
func world(socket, stdin string) (Env, *bytes.Buffer, *bytes.Buffer) {
	var stdout, stderr bytes.Buffer
	return Env{
		Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Now: now, Version: "v0.1", Interactive: stdin != "",
		Getenv: func(name string) string {
			if name == "FENCEPOST_SOCKET" {
				return socket
			}
			return ""
		},
	}, &stdout, &stderr
}

func run(t *testing.T, socket, stdin string, args ...string) result {
	t.Helper()
	env, stdout, stderr := world(socket, stdin)
	exit := Main(t.Context(), args, env)
	return result{stdout.String(), stderr.String(), exit}
}

// TestGolden runs the command lines of testdata/*.txt, each against a daemon of its own,
// and compares all that they print. A line "$ ..." is a command, lines "! ..." are its
// standard error, "= n" its exit code when it is not 0, lines "< ..." are typed to it,
// lines "# ..." are comments. `go test ./cmd/internal/cli -update` writes them anew.
func TestGolden(t *testing.T) { golden(t, "testdata/*.txt", replayOne) }

// golden compares files of command lines with what each line does now.
func golden(t *testing.T, pattern string, one func(t *testing.T, typed string, args []string) result) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(text), one)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(text), got); diff != "" && !*update {
				t.Errorf("(-%s +got):\n%s", path, diff)
			}
		})
	}
}

// replay runs the commands of a golden file and gives the file as it should be.
func replay(t *testing.T, text string, one func(t *testing.T, typed string, args []string) result) string {
	t.Helper()
	var out strings.Builder
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") {
			fmt.Fprintln(&out, line)
		}
		command, ok := strings.CutPrefix(line, "$ fencepost")
		if !ok {
			continue
		}
		fmt.Fprintln(&out, line)
		typed := ""
		for _, next := range lines[i+1:] {
			said, ok := strings.CutPrefix(next, "< ")
			if !ok {
				break
			}
			typed += said + "\n"
			fmt.Fprintln(&out, next)
		}
		writeResult(&out, one(t, typed, strings.Fields(command)))
	}
	return out.String()
}

func replayOne(t *testing.T, typed string, args []string) result {
	t.Helper()
	socket := daemon(t, newFake())
	dir := t.TempDir()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	r := run(t, socket, typed, args...)
	hide := strings.NewReplacer(socket, "SOCKET", dir, "DIR", localUser(t), "local:USER")
	return result{secrets.ReplaceAllString(hide.Replace(r.stdout), "DRAWN"), hide.Replace(r.stderr), r.exit}
}

func writeResult(out *strings.Builder, r result) {
	out.WriteString(r.stdout)
	for line := range strings.Lines(r.stderr) {
		fmt.Fprintf(out, "! %s\n", strings.TrimSuffix(line, "\n"))
	}
	if r.exit != 0 {
		fmt.Fprintf(out, "= %d\n", r.exit)
	}
	out.WriteString("\n")
}
