package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestValidID(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "0-9z": true, strings.Repeat("a", MaxID): true,
		"": false, strings.Repeat("a", MaxID+1): false, "A": false, "a/b": false, "a b": false, "ä": false, "a\x00": false,
	} {
		if err := ValidID(id); (err == nil) != ok {
			t.Errorf("ValidID(%q) = %v", id, err)
		}
	}
}

func TestAsPlannedDropsOwnership(t *testing.T) {
	row, err := AsPlanned(Task{ID: "t", MaxAttempts: 1, State: Completed, Token: 9, Run: "r", Node: "n", Attempt: 4, CancelBy: "x"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if row.State != Planned || row.Token != 0 || row.Run != "" || row.Node != "" || row.Attempt != 0 || row.CancelBy != "" {
		t.Errorf("planned row keeps an owner: %+v", row)
	}
	for _, bad := range []Task{
		{ID: "T", MaxAttempts: 1},
		{ID: "t"},
		{ID: "t", MaxAttempts: 1, Storages: make([]string, MaxStorages+1)},
		{ID: "t", MaxAttempts: 1, Target: strings.Repeat("x", MaxName+1)},
	} {
		if _, err := AsPlanned(bad, now); err == nil {
			t.Errorf("AsPlanned(%.60v) accepted", bad)
		}
	}
}

func TestRule25_AfterTake(t *testing.T) {
	row := Task{ID: "t", State: Uploading, Token: 5, Attempt: 1, Run: "r1"}
	for token, want := range map[uint64]error{4: ErrFenced, 5: ErrFenced, 6: nil} {
		next, err := AfterTake(row, Guard{Run: "r2", Token: token}, "n2", now)
		if !errors.Is(err, want) {
			t.Errorf("token %d: %v, want %v", token, err, want)
		}
		if err == nil && (next.Token != 6 || next.Attempt != 2 || next.Run != "r2" || next.Node != "n2" || next.State != Uploading) {
			t.Errorf("taken row: %+v", next)
		}
	}
	for _, s := range []State{Completed, Failed, Interrupted, Reverted, Cancelled} {
		row.State = s
		if _, err := AfterTake(row, Guard{Token: 6}, "n", now); !errors.Is(err, ErrFinal) {
			t.Errorf("take of a task that is %s: %v", s, err)
		}
	}
}

// A take counts an attempt once, until the attempt begins: what is only reverted and planned again has not begun, unless
// its holder says so.
func TestAttemptsThatNeverBeganCountOnce(t *testing.T) {
	row := Task{ID: "t", State: Uploading, Attempt: 1, MaxAttempts: 3}
	take := func(token uint64) {
		t.Helper()
		var err error
		if row, err = AfterTake(row, Guard{Token: token}, "n", now); err != nil || !row.Taken {
			t.Fatalf("take: %+v, %v", row, err)
		}
	}
	write := func(edit func(*Task)) {
		t.Helper()
		next, err := row, error(nil)
		edit(&next)
		if row, err = AfterWrite(row, Guard{Token: row.Token}, next, now); err != nil {
			t.Fatal(err)
		}
	}
	counts := func(what string, want int) {
		t.Helper()
		if row.Attempt != want {
			t.Errorf("%s: attempt %d, want %d", what, row.Attempt, want)
		}
	}
	take(2)
	take(3)
	counts("taken over twice", 2)
	write(func(t *Task) { t.State = Planned })
	take(4)
	counts("reverted, and taken over again", 2)
	write(func(t *Task) { t.State, t.Taken = Planned, false })
	take(5)
	counts("failed before it began", 3)
	write(func(t *Task) { t.State, t.Attempt = Planned, 2 })
	take(6)
	counts("given back", 3)
	write(func(t *Task) { t.State = Creating })
	write(func(t *Task) { t.State, t.Taken = Planned, true })
	take(7)
	counts("begun", 4)
}

func TestRule25_AfterWriteKeepsTokenIdentityAndAttempt(t *testing.T) {
	row := Task{ID: "t", Type: Create, State: Creating, Token: 5, Attempt: 2, MaxAttempts: 3, Run: "r", Node: "n", Backup: "b", Created: now}
	wish := Task{ID: "other", Type: Restore, State: Uploading, Token: 99, Attempt: 7, MaxAttempts: 99, Run: "x", Node: "y", Backup: "c"}
	for _, other := range []uint64{4, 6} {
		if _, err := AfterWrite(row, Guard{Token: other}, wish, now); !errors.Is(err, ErrFenced) {
			t.Errorf("write with token %d over token 5: %v", other, err)
		}
	}
	got, err := AfterWrite(row, Guard{Token: 5}, wish, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "t" || got.Type != Create || got.Token != 5 || got.Attempt != 2 || got.Run != "r" || got.Node != "n" ||
		got.Backup != "b" || got.MaxAttempts != 3 || !got.Created.Equal(now) {
		t.Errorf("identity changed: %+v", got)
	}
	if got.State != Uploading || !got.Finished.IsZero() {
		t.Errorf("state not written: %+v", got)
	}
	for wish, want := range map[int]int{1: 1, 0: 2, 2: 2, 3: 2} {
		got, err := AfterWrite(row, Guard{Token: 5}, Task{State: Planned, Attempt: wish}, now)
		if err != nil || got.Attempt != want {
			t.Errorf("planned again with attempt %d: stored %d (%v), want %d", wish, got.Attempt, err, want)
		}
	}
	if _, err := AfterWrite(row, Guard{Token: 4}, wish, now); !errors.Is(err, ErrFenced) {
		t.Errorf("old token: %v", err)
	}
	if _, err := AfterWrite(row, Guard{Token: 6}, wish, now); !errors.Is(err, ErrFenced) {
		t.Errorf("token that never took the row: %v", err)
	}
}

func TestTextsAreCutAtARune(t *testing.T) {
	row := Task{ID: "t", State: Creating, Token: 5}
	got, err := AfterWrite(row, Guard{Token: 5}, Task{State: Failed, Error: strings.Repeat("ü", MaxText)}, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Error) > MaxText || !utf8.ValidString(got.Error) || !strings.HasSuffix(got.Error, "…") {
		t.Errorf("error of %d bytes, valid %v", len(got.Error), utf8.ValidString(got.Error))
	}
	if got.Finished.IsZero() {
		t.Error("a final state has no end")
	}
}

func TestAfterBackupTransitions(t *testing.T) {
	states := []BackupState{BackupCreating, BackupCompleted, BackupDeleting, BackupGone}
	allowed := map[[2]BackupState]bool{
		{BackupCreating, BackupCreating}: true, {BackupCreating, BackupCompleted}: true, {BackupCreating, BackupGone}: true,
		{BackupCompleted, BackupCompleted}: true, {BackupCompleted, BackupDeleting}: true,
		{BackupDeleting, BackupDeleting}: true, {BackupDeleting, BackupGone}: true,
	}
	for _, from := range states {
		for _, to := range states {
			_, err := AfterBackup(&Backup{ID: "b", State: from, Token: 3}, Guard{Token: 5}, Backup{ID: "b", State: to, Token: 3}, now)
			if (err == nil) != allowed[[2]BackupState{from, to}] {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
	}
	done := &Backup{ID: "b", State: BackupCompleted, Token: 3}
	if _, err := AfterBackup(done, Guard{Token: 5}, Backup{ID: "b", State: BackupCompleted, Token: 5}, now); err == nil {
		t.Error("completed a second time under another token")
	}
	if _, err := AfterBackup(done, Guard{Token: 5}, Backup{ID: "b", State: BackupDeleting, Token: 2}, now); !errors.Is(err, ErrFenced) {
		t.Errorf("token went back: %v", err)
	}
	if _, err := AfterBackup(nil, Guard{Token: 5}, Backup{ID: "b", State: BackupCreating, Token: 6}, now); err == nil {
		t.Error("token above the guard's accepted")
	}
}

func TestFilters(t *testing.T) {
	if (TaskFilter{Active: true}).Matches(Task{State: Failed}) || !(TaskFilter{Active: true}).Matches(Task{State: Planned}) {
		t.Error("active filter")
	}
	if (BackupFilter{}).Matches(Backup{State: BackupGone}) || !(BackupFilter{State: BackupGone}).Matches(Backup{State: BackupGone}) {
		t.Error("gone entries are shown only when asked for")
	}
}
