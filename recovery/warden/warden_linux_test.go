package warden

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/recovery/home"
)

func kill(t *testing.T, ident home.Ident, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(ident.PID, sig); err != nil {
		t.Fatal(err)
	}
}

func evidence(t *testing.T, dir string) []home.Evidence {
	t.Helper()
	ev, err := home.ReadEvidence(home.Config{Dir: filepath.Join(dir, "env")})
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// TestDeathAndRestart: a killed node is told of, twice and signed by its own key, its home is swept, and another comes.
func TestDeathAndRestart(t *testing.T) {
	dir, rec := t.TempDir(), &recorder{}
	cfg := config(dir, "serve")
	cfg.Announcer = rec
	end := watch(t, cfg)
	var delays []time.Duration
	gen := uint64(1)
	for range 5 {
		var node home.Ident
		node, gen = nodeUp(t, dir, gen)
		r, err := loadRun(home.VolatileDir(cfg.Home.Dir, gen), gen)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := rec.letters()
		killed := time.Now()
		kill(t, node, syscall.SIGKILL)
		next, _ := nodeUp(t, dir, gen+1)
		if next.Run == node.Run {
			t.Error("two runs have one id")
		}
		within(t, "both obituaries", func() bool { got, _ := rec.letters(); return len(got) == len(before)+2 })
		got, at := rec.letters()
		delays = append(delays, at[len(before)].Sub(killed))
		for i, what := range []What{Died, Quiesced} {
			o, err := Verify(public(r.key), got[len(before)+i])
			if err != nil || o.What != what || o.Node != "n1" || o.Generation != gen || fmt.Sprintf("%x", o.Run) != node.Run {
				t.Errorf("obituary %+v, %v", o, err)
			}
		}
		if _, err := os.Stat(home.VolatileDir(cfg.Home.Dir, gen)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the volatile part of generation %d is still there", gen)
		}
		gen++
	}
	slices.Sort(delays)
	t.Logf("kill -9 to obituary: median %v, worst %v", delays[2], delays[4])
	if delays[4] > 5*time.Second {
		t.Errorf("an obituary came after %v", delays[4])
	}
	nodeUp(t, dir, gen)
	if out := end(); out.Code != 0 || out.Err != nil {
		t.Errorf("stopped with %+v", out)
	}
	if ev := evidence(t, dir); len(ev) != 5 || ev[0].Cause != "the node killed by SIGKILL" || ev[0].Notes["node"] != "n1" || len(ev[0].Seats) != 1 {
		t.Errorf("evidence: %+v", ev)
	}
	st, err := home.Look(cfg.Home)
	if err != nil || st.Seal.Open || st.Kept || st.Failed != "" {
		t.Errorf("after an orderly end: %+v, %v", st, err)
	}
}

// TestReachesNobody: announcing that hangs or fails delays nothing.
func TestReachesNobody(t *testing.T) {
	for _, rec := range []*recorder{{hang: true}, {fail: errors.New("no route")}} {
		dir := t.TempDir()
		cfg := config(dir, "serve")
		cfg.Announcer, cfg.AnnounceFor = rec, 100*time.Millisecond
		end := watch(t, cfg)
		node, gen := nodeUp(t, dir, 1)
		kill(t, node, syscall.SIGKILL)
		nodeUp(t, dir, gen+1)
		if out := end(); out.Code != 0 {
			t.Errorf("%+v", out)
		}
		if got, _ := rec.letters(); len(got) != 2 {
			t.Errorf("%d obituaries", len(got))
		}
	}
}

// TestRaftStoreIsNeverSwept: a hundred nodes die, the home is swept a hundred times, and what lies beside it is untouched.
func TestRaftStoreIsNeverSwept(t *testing.T) {
	dir := t.TempDir()
	raft := filepath.Join(dir, "raft")
	if err := os.Mkdir(raft, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(raft, fmt.Sprint(i, ".wal")), []byte(fmt.Sprint("votes ", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, raft)
	cfg := config(dir, "crash")
	cfg.Policy.Restarts = 99
	out := finish(t, cfg)
	if out.Code != 6 || !errors.Is(out.Err, ErrNeedsOperator) {
		t.Fatalf("%+v", out)
	}
	st, err := home.Look(cfg.Home)
	if err != nil || st.Seal.Generation != 100 {
		t.Errorf("generation %d, %v", st.Seal.Generation, err)
	}
	if after := snapshot(t, raft); after != before {
		t.Errorf("the Raft store was touched:\n%s\n%s", before, after)
	}
}

func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		if d.Type().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %v %v %x\n", path, fi.Mode(), fi.ModTime(), sha256.Sum256(data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCrashLoop stops after its budget, with the evidence of each death, and nobody may open the home.
func TestCrashLoop(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, "crash")
	cfg.Policy.Restarts = 2
	if out := finish(t, cfg); out.Code != 6 || !strings.Contains(out.Err.Error(), "3 deaths") {
		t.Errorf("%+v", out)
	}
	if ev := evidence(t, dir); len(ev) != 3 || ev[2].Cause != "the node killed by SIGKILL" {
		t.Errorf("evidence: %+v", ev)
	}
	_, err := home.Join(t.Context(), cfg.Home, home.JoinOptions{})
	if !errors.Is(err, home.ErrNotSealed) {
		t.Errorf("got %v", err)
	}
}

// TestNodeSaysWhyItCannotStart: its exit code is the warden's, at once.
func TestNodeSaysWhyItCannotStart(t *testing.T) {
	if out := finish(t, config(t.TempDir(), "broken")); out.Code != 3 || out.Err != nil {
		t.Errorf("%+v", out)
	}
}

// TestNodeGivesUp: it worked, and then says itself that a restart would not help.
func TestNodeGivesUp(t *testing.T) {
	if out := finish(t, config(t.TempDir(), "quitter")); out.Code != 4 || out.Err != nil {
		t.Errorf("%+v", out)
	}
}

// TestFamilyIsDeadBeforeTheNextSeal: the node is killed with three children, two in sessions of their own, one of which
// carries no mark and has lost its parent. When the home is cleaned none of them lives.
func TestFamilyIsDeadBeforeTheNextSeal(t *testing.T) {
	dir := t.TempDir()
	w := spawnWarden(t, dir, "family")
	node, gen := nodeUp(t, dir, 1)
	if l := living(dir); len(l) != 3 {
		t.Fatalf("living: %q", l)
	}
	first := living(dir)
	kill(t, node, syscall.SIGKILL)
	nodeUp(t, dir, gen+1)
	if text, err := os.ReadFile(filepath.Join(dir, "living")); err != nil || string(text) != "" {
		t.Errorf("at cleaning lived %q, %v", text, err)
	}
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Errorf("the warden ended with %v", err)
	}
	if l := living(dir); len(l) != 0 {
		t.Errorf("after an orderly end live %q (the first three were %q)", l, first)
	}
}

// TestHang: a node without progress is asked for its stacks and ended.
func TestHang(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		dir := t.TempDir()
		cfg := config(dir, "mute")
		stacks, err := os.Create(filepath.Join(dir, "stacks"))
		if err != nil {
			t.Fatal(err)
		}
		defer stacks.Close()
		cfg.Command.Stderr = stacks
		cfg.Policy.HangAfter, cfg.Policy.DumpFor = 500*time.Millisecond, time.Second
		end := watch(t, cfg)
		node, gen := nodeUp(t, dir, 1)
		if stopped { // it cannot even write its stacks
			kill(t, node, syscall.SIGSTOP)
		}
		nodeUp(t, dir, gen+1)
		end()
		if ev := evidence(t, dir); len(ev) == 0 || ev[len(ev)-1].Cause != "the node made no progress and was ended" {
			t.Errorf("evidence: %+v", ev)
		}
		if text, _ := os.ReadFile(stacks.Name()); !stopped && !strings.Contains(string(text), "goroutine") {
			t.Errorf("no stacks: %q", text)
		}
	}
}

