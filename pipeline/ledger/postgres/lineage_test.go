package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func TestLineageProblems(t *testing.T) {
	is := lineage{ledger: "l", cluster: "c", generation: 1, mark: 10, state: "open"}
	for name, c := range map[string]struct {
		is    func(*lineage)
		want  expectation
		kind  error
		older bool
	}{
		"as expected":     {want: expectation{"l", "c", 10}},
		"first look":      {want: expectation{"", "c", 0}},
		"ahead":           {want: expectation{"l", "c", 9}},
		"behind":          {want: expectation{"l", "c", 11}, kind: ErrFrozen, older: true},
		"foreign":         {want: expectation{"l", "d", 0}, kind: ErrForeign},
		"exchanged":       {want: expectation{"m", "c", 0}, kind: ErrFrozen},
		"frozen":          {is: func(in *lineage) { in.state = "frozen" }, want: expectation{"l", "c", 10}, kind: ErrFrozen},
		"foreign, frozen": {is: func(in *lineage) { in.state = "frozen" }, want: expectation{"l", "d", 10}, kind: ErrForeign},
	} {
		in := is
		if c.is != nil {
			c.is(&in)
		}
		err, older := in.problem(c.want)
		err = wrap(t.Context(), "look", err)
		if (err == nil) != (c.kind == nil) || c.kind != nil && (!errors.Is(err, c.kind) || !errors.Is(err, ledger.ErrUnavailable)) || older != c.older {
			t.Errorf("%s: %v, older %v", name, err, older)
		}
	}
}

// amended amends the ledger of a configuration.
func amended(t *testing.T, c Config, a Amendment) error {
	t.Helper()
	r, err := OpenRepair(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Amend(t.Context(), a)
}

// A ledger of another group is refused until it is adopted; then the other group's node writes no more.
func TestForeignLedger(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	other := configOf(b.dsn)
	other.Cluster = "group-2"
	other.Mark = func(context.Context) (uint64, error) { return 5000, nil }
	if _, err := Open(t.Context(), other); !errors.Is(err, ErrForeign) {
		t.Fatalf("open: %v", err)
	}
	if err := amended(t, other, Amendment{}); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, other)
	if got := b.text(`SELECT cluster || ' ' || generation || ' ' || mark FROM fencepost_ledger.lineage`); got != "group-2 2 5000" {
		t.Errorf("lineage: %s", got)
	}
	if err := b.write(g, row, ledger.Completed); !errors.Is(err, ErrForeign) || errors.Is(err, ledger.ErrFenced) {
		t.Errorf("write of the group that lost it: %v", err)
	}
	if err := b.led.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, ErrForeign) {
		t.Errorf("plan of the group that lost it: %v", err)
	}
	if err := b.led.ShutOut(t.Context(), b.fence("aa", "bb")); !errors.Is(err, ErrForeign) {
		t.Errorf("shut out by the group that lost it: %v", err)
	}
}

// Results raise the mark, progress does not, and the group is told.
func TestMarkIsRaisedByResults(t *testing.T) {
	t.Parallel()
	var told []uint64
	b := open(t, func(c *Config) { c.Marked = func(_ context.Context, token uint64) { told = append(told, token) } })
	mark := func() string { return b.text(`SELECT mark FROM fencepost_ledger.lineage`) }
	g, row := b.take("t1", "aa")
	if err := b.write(g, row, ledger.Uploading, ledger.BackupCreating); err != nil || mark() != "0" {
		t.Errorf("mark %s after progress, %v", mark(), err)
	}
	later, laterRow := b.take("t2", "aa")
	if err := b.write(later, laterRow, ledger.Failed); err != nil {
		t.Fatal(err)
	}
	if err := b.write(g, row, ledger.Completed, ledger.BackupCompleted); err != nil {
		t.Fatal(err)
	}
	if want := b.text(`SELECT max(token) FROM fencepost_ledger.tasks`); mark() != want {
		t.Errorf("mark %s, want %s: it goes back", mark(), want)
	}
	if len(told) != 2 || told[0] != later.Token || told[1] != g.Token {
		t.Errorf("told %v", told)
	}
	high, err := Highest(t.Context(), configOf(b.dsn))
	if err != nil || high != later.Token {
		t.Errorf("highest %d, %v", high, err)
	}
	if high, err := Highest(t.Context(), configOf(pg.Server(t).Database(t))); err != nil || high != 0 {
		t.Errorf("highest of a database without a ledger: %d, %v", high, err)
	}
}

