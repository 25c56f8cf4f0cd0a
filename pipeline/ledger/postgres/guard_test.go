package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// soon bounds what must end by itself; a busy machine needs some of it.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// paused makes l stop at a stage of its next guarded write: it says so on reached, and goes on when resume is called.
func paused(l *Ledger, stage string) (reached chan struct{}, resume func()) {
	reached, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.hook = func(at string) {
		if at == stage {
			once.Do(func() { close(reached); <-gate })
		}
	}
	return reached, sync.OnceFunc(func() { close(gate) })
}

// sharedLocks counts what guarded transactions hold.
const sharedLocks = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// The guard is read after the lock was given: a write that waited for a shut-out sees what it did.
func TestRule24_GuardIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	release := pg.Server(t).Hold(t, nameIn(t, b.dsn), fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", runLock("aa")))
	late := make(chan error, 1)
	go func() { late <- b.write(g, row, ledger.Completed) }()
	b.until("1", `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
	b.exec(`UPDATE fencepost_ledger.runs SET shut_out = now() WHERE run = 'aa'`)
	release()
	if err := <-late; !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("write that waited for the shut-out: %v", err)
	}
}

// A writer that has read "not shut out" and is stopped before it writes: the shut-out ends its session, and what it writes
// later takes no effect. This is where a plain reading of the guard row leaks.
func TestRule24_WriterStoppedAfterTheGuardWritesNothing(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"update", "commit"} {
		t.Run(stage, func(t *testing.T) {
			b := open(t)
			zombie := mustOpen(t, configOf(b.dsn))
			g, row := b.take("t1", "aa")
			reached, resume := paused(zombie, stage)
			defer resume()
			late := make(chan error, 1)
			row.State = ledger.Completed
			change := ledger.Change{Task: row, Backup: &ledger.Backup{ID: row.Backup, State: ledger.BackupCompleted, Token: g.Token}}
			go func() { late <- zombie.Write(soon(t), g, change) }()
			<-reached
			if n := b.text(sharedLocks); n != "1" {
				t.Errorf("the write holds %s locks, not that of its run", n)
			}
			if err := b.led.ShutOut(soon(t), b.fence("aa", "bb")); err != nil {
				t.Fatal(err)
			}
			before := b.row("t1")
			resume()
			if err := <-late; !errors.Is(err, ledger.ErrFenced) {
				t.Errorf("late write: %v", err)
			}
			if after := b.row("t1"); after.State.Final() || after.Updated != before.Updated {
				t.Errorf("a late write took effect: %+v", after)
			}
			if _, err := b.led.Backup(t.Context(), row.Backup); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("backup of a late write: %v", err)
			}
		})
	}
}

// A process stopped inside a transaction, by all that its session says: it holds the run's lock and the task's row for
// ever. Its session is ended.
func TestRule24_StoppedZombieDoesNotBlock(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, _ := b.take("t1", "aa")
	pg.Server(t).Hold(t, nameIn(t, b.dsn), fmt.Sprintf(`SELECT set_config('application_name', '%s', true);
		SELECT pg_advisory_xact_lock_shared(%d); SELECT FROM fencepost_ledger.tasks WHERE id = 't1' FOR UPDATE`, tagOf(g), runLock("aa")))
	f := b.fence("aa", "bb")
	begun := time.Now()
	if err := b.led.ShutOut(soon(t), f); err != nil {
		t.Fatal(err)
	}
	t.Logf("shut out after %v", time.Since(begun).Round(time.Millisecond))
	token, err := b.group.Adopt("backup", "t1", "bb")
	if err != nil {
		t.Fatal(err)
	}
	heir := ledger.Guard{Run: "bb", Component: "backup", Item: "t1", Token: token, Fence: &f}
	if _, err := b.led.Take(soon(t), heir, "t1", "node-bb"); err != nil {
		t.Errorf("the row is still locked: %v", err)
	}
}

// A session that holds the run's lock and cannot be told from others is waited for: the shut-out does not return before
// that transaction has ended. (Setting the guard row alone would.)
func TestRule24_ShutOutWaitsForTransactionsUnderWay(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, key := range map[string]int64{"run": runLock("aa"), "fence": fenceLock(ledger.Fence{Component: "backup", Node: "node-aa", Run: "aa"})} {
		release := pg.Server(t).Hold(t, nameIn(t, b.dsn), fmt.Sprintf("SELECT pg_advisory_xact_lock_shared(%d)", key))
		done := make(chan error, 1)
		f := b.fence("aa", "bb")
		go func() { done <- b.led.ShutOut(soon(t), f) }()
		b.until("1", `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
		select {
		case err := <-done:
			t.Fatalf("%s: returned while a transaction of the run is open: %v", name, err)
		default:
		}
		release()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Eight living writers of the dead run, one after the other and all at once, do not keep the shut-out from its locks, and
// nothing they write later takes effect.
func TestRule24_LivingWritersDoNotStarveTheShutOut(t *testing.T) {
	t.Parallel()
	b := open(t)
	writers := mustOpen(t, func() Config { c := configOf(b.dsn); c.MaxConns = 8; return c }())
	var wrote atomic.Int64
	var wg sync.WaitGroup
	ends := make(chan error, 8)
	for i := range 8 {
		g, row := b.take(fmt.Sprintf("t%d", i), "aa")
		row.State = ledger.Uploading
		wg.Go(func() {
			for {
				row.Progress.Read++
				if err := writers.Write(soon(t), g, ledger.Change{Task: row}); err != nil && !errors.Is(err, ledger.ErrUnavailable) {
					ends <- err
					return
				}
				wrote.Add(1)
			}
		})
	}
	for wrote.Load() < 16 {
		b.text("SELECT 1")
	}
	begun := time.Now()
	if err := b.led.ShutOut(soon(t), b.fence("aa", "bb")); err != nil {
		t.Fatal(err)
	}
	t.Logf("shut out after %v, %d writes", time.Since(begun).Round(time.Millisecond), wrote.Load())
	sum := `SELECT sum(revision) FROM fencepost_ledger.tasks`
	before := b.text(sum)
	wg.Wait()
	for range 8 {
		if err := <-ends; !errors.Is(err, ledger.ErrFenced) {
			t.Errorf("writer ended with %v", err)
		}
	}
	if after := b.text(sum); after != before {
		t.Errorf("rows changed after the shut-out: %s writes, then %s", before, after)
	}
}

// Rule 23: a later recoverer shuts out the earlier holder of the fence too, in the middle of its write, though that run
// is open and goes on with other work.
func TestRule23_EarlierHolderOfTheFenceIsShutOut(t *testing.T) {
	t.Parallel()
	b := open(t)
	second := mustOpen(t, configOf(b.dsn))
	b.take("t1", "aa")
	f := b.fence("aa", "bb")
	if err := b.led.ShutOut(soon(t), f); err != nil {
		t.Fatal(err)
	}
	token, err := b.group.Adopt("backup", "t1", "bb")
	if err != nil {
		t.Fatal(err)
	}
	first := ledger.Guard{Run: "bb", Component: "backup", Item: "t1", Token: token, Fence: &f}
	if _, err := b.led.Take(soon(t), first, "t1", "node-bb"); err != nil {
		t.Fatal(err)
	}
	reached, resume := paused(b.led, "commit")
	defer resume()
	late := make(chan error, 1)
	row := b.row("t1")
	go func() { late <- b.write(first, row, ledger.Reverted) }()
	<-reached
	if n := b.text(sharedLocks); n != "2" {
		t.Errorf("the write holds %s locks, not those of its run and its fence", n)
	}
	later := f
	later.Token = b.group.RaiseFence(f.Component, f.Node, f.Run, "cc")
	if err := second.ShutOut(soon(t), later); err != nil {
		t.Fatal(err)
	}
	resume()
	if err := <-late; !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("write of the earlier holder: %v", err)
	}
	if row := b.row("t1"); row.State.Final() {
		t.Errorf("it took effect: %+v", row)
	}
	if err := b.led.ShutOut(soon(t), f); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("shut out with the earlier token: %v", err)
	}
	g, row := b.take("t2", "bb")
	if err := b.write(g, row, ledger.Creating); err != nil {
		t.Errorf("its other work: %v", err)
	}
}