// TestHangsBeforeItIsUp: a node that never makes any progress is ended likewise, with its stacks, as often as the budget says.
func TestHangsBeforeItIsUp(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, "stillborn")
	stacks, err := os.Create(filepath.Join(dir, "stacks"))
	if err != nil {
		t.Fatal(err)
	}
	defer stacks.Close()
	cfg.Command.Stderr = stacks
	cfg.Policy.StartFor, cfg.Policy.Restarts = 500*time.Millisecond, 1
	if out := finish(t, cfg); out.Code != 6 || !errors.Is(out.Err, ErrNeedsOperator) {
		t.Errorf("%+v", out)
	}
	ev := evidence(t, dir)
	if len(ev) != 2 || ev[0].Cause != "the node made no progress and was ended" || ev[1].Cause != ev[0].Cause {
		t.Errorf("evidence: %+v", ev)
	}
	if text, _ := os.ReadFile(stacks.Name()); strings.Count(string(text), "SIGQUIT") != 2 {
		t.Errorf("not two stacks: %q", text)
	}
}

// TestStopTakesTooLong: a node that ignores SIGTERM is killed.
func TestStopTakesTooLong(t *testing.T) {
	dir, rec := t.TempDir(), &recorder{}
	cfg := config(dir, "deaf")
	cfg.Policy.StopFor, cfg.Announcer = 100*time.Millisecond, rec
	end := watch(t, cfg)
	nodeUp(t, dir, 1)
	if out := end(); out.Code != 1 {
		t.Errorf("%+v", out)
	}
	if got, _ := rec.letters(); len(got) != 2 {
		t.Errorf("%d obituaries", len(got))
	}
}

