package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded/embeddedtest"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLedger(t *testing.T) (ledger.Ledger, ledgertest.Group) {
	led, store := open(t, embedded.Config{})
	return led, store
}

func TestConformance(t *testing.T) { ledgertest.Run(t, newLedger) }

func open(t *testing.T, cfg embedded.Config) (*embedded.Ledger, *embeddedtest.Store) {
	t.Helper()
	store := embeddedtest.NewStore()
	cfg.Store = store
	led, err := embedded.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	store.OpenRun("aa")
	return led, store
}

// take plans, claims and takes a task.
func take(t *testing.T, led *embedded.Ledger, store *embeddedtest.Store, id string) (ledger.Guard, ledger.Task) {
	t.Helper()
	if err := led.Plan(t.Context(), ledger.Task{ID: id, Type: ledger.Create, MaxAttempts: 1, Backup: id}); err != nil {
		t.Fatal(err)
	}
	token, err := store.Claim("backup", id, "aa")
	if err != nil {
		t.Fatal(err)
	}
	g := ledger.Guard{Run: "aa", Component: "backup", Item: id, Token: token}
	if _, err := led.Take(t.Context(), g, id, "n1"); err != nil {
		t.Fatal(err)
	}
	row, err := led.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return g, row
}

func TestNewChecksItsConfig(t *testing.T) {
	for _, cfg := range []embedded.Config{{}, {Store: embeddedtest.NewStore(), History: -1}} {
		if _, err := embedded.New(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
}

func TestStoreDownIsUnavailable(t *testing.T) {
	led, store := open(t, embedded.Config{})
	g, row := take(t, led, store, "t1")
	store.SetDown(true)
	ctx := t.Context()
	calls := map[string]error{
		"plan":   led.Plan(ctx, ledger.Task{ID: "t2", MaxAttempts: 1}),
		"write":  led.Write(ctx, g, ledger.Change{Task: row}),
		"cancel": led.RequestCancel(ctx, "t1", "ann"),
		"shut":   led.ShutOut(ctx, ledger.Fence{}),
	}
	_, calls["take"] = led.Take(ctx, g, "t1", "n1")
	_, calls["task"] = led.Task(ctx, "t1")
	_, calls["tasks"] = led.Tasks(ctx, ledger.TaskFilter{})
	_, calls["backup"] = led.Backup(ctx, "t1")
	_, calls["backups"] = led.Backups(ctx, ledger.BackupFilter{})
	for name, err := range calls {
		if !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A lost answer is an unknown outcome: the write took effect, and repeating it is harmless.
func TestLostAnswer(t *testing.T) {
	led, store := open(t, embedded.Config{})
	g, row := take(t, led, store, "t1")
	store.LoseAnswers(1)
	row.State = ledger.Uploading
	if err := led.Write(t.Context(), g, ledger.Change{Task: row}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("lost answer: %v", err)
	}
	if again, _ := led.Task(t.Context(), "t1"); again.State != ledger.Uploading {
		t.Fatalf("row: %+v", again)
	}
	if err := led.Write(t.Context(), g, ledger.Change{Task: row}); err != nil {
		t.Fatalf("repeat: %v", err)
	}
}

// A transaction that a paused owner had ready is refused when it arrives after the close of its run.
func TestRule24_ALateTransactionIsRefused(t *testing.T) {
	led, store := open(t, embedded.Config{})
	g, row := take(t, led, store, "t1")
	ready, resume := make(chan struct{}), make(chan struct{})
	store.BeforeCommit(func(context.Context, embedded.Txn) { close(ready); <-resume })
	late := make(chan error)
	row.State = ledger.Completed
	go func() {
		late <- led.Write(context.Background(), g, ledger.Change{Task: row, Backup: &ledger.Backup{ID: "t1", State: ledger.BackupCompleted, Token: g.Token}})
	}()
	<-ready
	store.BeforeCommit(nil)
	store.CloseRun("aa")
	close(resume)
	if err := <-late; !errors.Is(err, ledger.ErrFenced) {
		t.Fatalf("late write: %v", err)
	}
	if again, _ := led.Task(t.Context(), "t1"); again.State.Final() {
		t.Fatalf("late write took effect: %+v", again)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	led, store := open(t, embedded.Config{History: 3, Now: func() time.Time { now = now.Add(time.Second); return now }})
	for i := range 8 {
		g, row := take(t, led, store, fmt.Sprintf("t%d", i))
		if i == 0 {
			continue // stays active, however old
		}
		if err := led.RequestCancel(t.Context(), row.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		row.State = ledger.Cancelled
		gone := &ledger.Backup{ID: row.ID, State: ledger.BackupCreating, Token: g.Token}
		if err := led.Write(t.Context(), g, ledger.Change{Task: row, Backup: gone}); err != nil {
			t.Fatal(err)
		}
	}
	if err := led.Plan(t.Context(), ledger.Task{ID: "last", MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	list, err := led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, task := range list {
		ids = append(ids, task.ID)
	}
	if got := strings.Join(ids, " "); got != "last t7 t6 t5 t0" {
		t.Errorf("kept %q", got)
	}
	cancels, err := store.List(t.Context(), "cancel/")
	if err != nil || len(cancels) != 3 {
		t.Errorf("%d cancel requests are kept, want 3 (%v)", len(cancels), err)
	}
	backups, err := store.List(t.Context(), "backup/")
	if err != nil || len(backups) != 7 {
		t.Errorf("%d backups, want 7: a backup that is not gone is never dropped (%v)", len(backups), err)
	}
}

func TestGoneBackupsAreDroppedWhenOldAndMany(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	led, store := open(t, embedded.Config{History: 1, Now: func() time.Time { return now }})
	for _, id := range []string{"t0", "t1"} {
		now = now.Add(time.Hour)
		g, row := take(t, led, store, id)
		row.State = ledger.Failed
		for _, s := range []ledger.BackupState{ledger.BackupCreating, ledger.BackupGone} {
			if s == ledger.BackupCreating {
				row.State = ledger.Creating
			} else {
				row.State = ledger.Failed
			}
			if err := led.Write(t.Context(), g, ledger.Change{Task: row, Backup: &ledger.Backup{ID: id, State: s, Token: g.Token}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func(id string) int {
		if err := led.Plan(t.Context(), ledger.Task{ID: id, MaxAttempts: 1}); err != nil {
			t.Fatal(err)
		}
		list, err := led.Backups(t.Context(), ledger.BackupFilter{State: ledger.BackupGone})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := count("p1"); n != 2 {
		t.Errorf("young gone entries: %d kept, want 2", n)
	}
	now = now.Add(9 * 24 * time.Hour)
	if n := count("p2"); n != 1 {
		t.Errorf("old gone entries: %d kept, want 1", n)
	}
}

func TestNewerRowIsAClearError(t *testing.T) {
	led, store := open(t, embedded.Config{})
	put := embedded.Put{Key: "task/new", Value: []byte(`{"v":2,"row":["something else"]}`)}
	if err := store.Commit(t.Context(), embedded.Txn{Puts: []embedded.Put{put}}); err != nil {
		t.Fatal(err)
	}
	_, err := led.Task(t.Context(), "new")
	if err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("newer row: %v", err)
	}
}

func TestTooLargeRowIsRefused(t *testing.T) {
	led, store := open(t, embedded.Config{})
	g, row := take(t, led, store, "t1")
	row.Progress.Stored = map[string]int64{strings.Repeat("x", embedded.MaxValue): 1}
	err := led.Write(t.Context(), g, ledger.Change{Task: row})
	if err == nil || !strings.Contains(err.Error(), "at most 65536 fit") {
		t.Errorf("large row: %v", err)
	}
}

func TestConditionErrorSaysWhich(t *testing.T) {
	store := embeddedtest.NewStore()
	for _, c := range []embedded.Condition{
		{Kind: embedded.VersionIs, Key: "task/x", Version: 7},
		{Kind: embedded.RunOpen, Run: "aa"},
		{Kind: embedded.ClaimHeld, Component: "backup", Item: "x", Run: "aa", Token: 3},
		{Kind: embedded.FenceHeld, Component: "backup", Node: "n", Run: "aa", Token: 3},
	} {
		err := store.Commit(t.Context(), embedded.Txn{Conditions: []embedded.Condition{c}})
		var failed *embedded.ConditionError
		if !errors.As(err, &failed) || failed.Condition != c || !strings.Contains(err.Error(), c.String()) {
			t.Errorf("%s: %v", c, err)
		}
	}
}
