package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

func TestHistoryAndEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	g, row := b.take("t1", "aa")
	for range 3 { // progress is no step
		if err := b.write(g, row, ledger.Uploading, ledger.BackupCreating); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.led.RequestCancel(t.Context(), "t1", "ann"); err != nil {
		t.Fatal(err)
	}
	f := b.fence("aa", "bb")
	if err := b.led.ShutOut(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	token, err := b.group.Adopt("backup", "t1", "bb")
	if err != nil {
		t.Fatal(err)
	}
	heir := ledger.Guard{Run: "bb", Component: "backup", Item: "t1", Token: token, Fence: &f}
	if _, err := b.led.Take(t.Context(), heir, "t1", "node-bb"); err != nil {
		t.Fatal(err)
	}
	if err := b.write(heir, row, ledger.Reverted, ledger.BackupGone); err != nil {
		t.Fatal(err)
	}
	steps, err := b.led.History(t.Context(), "t1")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i, s := range steps {
		got += fmt.Sprintf("%s/%d/%s ", s.State, s.Attempt, s.Node)
		if i > 0 && s.Token < steps[i-1].Token {
			t.Errorf("token goes back: %+v", steps)
		}
	}
	if want := "planned/0/ planned/1/node-aa uploading/1/node-aa uploading/2/node-bb reverted/2/node-bb "; got != want {
		t.Errorf("history: %s, want %s", got, want)
	}
	var kinds string
	var after int64
	for {
		events, err := b.led.Events(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			kinds += e.Kind + " "
			after = e.Seq
			if e.Kind == "ended" && e.Success || e.Kind == "shut out" && e.Token != f.Token {
				t.Errorf("event: %+v", e)
			}
		}
		if len(events) < 2 {
			break
		}
	}
	if kinds != "planned taken cancel shut out taken ended " {
		t.Errorf("events: %s", kinds)
	}
}

// The same ten handled rows are never looked at again; a row that another node holds is left to it; one whose handling
// failed comes again.
func TestErrorsAreHandledOnceOldestFirst(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 5 {
		g, _ := b.take(fmt.Sprintf("t%d", i), "aa")
		for range 2 {
			if err := b.led.NoteError(t.Context(), g, "broken"); err != nil {
				t.Fatal(err)
			}
		}
	}
	handle := func(n int, handle func(context.Context, ledger.Task) error) (got string, err error) {
		_, err = b.led.HandleErrors(t.Context(), n, func(ctx context.Context, e TaskError) error {
			got += e.Task + " "
			return handle(ctx, ledger.Task{ID: e.Task})
		})
		return got, err
	}
	well := func(context.Context, ledger.Task) error { return nil }
	odd := errors.New("odd")
	got, err := handle(2, func(_ context.Context, task ledger.Task) error {
		if task.ID == "t0" {
			return odd
		}
		return nil
	})
	if got != "t0 t1 " || !errors.Is(err, odd) {
		t.Errorf("first round: %s, %v", got, err)
	}
	inner := ""
	got, err = handle(2, func(context.Context, ledger.Task) error {
		if inner == "" { // another node looks meanwhile
			inner, err = handle(2, well)
		}
		return err
	})
	if got != "t0 t2 " || inner != "t3 t4 " || err != nil {
		t.Errorf("second round: %s, meanwhile %s, %v", got, inner, err)
	}
	if got, err := handle(10, well); got != "" || err != nil {
		t.Errorf("third round: %s, %v", got, err)
	}
	g, _ := b.take("t9", "aa")
	if err := b.led.ShutOut(t.Context(), b.fence("aa", "bb")); err != nil {
		t.Fatal(err)
	}
	if err := b.led.NoteError(t.Context(), g, "late"); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("note of a run that was shut out: %v", err)
	}
}

// Two tasks that make the entry of one backup at the same moment: the second is decided by what the first one wrote.
func TestTwoFirstEntries(t *testing.T) {
	t.Parallel()
	b := open(t)
	second := mustOpen(t, configOf(b.dsn))
	slow, slowRow := b.take("t1", "aa")
	fast, fastRow := b.take("t2", "bb")
	slowRow.Backup, fastRow.Backup = "both", "both"
	reached, resume := paused(second, "commit")
	defer resume()
	late := make(chan error, 1)
	slowRow.State = ledger.Completed
	entry := &ledger.Backup{ID: "both", State: ledger.BackupCompleted, Token: slow.Token}
	go func() { late <- second.Write(soon(t), slow, ledger.Change{Task: slowRow, Backup: entry}) }()
	<-reached
	if err := b.write(fast, fastRow, ledger.Completed, ledger.BackupCompleted); err != nil {
		t.Fatal(err)
	}
	resume()
	if err := <-late; err == nil || errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("completed twice: %v", err)
	}
	if got, err := b.led.Backup(t.Context(), "both"); err != nil || got.Token != fast.Token {
		t.Errorf("entry: %+v, %v", got, err)
	}
	if row := b.row("t1"); row.State.Final() {
		t.Errorf("half a change: %+v", row)
	}
}
