package home

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReusedPID: a process that has the number of a dead one is neither taken for it nor killed.
func TestReusedPID(t *testing.T) {
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	now, err := Identify(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	before := now
	before.Start--
	if now.Liveness() != Alive || before.Liveness() != Dead {
		t.Fatalf("now %s, before %s", now.Liveness(), before.Liveness())
	}
	if err := before.Kill(); err != nil {
		t.Fatal(err)
	}
	if now.Liveness() != Alive {
		t.Fatal("the process that has the number now was killed")
	}
	reboot, container := now, now
	reboot.Boot, container.PIDNS = "another", "pid:[1]"
	if reboot.Liveness() != Dead || container.Liveness() != Unknown {
		t.Errorf("other boot: %s, other namespace: %s", reboot.Liveness(), container.Liveness())
	}
	if err := now.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = bystander.Wait()
	if now.Liveness() != Dead {
		t.Error("a dead process counts as alive")
	}
}

// TestReusedPIDInASeat: the seat of a dead writer, whose number somebody else has by now, fails the environment: with its lock
// free, and with its lock held by a descriptor that it left, where the process of that number is all there is to look at.
func TestReusedPIDInASeat(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	self, err := Self("")
	if err != nil {
		t.Fatal(err)
	}
	self.Start-- // a former process with our number
	f, err := os.OpenFile(k.l.seat(3), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (Record{In: true, Generation: 1, Ident: self}).write(f); err != nil {
		t.Fatal(err)
	}
	_, err = k.Failchk()
	causeIs(t, err, "died inside, in seat 3")

	held := kept(t, config(t))
	lock, err := tryLock(held.l.seat(3), false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.close()
	if err := (Record{In: true, Generation: 1, Ident: self}).write(lock.f); err != nil {
		t.Fatal(err)
	}
	_, err = held.Failchk()
	causeIs(t, err, "inherited inside, in seat 3")
}

// TestInheritedLock: the holder is dead, but a child has its descriptor and with it the lock. It is noticed, nothing is
// sealed while the child lives, and a drain that may kill ends it.
func TestInheritedLock(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	heir := start(t, cfg.Dir, "heir")
	heir.expect("holding")
	heir.signal(os.Kill)
	_, _ = heir.cmd.Process.Wait()
	if lives, err := held(k.l.seat(0)); err != nil || !lives {
		t.Fatalf("the child does not hold the lock: %v", err)
	}
	found, err := k.Failchk()
	causeIs(t, err, "inherited inside, in seat 0")
	if len(found) != 1 || found[0].What != Inherited {
		t.Errorf("%+v", found)
	}
	k.cfg.Spare, k.cfg.DrainFor, k.cfg.KillFor = true, time.Millisecond, time.Millisecond
	_, err = k.Recover(t.Context(), "")
	want(t, err, ErrNotProven)
	_, err = Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrNotSealed)
	k.cfg.Spare, k.cfg.KillFor = false, 20*time.Second
	if gen := recovered(t, k, ""); gen != 2 {
		t.Errorf("generation %d", gen)
	}
}

// TestOtherDescriptor: a POSIX lock would be lost here.
func TestOtherDescriptor(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{})
	for _, path := range []string{k.l.warden(), k.l.seat(s.Number())} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if lives, err := held(path); err != nil || !lives {
			t.Errorf("%s is not held any more, %v", path, err)
		}
	}
}

