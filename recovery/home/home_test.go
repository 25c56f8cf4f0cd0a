package home

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOneGenerationAfterTheOther(t *testing.T) {
	cfg := config(t)
	_, err := Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrNotSealed)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{Label: "a"})
	if s.Generation() != 1 || k.Generation() != 1 || s.Check() != nil {
		t.Fatalf("generation %d, %d, %v", s.Generation(), k.Generation(), s.Check())
	}
	if err := os.WriteFile(filepath.Join(s.Volatile(), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	causeIs(t, s.Fail("disk full"), "disk full")
	causeIs(t, s.Fail("something else"), "disk full")
	causeIs(t, k.Check(), "disk full")
	<-s.Failed()
	_, err = Join(t.Context(), cfg, JoinOptions{})
	causeIs(t, err, "disk full")
	old := s.Volatile()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, s.Check(), ErrLeft)
	if gen := recovered(t, k, "too late to be the cause"); gen != 2 {
		t.Errorf("generation %d after 1", gen)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the volatile part of generation 1 is still there: %v", err)
	}
	if pages, _ := filepath.Glob(filepath.Join(cfg.Dir, "page-*")); len(pages) != 1 {
		t.Errorf("pages: %v", pages)
	}
	ev, err := ReadEvidence(cfg)
	if err != nil || len(ev) != 1 || ev[0].Cause != "disk full" || ev[0].Generation != 1 {
		t.Errorf("evidence %+v, %v", ev, err)
	}
	if join(t, cfg, JoinOptions{}).Generation() != 2 {
		t.Error("the second generation is not open")
	}
}

func TestSecondKeeperChangesNoByte(t *testing.T) {
	cfg := config(t)
	kept(t, cfg)
	before := snapshot(t, cfg.Dir)
	_, err := Take(cfg)
	want(t, err, ErrBusy)
	if after := snapshot(t, cfg.Dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// snapshot is every file with its content and time.
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

// TestTwentyBlocked: twenty processes wait for something that never comes; when the environment fails all of them return
// the same cause within a second.
func TestTwentyBlocked(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	var actors []*actor
	for range 20 {
		actors = append(actors, start(t, cfg.Dir, "writer"))
	}
	failed := time.Now()
	if err := k.Fail("the cause of all"); err != nil {
		t.Fatal(err)
	}
	for _, a := range actors {
		if line := a.expect("failed: true"); !strings.Contains(line, "generation 1: the cause of all") {
			t.Errorf("said %q", line)
		}
	}
	if d := time.Since(failed); d > time.Second {
		t.Errorf("the last one knew after %v", d)
	} else {
		t.Logf("all twenty knew after %v", d)
	}
}

// TestFirstCauseWins: many fail at once in their own seats, and all are told the same.
func TestFirstCauseWins(t *testing.T) {
	cfg := config(t)
	kept(t, cfg)
	var seats []*Seat
	for range 10 {
		seats = append(seats, join(t, cfg, JoinOptions{}))
	}
	var all sync.WaitGroup
	causes := make([]string, len(seats)+1)
	for i, s := range seats {
		all.Go(func() { causes[i] = s.Fail(fmt.Sprintf("cause %d", i)).Error() })
	}
	all.Go(func() {
		if err := Fail(cfg, "a stranger's cause"); err != nil {
			t.Error(err)
		}
		causes[len(seats)] = seats[0].Check().Error()
	})
	all.Wait()
	for _, c := range causes {
		if c != causes[0] {
			t.Errorf("%q and %q", c, causes[0])
		}
	}
}

func TestContextEndsWithTheCause(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{})
	ctx, stop := s.Context(t.Context())
	defer stop()
	if err := k.Fail("why"); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	causeIs(t, context.Cause(ctx), "why")
	other, stopOther := s.Context(t.Context())
	stopOther()
	<-other.Done()
}

func TestFailchkTellsReadersFromWriters(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{})
	reader := start(t, cfg.Dir, "reader")
	if found, err := k.Failchk(); err != nil || len(found) != 0 {
		t.Fatalf("%+v, %v with everybody alive", found, err)
	}
	reader.kill()
	found, err := s.Failchk()
	if err != nil || len(found) != 1 || found[0].What != Freed || s.Check() != nil {
		t.Fatalf("%+v, %v after a reader died", found, err)
	}
	writer, other := start(t, cfg.Dir, "writer"), start(t, cfg.Dir, "writer")
	pid := writer.cmd.Process.Pid
	writer.kill()
	found, err = k.Failchk()
	cause := fmt.Sprintf("writer (process %d of run r1): died inside", pid)
	causeIs(t, err, cause)
	if len(found) != 1 || found[0].What != Died {
		t.Errorf("%+v", found)
	}
	causeIs(t, s.Check(), cause)
	if line := other.expect("failed:"); !strings.Contains(line, cause) {
		t.Errorf("another process was told %q", line)
	}
}

