package warden

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/recovery/home"
)

// TestMain: the test binary is also the nodes and the wardens of the tests, told by environment variables what to be.
func TestMain(m *testing.M) {
	switch os.Getenv("WARDEN_TEST_ROLE") {
	case "":
		goleak.VerifyTestMain(m)
	case "warden":
		os.Exit(playWarden())
	default:
		os.Exit(playNode(os.Getenv("WARDEN_TEST_ROLE"), os.Getenv("WARDEN_TEST_DIR")))
	}
}

// playNode is a node that does what its role says.
func playNode(role, dir string) int {
	if role == "broken" {
		return 3
	}
	c, err := Inside(context.Background())
	if err != nil || c == nil {
		fmt.Fprintln(os.Stderr, "node:", c, err)
		return 1
	}
	_ = os.WriteFile(filepath.Join(c.Seat().Volatile(), "scratch"), []byte(role), 0o600)
	told := make(chan os.Signal, 2)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	switch role {
	case "crash":
		c.Beat()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stillborn": // does not come as far as its first beat
		select {
		case <-told:
		case <-c.Orphaned():
		}
		return 0
	case "family":
		if err := family(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "quitter": // works for a while, and then knows that it must not
		c.Beat()
		<-time.After(500 * time.Millisecond)
		_ = c.Close(GaveUp)
		return 4
	case "later": // stands as another run of its group
		if err := c.Stands([16]byte{1}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_ = c.Stands([16]byte{0xab, 0xcd})
	case "hup":
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGHUP)
		go func() { // ends with the process
			<-again
			_ = os.WriteFile(filepath.Join(dir, "reread"), nil, 0o600)
		}()
	case "litter": // leaves a child whose parent is gone, and which ends soon
		out, err := exec.Command("sh", "-c", "sleep 0.2 </dev/null >/dev/null 2>&1 & echo $!").Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_ = os.WriteFile(filepath.Join(dir, "litter"), out, 0o600)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	}
	beat := time.NewTicker(20 * time.Millisecond)
	for {
		if c.Beat(); role == "mute" {
			beat.Stop()
		}
		select {
		case <-beat.C:
		case <-told:
			_ = c.Close(InOrder)
			return 0
		case <-c.Orphaned():
			_ = c.Close(InOrder)
			return 0
		}
	}
}

// family starts three children: one of the node's session, one of its own, and one of its own whose environment is empty and
// whose parent is gone. Their numbers go to a file.
func family(dir string) error {
	start := func(setsid bool, env []string, name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.SysProcAttr, cmd.Env = &syscall.SysProcAttr{Setsid: setsid}, env
		if err := cmd.Start(); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "child-"+strconv.Itoa(cmd.Process.Pid)), nil, 0o600)
	}
	if err := start(false, nil, "sleep", "600"); err != nil {
		return err
	}
	if err := start(true, nil, "sleep", "600"); err != nil {
		return err
	}
	orphan := exec.Command("sh", "-c", "sleep 600 </dev/null >/dev/null 2>&1 & echo $!")
	orphan.SysProcAttr, orphan.Env = &syscall.SysProcAttr{Setsid: true}, []string{"PATH=" + os.Getenv("PATH")}
	out, err := orphan.Output()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "child-"+strings.TrimSpace(string(out))), nil, 0o600)
}

// playWarden is a warden as a process of its own, which does nothing else.
func playWarden() int {
	dir := os.Getenv("WARDEN_TEST_DIR")
	cfg := config(dir, os.Getenv("WARDEN_TEST_NODE"))
	cfg.Sole = true
	cfg.Policy.Tied = os.Getenv("WARDEN_TEST_TIED") != ""
	if d, err := time.ParseDuration(os.Getenv("WARDEN_TEST_ORPHAN")); err == nil {
		cfg.Policy.OrphanFor = d
	}
	cfg.Supervisor = SupervisorFromEnv(os.Getenv, os.Getpid())
	cfg.Home.Clean = []home.Step{{Name: "count the living", Run: func(context.Context, home.Cleaning) error {
		return os.WriteFile(filepath.Join(dir, "living"), []byte(strings.Join(living(dir), " ")), 0o600)
	}}}
	told := make(chan os.Signal, 2)
	signal.Notify(told, syscall.SIGTERM)
	cfg.Signals = told
	w, err := New(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := w.Run(context.Background())
	if out.Err != nil {
		fmt.Fprintln(os.Stderr, out.Err)
	}
	return out.Code
}

// living are the children of the family that run.
func living(dir string) (out []string) {
	files, _ := filepath.Glob(filepath.Join(dir, "child-*"))
	for _, f := range files {
		pid := strings.TrimPrefix(filepath.Base(f), "child-")
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			out = append(out, pid)
		}
	}
	return out
}

// config is a warden of a node in the given role, over dir.
func config(dir, role string) Config {
	return Config{
		Home: home.Config{Dir: filepath.Join(dir, "env"), Seats: 4, DrainFor: 200 * time.Millisecond, KillFor: 20 * time.Second},
		Node: "n1",
		Command: Command{
			Path: os.Args[0], Stderr: os.Stderr,
			Env: append(os.Environ(), "WARDEN_TEST_ROLE="+role, "WARDEN_TEST_DIR="+dir),
		},
		Policy: Policy{Restarts: 1000, MinPause: time.Millisecond, MaxPause: time.Millisecond, HangAfter: -1, StopFor: time.Minute},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// watch runs a warden in this process until the test ends or end is called, which stops it and gives its outcome.
func watch(t *testing.T, cfg Config) (end func() Outcome) {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan Outcome, 1)
	go func() { out <- w.Run(ctx) }()
	var once sync.Once
	var outcome Outcome
	end = func() Outcome {
		once.Do(func() { cancel(); outcome = <-out })
		return outcome
	}
	t.Cleanup(func() { end() })
	return end
}

// finish runs a warden until it ends by itself.
func finish(t *testing.T, cfg Config) Outcome {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w.Run(t.Context())
}

// spawnWarden starts a warden process; extra are environment variables.
func spawnWarden(t *testing.T, dir, node string, extra ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "WARDEN_TEST_ROLE=warden", "WARDEN_TEST_NODE="+node, "WARDEN_TEST_DIR="+dir), extra...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// nodeUp waits for a node that is up in a generation at least gen, and returns its process and generation.
func nodeUp(t *testing.T, dir string, gen uint64) (home.Ident, uint64) {
	t.Helper()
	var ident home.Ident
	var found uint64
	within(t, "a node is up", func() bool {
		st, err := home.Look(home.Config{Dir: filepath.Join(dir, "env")})
		if err != nil || st.Usable != "" || st.Seal.Generation < gen {
			return false
		}
		for _, o := range st.Seats {
			if o.Held && o.Record.In && o.Record.Label == nodeLabel && o.Beats > 0 && o.Liveness == home.Alive {
				ident, found = o.Record.Ident, st.Seal.Generation
				return true
			}
		}
		return false
	})
	return ident, found
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// recorder is an Announcer that keeps what it gets and when.
type recorder struct {
	mu   sync.Mutex
	got  [][]byte
	at   []time.Time
	fail error
	hang bool // until ctx ends
}

func (r *recorder) Announce(ctx context.Context, signed []byte) error {
	r.mu.Lock()
	r.got, r.at = append(r.got, signed), append(r.at, time.Now())
	r.mu.Unlock()
	if r.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.fail
}

func (r *recorder) letters() ([][]byte, []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.got...), append([]time.Time(nil), r.at...)
}
