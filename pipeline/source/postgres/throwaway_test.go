//go:build unix

package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// serversDir is a folder for throw-away servers that every user can reach.
func serversDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fpservers")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, _ := os.ReadDir(dir)
		if len(left) > 0 {
			t.Errorf("%d folders are left of throw-away servers", len(left))
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

func newThrowaway(t *testing.T, dir string, log *slog.Logger) *Throwaway {
	t.Helper()
	s, err := NewThrowaway(ThrowawayConfig{Dir: dir, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serverIn is the process of the one server in a folder.
func serverIn(t *testing.T, dir string) (pid int) {
	t.Helper()
	await(t, "the server", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, serverPrefix+"*"))
		if len(found) == 1 {
			pid = runningIn(found[0])
		}
		return pid != 0
	})
	return pid
}

func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }

// A backup is restored into a server that is made for it, looked through, and gone with the server.
func TestThrowaway(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	dir := serversDir(t)
	log := &lockedBuffer{}
	there := newThrowaway(t, dir, slog.New(slog.NewTextHandler(log, nil)))
	r, err := there.Restore(t.Context(), first, source.RestoreOptions{Target: "verified", Names: true, Info: b.info,
		RestoreChoices: source.RestoreChoices{NoOwner: true, NoPrivileges: true, NoSubscriptions: true, NoEventTriggers: true}})
	if err != nil {
		t.Fatal(err)
	}
	password := r.(*throwawayRestore).server.password
	server := serverIn(t, dir)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(server) + "/status")
	if err != nil || bytes.Contains(status, []byte("\nUid:\t0")) {
		t.Errorf("the server runs as root: %s, %v", status, err)
	}
	readAll(t, r, b)
	if _, err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, serverPrefix+"*"))
	text, _ := os.ReadFile(filepath.Join(found[0], "log"))
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(server) + "/cmdline")
	if all := string(text) + string(line) + log.String(); strings.Contains(all, password) {
		t.Errorf("the server's password is in: %s", all)
	}
	if r.Commit(t.Context()) == nil {
		t.Error("it was committed")
	}
	for range 2 {
		if err := r.Abort(); err != nil {
			t.Error(err)
		}
	}
	if lives(server) {
		t.Error("the server lives")
	}
	if _, err := there.Dump(t.Context(), first); err == nil {
		t.Error("it was dumped")
	}
}

// A backup that is not whole, a server that dies, and a cancel leave nothing either.
func TestThrowawayFails(t *testing.T) {
	s := sampled(t, 0)
	b := takeBackup(t, s, first)
	dir := serversDir(t)
	there := newThrowaway(t, dir, nil)
	options := source.RestoreOptions{Target: "verified", Info: b.info, RestoreChoices: source.RestoreChoices{NoOwner: true, NoPrivileges: true}}
	begin := func() source.Restore {
		t.Helper()
		r, err := there.Restore(t.Context(), first, options)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := begin()
	data := b.parts[source.PartData]
	fails(t, r.Read(t.Context(), source.PartData, bytes.NewReader(data[:len(data)/2])), "", source.ErrIncomplete)
	if err := r.Abort(); err != nil {
		t.Error(err)
	}

	r = begin()
	if err := syscall.Kill(serverIn(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(t.Context(), source.PartData, bytes.NewReader(data)); err == nil {
		t.Error("read without a server")
	}
	if err := r.Abort(); err != nil {
		t.Error(err)
	}

	for _, at := range []string{"", serverOwner, "data/PG_VERSION", "data/postmaster.pid"} { // once that is there
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer cancel()
			for found := []string(nil); at != "" && len(found) == 0 && ctx.Err() == nil; {
				found, _ = filepath.Glob(filepath.Join(dir, serverPrefix+"*", at))
			}
		}()
		r, err := there.Restore(ctx, first, options)
		if err == nil { // it came through before it was cancelled
			err = errors.Join(r.Read(ctx, source.PartData, bytes.NewReader(data)), r.Abort())
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: %v", at, err)
		}
		cancel()
		<-over
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("cancelled at %q: %d folders left", at, len(left))
		}
	}
	info := options.Info
	info.ServerVersion = "99.1"
	_, err := there.Restore(t.Context(), first, source.RestoreOptions{Target: "verified", Info: info})
	fails(t, err, "initdb of version 99")
	hasHint(t, err)
	info = options.Info
	info.EstimateBytes = 1 << 60
	_, err = there.Restore(t.Context(), first, source.RestoreOptions{Target: "verified", Info: info})
	fails(t, err, "MB are free", source.ErrUnavailable)
	hasHint(t, err)
}

// The process that made a server is killed: its server ends, and the folder goes. When the keeper is killed too, the next one
// sweeps; who lives is left alone.
func TestThrowawayOfAKilledProcess(t *testing.T) {
	for _, keeperToo := range []bool{false, true} {
		dir := serversDir(t)
		node := exec.Command(os.Args[0], "-test.run=^$")
		node.Env = append(os.Environ(), "FENCEPOST_TEST_SERVERS="+dir)
		node.Stderr = os.Stderr
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		server := serverIn(t, dir)
		there := newThrowaway(t, dir, nil)
		if removed, err := sweepServers(t.Context(), dir); err != nil || len(removed) != 0 || !lives(server) {
			t.Errorf("of a living process was removed %q, %v", removed, err)
		}
		keeper := parentOf(t, server)
		if keeperToo {
			if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = node.Wait()
		if keeperToo {
			if _, err := there.Settle(t.Context(), next(first), source.Prepared{}); err != nil {
				t.Error(err)
			}
		}
		await(t, "the server to end", func() bool { return !lives(server) })
		await(t, "its folder to go", func() bool {
			left, _ := os.ReadDir(dir)
			return len(left) == 0
		})
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// playServers has a throw-away server until it is killed.
func playServers(dir string) {
	bin, err := pgtest.BinDir()
	if err == nil {
		_, err = startServer(context.Background(), &Source{cfg: Config{Grace: time.Second}}, bin, dir)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	select {}
}