// TestJoinSeesTheDead: whoever joins after a writer died is not let in, without anybody having looked before.
func TestJoinSeesTheDead(t *testing.T) {
	cfg := config(t)
	kept(t, cfg)
	start(t, cfg.Dir, "writer").kill()
	_, err := Join(t.Context(), cfg, JoinOptions{})
	causeIs(t, err, "died inside, in seat 0")
}

func TestFull(t *testing.T) {
	cfg := config(t)
	cfg.Seats = 2
	kept(t, cfg)
	a := join(t, cfg, JoinOptions{})
	join(t, cfg, JoinOptions{})
	_, err := Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrFull)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	join(t, cfg, JoinOptions{})
}

func TestJoinWaitsForTheSeal(t *testing.T) {
	cfg := config(t)
	got := make(chan error, 1)
	go func() {
		s, err := Join(t.Context(), cfg, JoinOptions{Wait: true})
		if err == nil {
			err = s.Close()
		}
		got <- err
	}()
	kept(t, cfg)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more patience"))
	_, err := Join(ctx, config(t), JoinOptions{Wait: true})
	if err == nil || !strings.Contains(err.Error(), "no more patience") {
		t.Errorf("got %v", err)
	}
}

func TestCleanRunsBetweenDrainAndSeal(t *testing.T) {
	cfg := config(t)
	db := filepath.Join(t.TempDir(), "db")
	var log []string
	boom := errors.New("the archive is gone")
	broken := true
	cfg.Clean = []Step{
		{"look", func(ctx context.Context, c Cleaning) error {
			_, err := Join(ctx, Config{Dir: c.Dir}, JoinOptions{})
			log = append(log, fmt.Sprintf("look %d %q %v", c.Generation, c.Cause, errors.Is(err, ErrNotSealed)))
			return nil
		}},
		Recreate(db, func(_ context.Context, path string) error { return os.WriteFile(path, []byte("new"), 0o600) }),
		{"maybe", func(context.Context, Cleaning) error {
			if broken {
				return boom
			}
			return nil
		}},
	}
	k, err := Take(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	_, err = k.Recover(t.Context(), "")
	want(t, err, boom)
	_, err = Join(t.Context(), cfg, JoinOptions{})
	want(t, err, ErrNotSealed)
	broken = false
	recovered(t, k, "")
	s := join(t, cfg, JoinOptions{})
	_ = s.Fail("bad block")
	_ = s.Close()
	if err := os.WriteFile(db, []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	recovered(t, k, "")
	if data, _ := os.ReadFile(db); string(data) != "new" {
		t.Errorf("the database is %q", data)
	}
	if got := strings.Join(log, "; "); got != `look 0 "" true; look 0 "" true; look 1 "bad block" true` {
		t.Errorf("steps: %s", got)
	}
}

func TestVerifyAndRestore(t *testing.T) {
	dir := t.TempDir()
	db, archive := filepath.Join(dir, "db"), filepath.Join(dir, "archive")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := errors.New("not good")
	check := func(_ context.Context, path string) error {
		if data, err := os.ReadFile(path); err != nil || string(data) != "good" {
			return bad
		}
		return nil
	}
	write(db, "spoilt")
	write(archive, "good")
	want(t, Verify(db, check).Run(t.Context(), Cleaning{}), bad)
	if err := Verify(db, check, RestoreFrom(db, archive)).Run(t.Context(), Cleaning{}); err != nil {
		t.Error(err)
	}
	write(db, "spoilt")
	write(archive, "old and bad")
	want(t, Verify(db, check, RestoreFrom(db, archive)).Run(t.Context(), Cleaning{}), bad)
	err := Verify(db, check, RestoreFrom(db, archive+"?")).Run(t.Context(), Cleaning{})
	if !errors.Is(err, bad) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRetireLeavesNothingToRecover(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	s := join(t, cfg, JoinOptions{})
	k.cfg.DrainFor, k.cfg.KillFor = time.Millisecond, time.Millisecond
	want(t, k.Retire(t.Context()), ErrNotProven)
	if s.Check() != nil {
		t.Error("who is inside was failed by an attempt to retire")
	}
	_ = s.Leave("done for today")
	if err := k.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ev, err := ReadEvidence(cfg); err != nil || len(ev) != 0 {
		t.Errorf("evidence of an orderly end: %+v, %v", ev, err)
	}
	st, err := Look(cfg)
	if err != nil || st.Seal.Open || st.Failed != "" || len(st.Seats) != 1 || st.Seats[0].Record.Parting != "done for today" {
		t.Errorf("%s, %v", asJSON(t, st), err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Dir":          {},
		"Seats":        {Dir: "x", Seats: 1025},
		"MaxAttempts":  {Dir: "x", MaxAttempts: -1},
		"KeepEvidence": {Dir: "x", KeepEvidence: -1},
		"DrainFor":     {Dir: "x", DrainFor: -1},
	} {
		if _, err := Take(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Join(t.Context(), config(t), JoinOptions{Label: strings.Repeat("x", 33)}); err == nil || errors.Is(err, ErrNotSealed) {
		t.Errorf("a long label: %v", err)
	}
}

func TestTidyCause(t *testing.T) {
	for in, out := range map[string]string{
		"":             "no cause given",
		"a\nb\t c":     "a b c",
		"bad \xff end": "bad ? end",
	} {
		if got := tidyCause(in); got != out {
			t.Errorf("%q became %q", in, got)
		}
	}
	if got := tidyCause(strings.Repeat("ä", 600)); len(got) != maxCause {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAudit(t *testing.T) {
	cfg := config(t)
	k := kept(t, cfg)
	if lines, err := Audit(cfg); err != nil || len(lines) != 0 {
		t.Fatalf("%q, %v", lines, err)
	}
	start(t, cfg.Dir, "writer").kill()
	_ = k.Close()
	before := snapshot(t, cfg.Dir)
	lines, err := Audit(cfg)
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], "nobody keeps") || !strings.Contains(lines[1], "died inside") {
		t.Errorf("%q, %v", lines, err)
	}
	if snapshot(t, cfg.Dir) != before {
		t.Error("looking changed something")
	}
}

// TestEvidenceIsKeptOnce: what is noted first stays, and only so many generations are remembered.
func TestEvidenceIsKeptOnce(t *testing.T) {
	cfg := config(t)
	cfg.KeepEvidence = 2
	k := kept(t, cfg)
	for i := range 4 {
		if err := k.Fail(fmt.Sprint("cause ", i)); err != nil {
			t.Fatal(err)
		}
		for _, note := range []string{"first", "second"} {
			if err := k.KeepEvidence(map[string]string{"note": note}); err != nil {
				t.Fatal(err)
			}
		}
		recovered(t, k, "the recovery's own cause")
	}
	ev, err := ReadEvidence(cfg)
	if err != nil || len(ev) != 2 || ev[0].Cause != "cause 3" || ev[0].Notes["note"] != "first" || ev[1].Cause != "cause 2" {
		t.Errorf("%+v, %v", ev, err)
	}
}
