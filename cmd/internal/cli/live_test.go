package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// begin runs a command line in the background and gives its result when it has ended.
func begin(ctx context.Context, socket string, args ...string) <-chan result {
	done := make(chan result, 1)
	go func() {
		env, stdout, stderr := world(socket, "")
		exit := Main(ctx, args, env)
		done <- result{stdout.String(), stderr.String(), exit}
	}()
	return done
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}

// TestWaitDecides: --wait follows the task over a death of its node; its end is the
// command's end, and the result on standard output is only the last state.
func TestWaitDecides(t *testing.T) {
	cases := []struct {
		name, last string
		exit       int
		command    []string
		said       string
	}{
		{"completed", "completed", 0, []string{"backup", "create", "shop"}, ""},
		{"failed", "failed", 1, []string{"backup", "create", "shop"}, "fencepost: task t4 failed: disk full\nhint: free some\n"},
		{"restore reverted", "reverted", 1, []string{"restore", "b1", "--as", "copy"}, "fencepost: task t4 was reverted: disk full\nhint: free some\n"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			f := newFake()
			socket := daemon(t, f)
			done := begin(t.Context(), socket, append(x.command, "--wait", "-o", "json")...)
			await(t, f.watching)
			f.step(func(t *api.Task) { t.State, t.Node, t.Attempt = "uploading", "n2", 1 })
			await(t, f.watching)
			f.step(func(t *api.Task) { t.Progress.Read = 1 << 20 }) // not worth a line
			await(t, f.watching)
			f.step(func(t *api.Task) { t.Node, t.Attempt = "n3", 2 })
			await(t, f.watching)
			f.step(func(t *api.Task) {
				t.State, t.Final = x.last, true
				if x.last != "completed" {
					t.Error, t.Hint = "disk full", "free some"
				}
			})
			got := await(t, done)
			want := "task t4: planned\ntask t4: uploading, attempt 1 on n2\ntask t4: uploading, attempt 2 on n3\ntask t4: " + x.last + ", attempt 2\n" + x.said
			if got.exit != x.exit || got.stderr != want {
				t.Errorf("exit %d, standard error\n%s\nwant exit %d and\n%s", got.exit, got.stderr, x.exit, want)
			}
			var last api.Task
			if err := json.Unmarshal([]byte(got.stdout), &last); err != nil || last.State != x.last {
				t.Errorf("standard output %q (%v)", got.stdout, err)
			}
		})
	}
}

// TestCancelWait: to be cancelled is what was asked for; to complete first is not.
func TestCancelWait(t *testing.T) {
	for last, exit := range map[string]int{"cancelled": 0, "completed": 1, "failed": 1} {
		t.Run(last, func(t *testing.T) {
			f := newFake()
			done := begin(t.Context(), daemon(t, f), "cancel", "t3", "--wait")
			await(t, f.watching)
			f.step(func(t *api.Task) { t.State, t.Final = last, true })
			got := await(t, done)
			if got.exit != exit || !strings.HasPrefix(got.stderr, "task t3: uploading (cancelling), attempt 2 on n1\n") {
				t.Errorf("exit %d, want %d; standard error %q", got.exit, exit, got.stderr)
			}
		})
	}
}

// TestInterruptedWait says that the task goes on.
func TestInterruptedWait(t *testing.T) {
	f := newFake()
	ctx, interrupt := context.WithCancel(t.Context())
	done := begin(ctx, daemon(t, f), "backup", "create", "shop", "--wait")
	await(t, f.watching)
	interrupt()
	got := await(t, done)
	if got.exit != 1 || got.stdout != "" || !strings.Contains(got.stderr, "the task goes on\nhint: fencepost tasks t4 --watch") {
		t.Errorf("%+v", got)
	}
}

// TestWatch shows each change once; its interruption is no error.
func TestWatch(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			f := newFake()
			ctx, interrupt := context.WithCancel(t.Context())
			done := begin(ctx, daemon(t, f), "view", "--watch", "-o", format)
			await(t, f.watching)
			f.mu.Lock()
			f.view.Version, f.view.Stale, f.view.Leader = 1050, true, ""
			f.tell()
			f.mu.Unlock()
			await(t, f.watching)
			interrupt()
			got := await(t, done)
			if got.exit != 0 || got.stderr != "" {
				t.Errorf("exit %d, standard error %q", got.exit, got.stderr)
			}
			if format == "json" {
				checkVersions(t, got.stdout)
				return
			}
			var heads []string
			for line := range strings.Lines(got.stdout) {
				if !strings.HasPrefix(line, "n") && !strings.HasPrefix(line, "NODE") {
					heads = append(heads, strings.TrimSpace(line))
				}
			}
			want := []string{"view 1042, leader n1", "", "12:00:00Z", "view 1050, leader none, STALE: no majority confirms it"}
			if diff := cmp.Diff(want, heads); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func checkVersions(t *testing.T, stdout string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(stdout))
	for _, want := range []uint64{1042, 1050} {
		var v api.View
		if err := d.Decode(&v); err != nil || v.Version != want {
			t.Errorf("view %d (%v), want %d", v.Version, err, want)
		}
	}
	if d.More() {
		t.Error("more than two views")
	}
}

// TestWatchOneTask: --watch reaches the command that shows one task.
func TestWatchOneTask(t *testing.T) {
	f := newFake()
	ctx, interrupt := context.WithCancel(t.Context())
	done := begin(ctx, daemon(t, f), "tasks", "t3", "--watch")
	await(t, f.watching)
	f.step(func(t *api.Task) { t.State = "completed" })
	await(t, f.watching)
	interrupt()
	if got := await(t, done); got.exit != 0 || strings.Count(got.stdout, "task: ") != 2 {
		t.Errorf("%+v", got)
	}
}

// TestSocketOrder: the flag wins over the environment.
func TestSocketOrder(t *testing.T) {
	good := daemon(t, newFake())
	if got := run(t, "/nonexistent/a.sock", "", "status", "--socket", good); got.exit != 0 {
		t.Errorf("flag before environment: %+v", got)
	}
	got := run(t, "/nonexistent/a.sock", "", "status")
	if got.exit != 1 || !strings.HasPrefix(got.stderr, "fencepost: no answer from a daemon at /nonexistent/a.sock: ") {
		t.Errorf("environment: %+v", got)
	}
	if got := run(t, "", "", "status", "--help"); !strings.Contains(got.stdout, "/run/fencepost/fencepost.sock") {
		t.Errorf("default: %+v", got)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "now", 0: "now", 999 * time.Millisecond: "now", time.Second: "1s ago", 119 * time.Second: "119s ago",
		3 * time.Minute: "3m ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago",
	} {
		if got := ago(before(d), now()); got != want {
			t.Errorf("%v before is %q, want %q", d, got, want)
		}
	}
	if got := ago(nil, now()) + ago(&time.Time{}, now()); got != "" {
		t.Errorf("no time is %q", got)
	}
}