// A ledger whose mark is below the group's is an older copy: it is refused, and frozen for the nodes that use it already.
func TestOlderCopyIsFrozen(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	ahead := configOf(b.dsn)
	ahead.Mark = func(context.Context) (uint64, error) { return g.Token, nil }
	if _, err := Open(t.Context(), ahead); !errors.Is(err, ErrFrozen) || !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("open an older copy: %v", err)
	}
	if err := b.write(g, row, ledger.Completed); !errors.Is(err, ErrFrozen) {
		t.Errorf("write to an older copy: %v", err)
	}
	if _, err := Open(t.Context(), configOf(b.dsn)); !errors.Is(err, ErrFrozen) {
		t.Errorf("open a frozen ledger: %v", err)
	}
	if got := b.row("t1"); got.State != ledger.Planned {
		t.Errorf("row: %+v", got)
	}
	if err := amended(t, ahead, Amendment{}); err != nil {
		t.Fatal(err)
	}
	if err := b.write(g, row, ledger.Completed); err != nil {
		t.Errorf("write after it was reconciled: %v", err)
	}
	mustOpen(t, ahead)
}

// A result that is written while a node opens the ledger, or a person looks at it, is no sign of an older copy, whatever the
// moment: the mark of the group is learnt before the ledger's.
func TestResultsMeanwhileFreezeNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	beside := configOf(b.dsn)
	n := 0
	beside.Mark = func(context.Context) (uint64, error) {
		n++
		g, row := b.take(fmt.Sprint("t", n), "aa")
		return g.Token, b.write(g, row, ledger.Failed) // another node's, at this very moment
	}
	led := mustOpen(t, beside)
	if err := led.Stands(t.Context()); err != nil {
		t.Error(err)
	}
	r, err := OpenRepair(t.Context(), beside)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Compare(t.Context()); err != nil {
		t.Error(err)
	}
	if in, made := r.Lineage(); !made || in.Frozen || n < 2 {
		t.Errorf("after %d results meanwhile: %+v", n, in)
	}
}

// A server that comes back without the last results (a standby promoted too early, a restored dump) is noticed by the
// nodes that run, since their sessions broke.
func TestServerPutBackInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ back string }{
		"without results": {`UPDATE fencepost_ledger.lineage SET mark = 0`},
		"another ledger":  {`UPDATE fencepost_ledger.lineage SET ledger = 'x'`},
		"no tables":       {`DROP SCHEMA fencepost_ledger CASCADE`},
	} {
		b := open(t)
		g, row := b.take("t1", "aa")
		if err := b.write(g, row, ledger.Completed); err != nil {
			t.Fatal(err)
		}
		b.exec(c.back)
		b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if err := b.led.Plan(t.Context(), ledger.Task{ID: "t2", MaxAttempts: 1}); !errors.Is(err, ErrFrozen) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A guard row that is gone means that the ledger is not the one that the run wrote to.
func TestLostGuardRow(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.plan("t1")
	token, err := b.group.Claim("backup", "t1", "aa")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.led.enrol(t.Context(), "aa"); err != nil {
		t.Fatal(err)
	}
	b.exec(`DELETE FROM fencepost_ledger.runs`)
	if _, err := b.led.Take(t.Context(), ledger.Guard{Run: "aa", Component: "backup", Item: "t1", Token: token}, "t1", "n"); !errors.Is(err, ErrFrozen) {
		t.Errorf("take without a guard row: %v", err)
	}
}
