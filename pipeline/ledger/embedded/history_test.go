package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
)

// A full Store is no ledger that is away: the oldest ended tasks go, archived, and when there are none the error says so.
func TestFullStore(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var archived []string
	broken := errors.New("no storage takes it")
	var refuse error
	led, store := open(t, embedded.Config{
		Now: func() time.Time { now = now.Add(time.Second); return now },
		Archive: func(_ context.Context, ended []ledger.Task) error {
			if refuse != nil {
				return refuse
			}
			for _, t := range ended {
				archived = append(archived, t.ID)
			}
			return nil
		},
	})
	for i := range 10 {
		g, row := take(t, led, store, fmt.Sprintf("t%d", i))
		row.State = ledger.Completed
		if err := led.Write(t.Context(), g, ledger.Change{Task: row}); err != nil {
			t.Fatal(err)
		}
	}
	g, row := take(t, led, store, "runs")
	store.SetRoom(1)
	refuse = broken
	err := led.Plan(t.Context(), ledger.Task{ID: "new", MaxAttempts: 1})
	if !errors.Is(err, embedded.ErrFull) || !errors.Is(err, broken) || errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("plan without room or archive: %v", err)
	}
	refuse = nil
	store.SetRoom(2500)
	row.State, row.Error = ledger.Creating, "grows"
	if err := led.Write(t.Context(), g, ledger.Change{Task: row}); err != nil {
		t.Fatalf("a write that there can be room for: %v", err)
	}
	if len(archived) != 10 || archived[0] != "t0" || archived[9] != "t9" {
		t.Errorf("archived %q", archived)
	}
	if left, err := led.Tasks(t.Context(), ledger.TaskFilter{}); err != nil || len(left) != 1 || left[0].ID != "runs" {
		t.Errorf("left: %+v, %v", left, err)
	}
	store.SetRoom(1)
	if err := led.Plan(t.Context(), ledger.Task{ID: "new", MaxAttempts: 1}); !errors.Is(err, embedded.ErrFull) || errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("plan with nothing left to go: %v", err)
	}
}

// History goes in batches to the archive, and stays while that fails.
func TestHistoryIsArchived(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var batches [][]ledger.Task
	away := true
	led, store := open(t, embedded.Config{
		History: 3, Now: func() time.Time { now = now.Add(time.Second); return now },
		Archive: func(_ context.Context, ended []ledger.Task) error {
			if away {
				return errors.New("away")
			}
			batches = append(batches, ended)
			return nil
		},
	})
	for i := range 50 {
		if i == 45 {
			away = false
		}
		g, row := take(t, led, store, fmt.Sprintf("t%d", i))
		row.State = ledger.Completed
		if err := led.Write(t.Context(), g, ledger.Change{Task: row}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil || len(batches) != 1 || len(batches[0]) != 32 || batches[0][0].ID != "t0" || len(left) != 18 {
		t.Errorf("%d batches, %d left, %v", len(batches), len(left), err)
	}
}