// TestSecondWarden refuses and changes no byte.
func TestSecondWarden(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, "mute")
	watch(t, cfg)
	nodeUp(t, dir, 1)
	files := func() string {
		return snapshot(t, filepath.Join(dir, "env", "seats")) + snapshot(t, filepath.Join(dir, "env", "volatile")) + snapshot(t, filepath.Join(dir, "env", "seal"))
	}
	before := files()
	if out := finish(t, cfg); out.Code != 1 || !errors.Is(out.Err, home.ErrBusy) {
		t.Errorf("%+v", out)
	}
	if after := files(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestAdoption: the warden is killed, the node goes on, and the next warden takes it over with its run and key: it notices
// its death and signs for it.
func TestAdoption(t *testing.T) {
	dir, rec := t.TempDir(), &recorder{}
	first := spawnWarden(t, dir, "serve")
	node, gen := nodeUp(t, dir, 1)
	_ = first.Process.Kill()
	_ = first.Wait()
	cfg := config(dir, "serve")
	cfg.Announcer = rec
	r, err := loadRun(home.VolatileDir(cfg.Home.Dir, gen), gen)
	if err != nil {
		t.Fatal(err)
	}
	end := watch(t, cfg)
	within(t, "a warden is there", func() bool { k, err := home.Kept(cfg.Home.Dir); return err == nil && k })
	if again, g := nodeUp(t, dir, 1); again != node || g != gen {
		t.Fatalf("%v in generation %d became %v in %d", node, gen, again, g)
	}
	kill(t, node, syscall.SIGKILL)
	nodeUp(t, dir, gen+1)
	var got [][]byte
	within(t, "the obituary is carried out", func() bool { got, _ = rec.letters(); return len(got) > 0 })
	if o, err := Verify(public(r.key), got[0]); err != nil || o.What != Died {
		t.Errorf("%+v, %v", o, err)
	}
	if out := end(); out.Code != 0 {
		t.Errorf("%+v", out)
	}
}

// TestAdoptedNodeStopsInOrder: the exit code of another's child is not to be had, but its parting word is.
func TestAdoptedNodeStopsInOrder(t *testing.T) {
	dir := t.TempDir()
	first := spawnWarden(t, dir, "serve")
	node, _ := nodeUp(t, dir, 1)
	_ = first.Process.Kill()
	_ = first.Wait()
	second := spawnWarden(t, dir, "serve")
	within(t, "a warden is there", func() bool { k, err := home.Kept(filepath.Join(dir, "env")); return err == nil && k })
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the warden ended with %v", err)
	}
	if node.Liveness() != home.Dead {
		t.Error("the node lives")
	}
	if ev := evidence(t, dir); len(ev) != 0 {
		t.Errorf("evidence: %+v", ev)
	}
}

