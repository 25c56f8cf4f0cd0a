package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

var pg pgtest.Shared

func TestMain(m *testing.M) { goleak.VerifyTestMain(pg.Around(m)) }

// group is the group of the tests: it gives claims and fences, and answers Config.Check.
type group struct {
	reopen func(run string) // a run that was shut out may write again: a new run of the same name

	mu     sync.Mutex
	token  uint64
	runs   map[string]bool
	claims map[[2]string]held
	fences map[ledger.Fence]held // Token 0
}

type held struct {
	run   string
	token uint64
}

var _ ledgertest.Group = (*group)(nil)

func newGroup() *group {
	return &group{token: 1000, runs: map[string]bool{}, claims: map[[2]string]held{}, fences: map[ledger.Fence]held{}, reopen: func(string) {}}
}

func (g *group) OpenRun(run string) {
	g.mu.Lock()
	open := g.runs[run]
	g.runs[run] = true
	g.mu.Unlock()
	if !open {
		g.reopen(run)
	}
}

func (g *group) CloseRun(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs[run] = false
}

func (g *group) Claim(component, item, run string) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := [2]string{component, item}
	if h, ok := g.claims[key]; ok {
		return 0, fmt.Errorf("claim %v of run %s: %w", key, h.run, ledgertest.ErrHeld)
	}
	g.token++
	g.claims[key] = held{run, g.token}
	return g.token, nil
}

func (g *group) Adopt(component, item, run string) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := [2]string{component, item}
	if h := g.claims[key]; g.runs[h.run] {
		return 0, fmt.Errorf("adopt %v of run %s: %w", key, h.run, ledgertest.ErrHeld)
	}
	g.token++
	g.claims[key] = held{run, g.token}
	return g.token, nil
}

func (g *group) RaiseFence(component, node, dead, holder string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token++
	g.fences[ledger.Fence{Component: component, Node: node, Run: dead}] = held{holder, g.token}
	return g.token
}

// check implements Config.Check.
func (g *group) check(_ context.Context, guard ledger.Guard) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.runs[guard.Run] || g.claims[[2]string{guard.Component, guard.Item}] != (held{guard.Run, guard.Token}) {
		return fmt.Errorf("claim %s of run %s with token %d does not stand: %w", guard.Item, guard.Run, guard.Token, ledger.ErrFenced)
	}
	return nil
}

// bench is a ledger in a database of its own, with its group.
type bench struct {
	*testing.T
	led   *Ledger
	group *group
	dsn   string
}

// configOf is a Config for a database.
func configOf(dsn string) Config { return Config{DSN: dsn, Cluster: "group-1", Poll: time.Minute} }

// open makes a bench; change may alter the configuration.
func open(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{T: t, group: newGroup(), dsn: pg.Server(t).Database(t)}
	cfg := configOf(b.dsn)
	cfg.Check = b.group.check
	for _, c := range change {
		c(&cfg)
	}
	b.led = mustOpen(t, cfg)
	b.group.reopen = func(run string) {
		b.exec(fmt.Sprintf("UPDATE fencepost_ledger.runs SET shut_out = NULL WHERE run = '%s'", run))
	}
	for _, run := range []string{"aa", "bb", "cc"} {
		b.group.OpenRun(run)
	}
	return b
}

func mustOpen(t *testing.T, cfg Config) *Ledger {
	t.Helper()
	led, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := led.Close(); err != nil {
			t.Error(err)
		}
	})
	return led
}

// exec runs SQL as superuser in the ledger's database.
func (b *bench) exec(sql string) {
	b.Helper()
	pg.Server(b).Exec(b, nameIn(b, b.dsn), sql)
}

// text runs a query that gives one value.
func (b *bench) text(sql string, args ...any) string {
	b.Helper()
	return pg.Server(b).Text(b, nameIn(b, b.dsn), sql, args...)
}

// until waits until a query gives want.
func (b *bench) until(want, sql string, args ...any) {
	b.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for b.text(sql, args...) != want {
		select {
		case <-deadline.C:
			b.Fatalf("never %s: %s", want, sql)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func nameIn(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a DSN of the test server is no URL")
	}
	return strings.TrimPrefix(u.Path, "/")
}

// plan inserts a create task.
func (b *bench) plan(id string) {
	b.Helper()
	err := b.led.Plan(b.Context(), ledger.Task{
		ID: id, Type: ledger.Create, RunType: ledger.User, MaxAttempts: 3, OnFailure: "rerun",
		Database: "shop", Backup: "b" + id, Storages: []string{"one", "two"}, Require: "all",
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) row(id string) ledger.Task {
	b.Helper()
	t, err := b.led.Task(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// take plans a task when there is none, claims it and takes it for run.
func (b *bench) take(id, run string) (ledger.Guard, ledger.Task) {
	b.Helper()
	b.plan(id)
	token, err := b.group.Claim("backup", id, run)
	if err != nil {
		b.Fatal(err)
	}
	g := ledger.Guard{Run: run, Component: "backup", Item: id, Token: token}
	if _, err := b.led.Take(b.Context(), g, id, "node-"+run); err != nil {
		b.Fatal(err)
	}
	return g, b.row(id)
}

// fence closes dead's run and raises its fence for heir.
func (b *bench) fence(dead, heir string) ledger.Fence {
	b.group.CloseRun(dead)
	f := ledger.Fence{Component: "backup", Node: "node-" + dead, Run: dead}
	f.Token = b.group.RaiseFence(f.Component, f.Node, dead, heir)
	return f
}

// write sets a task's state, and its backup's when given.
func (b *bench) write(g ledger.Guard, t ledger.Task, s ledger.State, backup ...ledger.BackupState) error {
	t.State = s
	c := ledger.Change{Task: t}
	for _, bs := range backup {
		c.Backup = &ledger.Backup{ID: t.Backup, Database: t.Database, State: bs, Token: g.Token,
			Copies: []ledger.Copy{{Storage: "one", State: "present", Bytes: 10}, {Storage: "two", State: "missing", Error: "away"}}}
	}
	return b.led.Write(b.Context(), g, c)
}
