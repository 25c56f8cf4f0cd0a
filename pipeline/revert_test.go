package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	entry := &ledger.Backup{ID: "b", State: ledger.BackupCreating, Token: 5}
	create := func(s ledger.State) Found {
		return Found{Task: ledger.Task{Type: ledger.Create, State: s, Attempt: 2, MaxAttempts: 3, OnFailure: "rerun"}, Entry: entry, Need: 2, Now: noon}
	}
	restore := func(s ledger.State) Found {
		return Found{Task: ledger.Task{Type: ledger.Restore, State: s, Attempt: 2, MaxAttempts: 3, OnFailure: "rerun", StartBy: noon.Add(time.Minute)}, Now: noon}
	}
	with := func(f Found, edits ...func(*Found)) Found {
		for _, edit := range edits {
			edit(&f)
		}
		return f
	}
	entombed := func(n int) func(*Found) { return func(f *Found) { f.Entombed, f.Manifests = true, n } }
	dropped := func(f *Found) { f.Dropped = true }
	settled := func(o source.Outcome) func(*Found) { return func(f *Found) { f.Settled, f.Outcome = true, o } }
	cancelled := func(f *Found) { f.Task.CancelBy = "ann" }
	worn := func(f *Found) { f.Task.Attempt = 4 }
	late := func(f *Found) { f.Now = noon.Add(time.Hour) }
	revert := func(f *Found) { f.Task.OnFailure = "revert" }
	noEntry := func(f *Found) { f.Entry = nil }
	fell := func(f *Found) { f.Task.Progress.Stored = map[string]int64{"one": 1, "two": 0} }
	for i, c := range []struct {
		found Found
		kind  ActionKind
		state ledger.State
	}{
		{create(ledger.Planned), ActRerun, ""},
		{with(create(ledger.Planned), cancelled), ActFinish, ledger.Cancelled},
		{with(create(ledger.Planned), worn), ActFinish, ledger.Failed},
		{with(create(ledger.Planned), revert), ActRerun, ""},
		{create(ledger.Creating), ActDrop, ""},
		{with(create(ledger.Creating), noEntry), ActRerun, ""},
		{with(create(ledger.Processing), dropped), ActRerun, ""},
		{with(create(ledger.Creating), dropped, revert), ActFinish, ledger.Reverted},
		{with(create(ledger.Creating), fell), ActEntomb, ""},
		{with(create(ledger.Creating), fell, noEntry), ActRerun, ""},
		{with(create(ledger.Creating), fell, entombed(2)), ActDrop, ""},
		{with(create(ledger.Creating), fell, entombed(2), dropped), ActRerun, ""},
		{create(ledger.Uploading), ActEntomb, ""},
		{with(create(ledger.Uploading), noEntry), ActRerun, ""},
		{with(create(ledger.Uploading), entombed(2)), ActAdopt, ""},
		{with(create(ledger.Uploading), entombed(2), cancelled, worn, revert), ActAdopt, ""},
		{with(create(ledger.Uploading), entombed(1)), ActDrop, ""},
		{with(create(ledger.Uploading), entombed(0), dropped), ActRerun, ""},
		{with(create(ledger.Uploading), entombed(0), dropped, worn), ActFinish, ledger.Failed},
		{restore(ledger.Planned), ActRerun, ""},
		{with(restore(ledger.Planned), late), ActFinish, ledger.Failed},
		{restore(ledger.Downloading), ActSettle, ""},
		{restore(ledger.Deprocessing), ActSettle, ""},
		{with(restore(ledger.Restoring), settled(source.Committed)), ActComplete, ""},
		{with(restore(ledger.Restoring), settled(source.Committed), late, cancelled, worn), ActComplete, ""},
		{with(restore(ledger.Restoring), settled(source.Undone)), ActRerun, ""},
		{with(restore(ledger.Restoring), settled(source.Undone), late), ActFinish, ledger.Reverted},
		{with(restore(ledger.Restoring), settled(source.Undone), cancelled), ActFinish, ledger.Cancelled},
		{Found{Task: ledger.Task{Type: ledger.Delete, State: ledger.Deleting, CancelBy: "ann"}}, ActRerun, ""},
	} {
		if got := Next(c.found); got.Kind != c.kind || got.State != c.state {
			t.Errorf("case %d, %s: %+v, want kind %d %s", i, c.found.Task.State, got, c.kind, c.state)
		}
	}
}

func TestEndOf(t *testing.T) {
	row := ledger.Task{Attempt: 1, MaxAttempts: 3, OnFailure: "rerun"}
	last, once := row, row
	last.Attempt, once.OnFailure = 3, "revert"
	store := func(err error) error { return fmt.Errorf("part: %w", &storageError{name: "one", err: err}) }
	for _, c := range []struct {
		err   error
		row   ledger.Task
		state ledger.State
		hands bool
		back  bool
	}{
		{ledger.ErrFenced, row, "", true, false},
		{ledger.ErrFinal, row, "", true, false},
		{source.ErrSuperseded, row, "", true, false},
		{context.Canceled, row, "", true, false},
		{&cancelError{by: "ann"}, row, ledger.Cancelled, false, false},
		{errStopping, last, ledger.Planned, false, true},
		{source.ErrUnavailable, row, ledger.Planned, false, false},
		{source.ErrUnavailable, last, ledger.Failed, false, false},
		{source.ErrUnavailable, once, ledger.Failed, false, false},
		{store(errBoom), row, ledger.Planned, false, false},
		{store(storage.ErrPermanent), row, ledger.Failed, false, false},
		{store(storage.ErrFull), row, ledger.Planned, false, false},
		{store(storage.ErrFull), last, ledger.Failed, false, false},
		{store(storage.ErrNotFound), row, ledger.Failed, false, false},
		{errBoom, row, ledger.Failed, false, false},
		{source.ErrIncomplete, row, ledger.Failed, false, false},
		{errExpired, row, ledger.Failed, false, false},
	} {
		got := endOf(c.err, c.row)
		if got.state != c.state || got.handsOff != c.hands || got.giveBack != c.back {
			t.Errorf("%v at attempt %d: %+v", c.err, c.row.Attempt, got)
		}
	}
	if got := endOf(errors.Join(errBoom, errBoom), row); got.reason != "boom; boom" {
		t.Errorf("reason %q", got.reason)
	}
}