// TestOrphan: without a warden, and none coming, a node stops itself within the policy's time.
func TestOrphan(t *testing.T) {
	dir := t.TempDir()
	w := spawnWarden(t, dir, "serve", "WARDEN_TEST_ORPHAN=300ms")
	node, _ := nodeUp(t, dir, 1)
	_ = w.Process.Kill()
	_ = w.Wait()
	within(t, "the orphan stops", func() bool { return node.Liveness() == home.Dead })
}

// TestTiedNode dies with its warden, and not when some other thread of the warden ends.
func TestTiedNode(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, "serve")
	cfg.Policy.Tied = true
	end := watch(t, cfg)
	node, gen := nodeUp(t, dir, 1)
	for range 50 {
		_ = fromDyingThread(func() error { return nil })
	}
	if again, g := nodeUp(t, dir, 1); again != node || g != gen {
		t.Errorf("%v in generation %d became %v in %d: it died with a thread", node, gen, again, g)
	}
	end()

	dir = t.TempDir()
	w := spawnWarden(t, dir, "serve", "WARDEN_TEST_TIED=1", "WARDEN_TEST_ORPHAN=1h")
	node, _ = nodeUp(t, dir, 1)
	_ = w.Process.Kill()
	_ = w.Wait()
	within(t, "the tied node dies", func() bool { return node.Liveness() == home.Dead })
}

// fromDyingThread calls do on a thread that ends right afterwards. The process's first thread never ends: when the goroutine
// is on that one, it stays there until another one has done it.
func fromDyingThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done <- fromDyingThread(do)
			runtime.UnlockOSThread()
			return
		}
		done <- do()
	}()
	return <-done
}

// TestStarterKeepsItsThread: whatever other goroutines do to the scheduler, every process is started from one and the same thread.
func TestStarterKeepsItsThread(t *testing.T) {
	s := newStarter()
	defer s.close()
	var noise sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		noise.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Nanosleep(&unix.Timespec{Nsec: 1000}, nil) // blocks a thread, so that goroutines change theirs
				}
			}
		})
	}
	threads := map[int]bool{}
	for range 500 {
		id := make(chan int)
		s.jobs <- func() {
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil) // as the start of a process blocks
			id <- unix.Gettid()
		}
		threads[<-id] = true
	}
	close(stop)
	noise.Wait()
	if len(threads) != 1 {
		t.Errorf("it started processes from %d threads", len(threads))
	}
}

// TestThreadDeath shows what the starter's lasting thread is for: a tied child that another thread starts dies with it.
func TestThreadDeath(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := fromDyingThread(cmd.Start); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("got %v", err)
	}
}

// TestStolenExitState: the exit state of a child that the host started is still there for the host.
func TestStolenExitState(t *testing.T) {
	dir := t.TempDir()
	end := watch(t, config(dir, "serve"))
	node, gen := nodeUp(t, dir, 1)
	foreign := exec.Command("sh", "-c", "exit 7")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	kill(t, node, syscall.SIGKILL)
	nodeUp(t, dir, gen+1)
	end()
	var exit *exec.ExitError
	if err := foreign.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the host's child ended with %v", err)
	}
	if err := bystander.Process.Kill(); err != nil {
		t.Errorf("the host's other child: %v", err)
	}
	_ = bystander.Wait()
}