// TestReplacedLockFile: the seat's file is another one now, so that a second process could lock "the same" seat.
func TestReplacedLockFile(t *testing.T) {
	replace := func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path+".copy", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".copy", path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("seen by its holder", func(t *testing.T) {
		cfg := config(t)
		k := kept(t, cfg)
		s := join(t, cfg, JoinOptions{})
		replace(t, k.l.seat(0))
		_, err := s.Failchk()
		causeIs(t, err, "replaced")
	})
	t.Run("seen by the keeper", func(t *testing.T) {
		cfg := config(t)
		k := kept(t, cfg)
		replace(t, k.l.seat(5))
		_, err := k.Failchk()
		causeIs(t, err, "replaced inside, in seat 5")
	})
	t.Run("seen by who joins", func(t *testing.T) {
		cfg := config(t)
		k := kept(t, cfg)
		if err := os.Remove(k.l.seat(0)); err != nil {
			t.Fatal(err)
		}
		_, err := Join(t.Context(), cfg, JoinOptions{})
		causeIs(t, err, "the lock file of seat 0 was replaced")
	})
	t.Run("never two inside", func(t *testing.T) {
		cfg := config(t)
		k := kept(t, cfg)
		a := start(t, cfg.Dir, "stubborn")
		replace(t, k.l.seat(0))
		k.cfg.Spare, k.cfg.DrainFor, k.cfg.KillFor = true, time.Millisecond, time.Millisecond
		_, err := k.Recover(t.Context(), "")
		want(t, err, ErrNotProven)
		if !strings.Contains(err.Error(), "has a lock file open that was replaced") {
			t.Errorf("got %v", err)
		}
		k.cfg.Spare, k.cfg.KillFor = false, 20*time.Second
		recovered(t, k, "")
		if err := a.cmd.Wait(); err == nil {
			t.Error("the process inside was not killed before the next seal")
		}
	})
	t.Run("warden lock", func(t *testing.T) {
		cfg := config(t)
		k := kept(t, cfg)
		replace(t, k.l.warden())
		_, err := k.Recover(t.Context(), "")
		want(t, err, ErrReplaced)
	})
}

// TestStaleSeal: a seal from before the machine was started opens nothing, and a new keeper knows why the old one ended.
func TestStaleSeal(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	_ = k.Close()
	seal, err := readSeal(k.l)
	if err != nil {
		t.Fatal(err)
	}
	seal.Boot = "00000000-0000-0000-0000-000000000000"
	if err := seal.write(k.l); err != nil {
		t.Fatal(err)
	}
	_, err = Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrNotSealed)
	again, err := Take(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if gen := recovered(t, again, ""); gen != 2 {
		t.Errorf("generation %d", gen)
	}
	if ev, err := ReadEvidence(cfg); err != nil || len(ev) != 1 || ev[0].Cause != "the machine was started anew" {
		t.Errorf("%+v, %v", ev, err)
	}
}

// TestStoppedProcess: a stopped process is inside. Nothing is sealed before it is gone, and when it may go on in an old
// generation its next check fails.
func TestStoppedProcess(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	a := start(t, cfg.Dir, "writer")
	a.stop()
	k.cfg.Spare, k.cfg.DrainFor, k.cfg.KillFor = true, time.Millisecond, 100*time.Millisecond
	_, err := k.Recover(t.Context(), "one is stopped")
	want(t, err, ErrNotProven)
	a.signal(syscall.SIGCONT)
	if line := a.expect("failed:"); !strings.Contains(line, "one is stopped") {
		t.Errorf("after it went on it said %q", line)
	}
	k.cfg.KillFor = 20 * time.Second
	recovered(t, k, "")

	b := start(t, cfg.Dir, "writer")
	b.stop()
	k.cfg.Spare = false
	recovered(t, k, "one is stopped again")
	if err := b.cmd.Wait(); err == nil {
		t.Error("a stopped process outlived the seal of the next generation")
	}
}

// stop is SIGSTOP, and returns when the process has stopped.
func (a *actor) stop() {
	a.t.Helper()
	a.signal(syscall.SIGSTOP)
	within(a.t, "the process stops", func() bool {
		st, err := readStat(a.cmd.Process.Pid)
		return err == nil && st.state == "T"
	})
}

// TestNetworkFileSystem is refused by everybody, before anything is written.
func TestNetworkFileSystem(t *testing.T) {
	for magic, name := range map[int64]string{0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x01021997: "9p", 0x65735546: "fuse", 0x00c36400: "ceph"} {
		cfg := config(t)
		cfg.Dir = filepath.Join(cfg.Dir, "new", "home")
		cfg.fsType = func(string) (int64, error) { return magic, nil }
		_, err := Take(cfg)
		want(t, err, ErrNetworkFS)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%x: %v", magic, err)
		}
		if _, err := os.Stat(filepath.Dir(cfg.Dir)); !errors.Is(err, os.ErrNotExist) {
			t.Error("something was made there")
		}
	}
	for _, local := range []int64{unix.EXT4_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		if name := networkFS(local); name != "" {
			t.Errorf("%x is taken for %s", local, name)
		}
	}
	cfg := config(t)
	kept(t, cfg)
	cfg.fsType = func(string) (int64, error) { return 0x6969, nil }
	_, err := Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrNetworkFS)
}

