package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/ledger"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// TestLedgerInADatabase: the node works with the ledger that its configuration names; the group says which claims stand,
// and keeps the mark by which an older copy of the ledger is known, also after a restart.
func TestLedgerInADatabase(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	pg.NamedDatabase(t, "tasks")
	c := config(t)
	c.Ledger.DSN = configs.NewDSN(pg.DSN("tasks"))
	a, stop := start(t, c)
	ready(t, a)
	led, ok := a.work.ledger.(*ledgerdb.Ledger)
	if !ok {
		t.Fatalf("the ledger is a %T", a.work.ledger)
	}
	token := completed(t, a, led)
	g := groupOfLedger{a.group}
	if mark, err := g.mark(t.Context()); err != nil || mark != token {
		t.Errorf("mark %d, %v; the result has token %d", mark, err, token)
	}
	if err := g.raise(t.Context(), token-1); err != nil {
		t.Error(err)
	}
	if mark, err := g.mark(t.Context()); err != nil || mark != token {
		t.Errorf("the mark went back to %d, %v", mark, err)
	}
	if high, err := a.floor(t.Context()); err != nil || high < token {
		t.Errorf("floor %d, %v; the ledger has seen %d", high, err, token)
	}
	stop()

	pg.Exec(t, "tasks", `UPDATE fencepost_ledger.lineage SET mark = 0`)
	b, _ := start(t, c)
	waits(t, b, "older copy")
	if _, err := (ledgers{b}).DecideLedger(t.Context(), api.LedgerReconcile); err != nil {
		t.Fatal(err)
	}
	ready(t, b)
	if err := b.waitsFor(); err != nil {
		t.Errorf("ready, and waiting for %v", err)
	}
}

// completed runs a task by hand, of a type that no worker takes, and returns its token.
func completed(t *testing.T, a *App, led *ledgerdb.Ledger) uint64 {
	t.Helper()
	ctx := t.Context()
	if err := led.Plan(ctx, ledger.Task{ID: "t1", Type: "by hand", MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	claim, err := a.group.Claim(ctx, "by hand", "t1", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, run := a.group.Self()
	guard := ledger.Guard{Run: run, Component: "by hand", Item: "t1", Token: claim.Token}
	for name, change := range map[string]func(*ledger.Guard){
		"token that was not given": func(g *ledger.Guard) { g.Token++ },
		"run that is not open":     func(g *ledger.Guard) { g.Run = strings.Repeat("0", 32) },
		"component of another":     func(g *ledger.Guard) { g.Component = "backup" },
		"fence that is not raised": func(g *ledger.Guard) { g.Fence = &ledger.Fence{Component: "by hand", Node: "n9", Run: run, Token: 9} },
	} {
		bad := guard
		change(&bad)
		if _, err := led.Take(ctx, bad, "t1", "n1"); !errors.Is(err, ledger.ErrFenced) {
			t.Errorf("take with a %s: %v", name, err)
		}
	}
	if _, err := led.Take(ctx, guard, "t1", "n1"); err != nil {
		t.Fatal(err)
	}
	if err := led.Write(ctx, guard, ledger.Change{Task: ledger.Task{ID: "t1", State: ledger.Completed}}); err != nil {
		t.Fatal(err)
	}
	return claim.Token
}

// waits waits until the node says that it waits for its ledger, and why.
func waits(t *testing.T, a *App, why string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		s, err := people{a}.Status(t.Context())
		if err == nil && s.State == "waiting for the ledger" && slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, why) }) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // the state of the app has no channel of its own
		case <-a.Done():
			t.Fatal(a.Err())
		case <-limit:
			t.Fatalf("%+v, %v", s, err)
		}
	}
}