// TestServiceManager hears when the node is up, signs of life, and the end; the node is not told of it.
func TestServiceManager(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := spawnWarden(t, dir, "serve", "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=100000")
	seen := func(want string) {
		t.Helper()
		_ = l.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1000)
		for {
			n, err := l.Read(b)
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			if slices.Contains(strings.Split(string(b[:n]), "\n"), want) {
				return
			}
		}
	}
	seen("READY=1")
	seen("WATCHDOG=1")
	node, _ := nodeUp(t, dir, 1)
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", node.PID)); err != nil || strings.Contains(string(env), "NOTIFY_SOCKET") {
		t.Errorf("the node's environment: %q, %v", env, err)
	}
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	seen("STOPPING=1")
	_ = w.Wait()
}

func TestInsideWithoutWarden(t *testing.T) {
	if c, err := Inside(context.Background()); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestObituaryOfALaterRun: a node that stands as another run of its group is buried under that name, by the key that it was
// given, also by a warden that came in between; the next process begins with its own.
func TestObituaryOfALaterRun(t *testing.T) {
	dir, rec := t.TempDir(), &recorder{}
	cfg := config(dir, "later")
	cfg.Announcer = rec
	watch(t, cfg)
	for gen := range uint64(2) {
		node, _ := nodeUp(t, dir, gen+1)
		r, err := loadRun(home.VolatileDir(cfg.Home.Dir, gen+1), gen+1)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := rec.letters()
		kill(t, node, syscall.SIGKILL)
		within(t, "both obituaries", func() bool { got, _ := rec.letters(); return len(got) == len(before)+2 })
		got, _ := rec.letters()
		for i, what := range []What{Died, Quiesced} {
			o, err := Verify(public(r.key), got[len(before)+i])
			if err != nil || o.What != what || o.Run != [16]byte{0xab, 0xcd} {
				t.Errorf("obituary %+v, %v", o, err)
			}
		}
	}
}

// TestStands: nothing that a node could leave there keeps its first run from being buried.
func TestStands(t *testing.T) {
	dir, first := t.TempDir(), [16]byte{7}
	if run, err := loadStands(dir, first); err != nil || run != first {
		t.Errorf("nothing said: %x, %v", run, err)
	}
	if err := saveStands(dir, [16]byte{9}); err != nil {
		t.Fatal(err)
	}
	if run, err := loadStands(dir, first); err != nil || run != [16]byte{9} {
		t.Errorf("said: %x, %v", run, err)
	}
	for _, text := range []string{"", "zz", strings.Repeat("00", 17)} {
		if err := os.WriteFile(filepath.Join(dir, standsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if run, err := loadStands(dir, first); err == nil || run != first {
			t.Errorf("%q: %x, %v", text, run, err)
		}
	}
	if err := saveStands(filepath.Join(dir, "gone"), first); err == nil {
		t.Error("it was told to nobody, without an error")
	}
}

// TestForwardedSignal: SIGHUP reaches a node that is up, and ends neither.
func TestForwardedSignal(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir, "hup")
	forward := make(chan os.Signal)
	cfg.Forward = forward
	end := watch(t, cfg)
	node, gen := nodeUp(t, dir, 1)
	within(t, "the node has read its configuration again", func() bool {
		select {
		case forward <- syscall.SIGHUP: // until the warden, too, has seen that the node is up
		default:
		}
		_, err := os.Stat(filepath.Join(dir, "reread"))
		return err == nil
	})
	if again, now := nodeUp(t, dir, 1); again.PID != node.PID || now != gen {
		t.Errorf("node %d in generation %d became %d in %d", node.PID, gen, again.PID, now)
	}
	if out := end(); out.Code != 0 {
		t.Errorf("%+v", out)
	}
}

// TestOrphansAreCollected: what lost its parent below the node and has ended is collected while the node lives.
func TestOrphansAreCollected(t *testing.T) {
	dir := t.TempDir()
	w := spawnWarden(t, dir, "litter")
	nodeUp(t, dir, 1)
	var orphan string
	within(t, "an orphan was left", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "litter"))
		orphan = strings.TrimSpace(string(text))
		return err == nil && orphan != ""
	})
	within(t, "it is collected", func() bool {
		_, err := os.Stat("/proc/" + orphan)
		return errors.Is(err, os.ErrNotExist)
	})
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Errorf("the warden ended with %v", err)
	}
}