// TestRecoveryThatNeverEnds stops after a number of attempts, whoever makes them, and keeps the first evidence.
func TestRecoveryThatNeverEnds(t *testing.T) {
	cfg := config(t)
	cfg.MaxAttempts = 3
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{})
	_ = s.Fail("the first cause")
	_ = s.Close()
	_ = k.Close()
	boom := errors.New("boom")
	cfg.Clean = []Step{{"explode", func(context.Context, Cleaning) error { return boom }}}
	for range 3 {
		k, err := Take(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.Recover(t.Context(), "another cause")
		want(t, err, boom)
		_ = k.Close() // as if the keeper itself had crashed
	}
	k, err := Take(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	_, err = k.Recover(t.Context(), "")
	want(t, err, ErrNeedsOperator)
	if ev, err := ReadEvidence(cfg); err != nil || len(ev) != 1 || ev[0].Cause != "the first cause" {
		t.Errorf("%+v, %v", ev, err)
	}
	if err := k.Pardon(); err != nil {
		t.Fatal(err)
	}
	k.cfg.Clean = nil
	if gen := recovered(t, k, ""); gen != 2 {
		t.Errorf("generation %d", gen)
	}
}

// TestSweepStaysInside: whatever lies in the volatile part, also links out of it, nothing else is touched.
func TestSweepStaysInside(t *testing.T) {
	cfg := config(t)
	cfg.Dir = filepath.Join(cfg.Dir, "env")
	raft := filepath.Join(filepath.Dir(cfg.Dir), "raft")
	if err := os.Mkdir(raft, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(raft, "wal"), []byte("votes"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := kept(t, cfg)
	for _, link := range []string{filepath.Join(k.Volatile(), "link"), filepath.Join(cfg.Dir, "page-link")} {
		if err := os.Symlink(raft, link); err != nil {
			t.Fatal(err)
		}
	}
	recovered(t, k, "")
	if err := os.RemoveAll(filepath.Join(cfg.Dir, volatileDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(raft, filepath.Join(cfg.Dir, volatileDir)); err != nil {
		t.Fatal(err)
	}
	recovered(t, k, "")
	if data, err := os.ReadFile(filepath.Join(raft, "wal")); err != nil || string(data) != "votes" {
		t.Errorf("the Raft store: %q, %v", data, err)
	}
}

// TestTornRecord: whoever died while it wrote its record was not inside yet.
func TestTornRecord(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	if err := os.WriteFile(k.l.seat(0), []byte(`{"in":true,"gener`), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := k.Failchk(); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	join(t, cfg, JoinOptions{})
}

// TestBeatsAreSeen: a keeper sees progress, and a new holder starts from none.
func TestBeatsAreSeen(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{Label: "node"})
	s.Beat()
	s.Beat()
	occ, err := k.Occupants()
	if err != nil || len(occ) != 1 || occ[0].Beats != 2 || occ[0].Record.Label != "node" || occ[0].Liveness != Alive || !occ[0].Held {
		t.Errorf("%s, %v", asJSON(t, occ), err)
	}
	_ = s.Close()
	join(t, cfg, JoinOptions{})
	if occ, _ := k.Occupants(); len(occ) != 1 || occ[0].Beats != 0 {
		t.Errorf("the next holder began with %s", asJSON(t, occ))
	}
}

// TestKeeperDiesAnotherComes: those inside go on, and the new keeper finds their generation.
func TestKeeperDiesAnotherComes(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	a := start(t, cfg.Dir, "writer")
	_ = k.Close()
	again, err := Take(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Generation() != 1 || again.Check() != nil {
		t.Fatalf("generation %d, %v", again.Generation(), again.Check())
	}
	if occ, err := again.Occupants(); err != nil || len(occ) != 1 || occ[0].Record.Ident.PID != a.cmd.Process.Pid {
		t.Errorf("%s, %v", asJSON(t, occ), err)
	}
	a.leave()
	if err := again.Retire(t.Context()); err != nil {
		t.Error(err)
	}
}