// A recoverer writes only after it has shut out.
func TestRule23_FenceWithoutShutOutWritesNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "bb")
	f := b.fence("aa", "bb")
	g.Fence = &f
	if err := b.write(g, row, ledger.Creating); err == nil || errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("wrote under a fence that shut nobody out: %v", err)
	}
	if row := b.row("t1"); row.State != ledger.Planned {
		t.Errorf("row: %+v", row)
	}
}

// A run that is shut out before it ever wrote does not begin.
func TestRule23_ShutOutBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.plan("t1")
	token, err := b.group.Claim("backup", "t1", "aa")
	if err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, configOf(b.dsn)).ShutOut(soon(t), b.fence("aa", "bb")); err != nil {
		t.Fatal(err)
	}
	late := mustOpen(t, configOf(b.dsn)) // asks no group
	g := ledger.Guard{Run: "aa", Component: "backup", Item: "t1", Token: token}
	if _, err := late.Take(soon(t), g, "t1", "node-aa"); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("take of a run that was shut out: %v", err)
	}
}

func TestTags(t *testing.T) {
	long := "0123456789abcdef0123456789abcdef"
	f := ledger.Fence{Component: "backup", Node: "n1", Run: "dead", Token: maxToken}
	for _, g := range []ledger.Guard{{Run: "aa"}, {Run: long, Fence: &f}, {Run: long + long}, {Run: "a/b", Fence: &f}} {
		name := tagOf(g).String()
		got, ok := parseTag(name)
		if !ok || got != tagOf(g) || len(name) > 63 {
			t.Errorf("%q (%d bytes): %+v, %v", name, len(name), got, ok)
		}
	}
	for _, other := range []string{"", "psql", "fencepost/", "fencepost/a/b", "fencepost/a/b/c!", "fencepost ledger"} {
		if got, ok := parseTag(other); ok {
			t.Errorf("%q is taken for %+v", other, got)
		}
	}
	holder := func(run string, token uint64) tag {
		h := f
		h.Token = token
		return tagOf(ledger.Guard{Run: run, Fence: &h})
	}
	for _, c := range []struct {
		tag  tag
		want bool
	}{
		{tagOf(ledger.Guard{Run: "dead"}), true},
		{tagOf(ledger.Guard{Run: "alive"}), false},
		{holder("alive", f.Token-1), true},
		{holder("alive", f.Token), false},
		{holder("dead", f.Token), true},
	} {
		if c.tag.shutOutBy(f) != c.want {
			t.Errorf("%s shut out: %v", c.tag, !c.want)
		}
	}
}
