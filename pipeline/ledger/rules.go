package ledger

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a row may carry.
const (
	MaxID       = 32   // bytes of a task's or backup's id
	MaxText     = 1024 // bytes of Error and of Hint; longer ones are cut
	MaxStorages = 64   // storages of one task
	MaxName     = 256  // bytes of a configured name or a target
)

// ValidID tells whether id can name a task or a backup: 1 to MaxID bytes of [a-z0-9-].
func ValidID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("id %q: need 1 to %d bytes", id, MaxID)
	}
	if i := strings.IndexFunc(id, notIDByte); i >= 0 {
		return fmt.Errorf("id %q: only a-z, 0-9 and - are allowed", id)
	}
	return nil
}

func notIDByte(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}

// AsPlanned decides Plan: the row to insert for t, or what is wrong with t. now is UTC, by the planner's clock; it is
// the row's Created when t has none.
func AsPlanned(t Task, now time.Time) (Task, error) {
	if err := ValidID(t.ID); err != nil {
		return Task{}, fmt.Errorf("plan task: %w", err)
	}
	if t.MaxAttempts < 1 {
		return Task{}, fmt.Errorf("plan task %s: max_attempts is %d: need at least 1", t.ID, t.MaxAttempts)
	}
	if len(t.Storages) > MaxStorages {
		return Task{}, fmt.Errorf("plan task %s: %d storages: at most %d", t.ID, len(t.Storages), MaxStorages)
	}
	for _, name := range append([]string{t.Database, t.Target}, t.Storages...) {
		if len(name) > MaxName {
			return Task{}, fmt.Errorf("plan task %s: a name of %d bytes: at most %d", t.ID, len(name), MaxName)
		}
	}
	if err := t.Needs.Check(); err != nil {
		return Task{}, fmt.Errorf("plan task %s: %w", t.ID, err)
	}
	t.State, t.Attempt, t.Token, t.Taken, t.Run, t.Node, t.CancelBy, t.Begun = Planned, 0, 0, false, "", "", "", time.Time{}
	if t.Created.IsZero() {
		t.Created = now
	}
	t.Updated = now
	return t, nil
}

// AfterTake decides Take: the row that the holder of g stores in place of stored. The token must grow (ErrFenced) and
// the task must not have ended (ErrFinal).
func AfterTake(stored Task, g Guard, node string, now time.Time) (Task, error) {
	if stored.Token >= g.Token {
		return Task{}, fmt.Errorf("take task %s with token %d, stored is %d: %w", stored.ID, g.Token, stored.Token, ErrFenced)
	}
	if stored.State.Final() {
		return Task{}, fmt.Errorf("take task %s, which is %s: %w", stored.ID, stored.State, ErrFinal)
	}
	next := stored
	next.Token, next.Run, next.Node = g.Token, g.Run, node
	if !stored.Taken {
		next.Attempt++
	}
	next.Taken = true
	next.Updated = now
	return next, nil
}

// AfterWrite decides the task half of Write: what is stored when the holder of g writes next over stored.
func AfterWrite(stored Task, g Guard, next Task, now time.Time) (Task, error) {
	if stored.Token != g.Token {
		return Task{}, fmt.Errorf("write task %s with token %d, stored is %d: %w", stored.ID, g.Token, stored.Token, ErrFenced)
	}
	if stored.State.Final() {
		return Task{}, fmt.Errorf("write task %s, which is %s: %w", stored.ID, stored.State, ErrFinal)
	}
	givesBack := next.State == Planned && next.Attempt == stored.Attempt-1
	if !givesBack {
		next.Attempt = stored.Attempt
	}
	next.ID, next.Type, next.RunType, next.Created = stored.ID, stored.Type, stored.RunType, stored.Created
	next.Token, next.Run, next.Node = stored.Token, stored.Run, stored.Node
	next.Taken = stored.Taken && next.Taken && next.State == Planned && !givesBack // a revert that plans again begins nothing
	next.MaxAttempts, next.Backup, next.Of, next.Flight, next.Needs = stored.MaxAttempts, stored.Backup, stored.Of, stored.Flight, stored.Needs
	next.Server, next.MaxDumps = stored.Server, stored.MaxDumps
	switch next.Begun = stored.Begun; {
	case next.State == Planned:
		next.Begun = time.Time{}
	case stored.State == Planned && Begins(next):
		next.Begun = now
	}
	next.CancelBy = ""
	next.Error, next.Hint = clip(next.Error), clip(next.Hint)
	next.Updated, next.Finished = now, time.Time{}
	if next.State.Final() {
		next.Finished = now
	}
	return next, nil
}

// AfterBackup decides the backup half of Write. stored is nil when there is no entry yet. The entry's token lies
// between the stored one and g.Token: a recoverer that adopts a dead attempt completes it under that attempt's token.
func AfterBackup(stored *Backup, g Guard, next Backup, now time.Time) (Backup, error) {
	if err := ValidID(next.ID); err != nil {
		return Backup{}, fmt.Errorf("write backup: %w", err)
	}
	if next.Token > g.Token {
		return Backup{}, fmt.Errorf("write backup %s: token %d is above the guard's %d", next.ID, next.Token, g.Token)
	}
	if stored != nil {
		if next.Token < stored.Token {
			return Backup{}, fmt.Errorf("write backup %s with token %d, stored is %d: %w", next.ID, next.Token, stored.Token, ErrFenced)
		}
		if !follows(*stored, next) {
			return Backup{}, fmt.Errorf("write backup %s: an entry that is %s never becomes %s", next.ID, stored.State, next.State)
		}
		next.Created, next.Mark = stored.Created, stored.Mark
	}
	if next.Created.IsZero() {
		next.Created = now
	}
	if next.State == BackupCompleted && next.Completed.IsZero() {
		next.Completed = now
	}
	if next.State == BackupGone && next.Gone.IsZero() {
		next.Gone = now
	}
	return next, nil
}

// follows tells whether an entry may go from one state to the next.
func follows(from, to Backup) bool {
	switch from.State {
	case BackupCreating:
		return to.State == BackupCreating || to.State == BackupCompleted || to.State == BackupGone
	case BackupCompleted:
		return to.State == BackupDeleting || to.State == BackupCompleted && to.Token == from.Token
	case BackupDeleting:
		return to.State == BackupDeleting || to.State == BackupGone
	}
	return false
}

// Clip is a text within MaxText bytes.
func Clip(s string) string { return clip(s) }

func clip(s string) string { return cut(s, MaxText) }

// cut is s within so many bytes, cut at a rune's boundary.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	at := most - len("…")
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…"
}

// Matches tells whether f selects t, its Limit aside.
func (f TaskFilter) Matches(t Task) bool {
	return (!f.Active || !t.State.Final()) &&
		(f.Database == "" || f.Database == t.Database) &&
		(f.Type == "" || f.Type == t.Type) &&
		(f.RunType == "" || f.RunType == t.RunType) &&
		(f.Backup == "" || f.Backup == t.Backup) &&
		f.After.Before(t.Created, t.ID)
}

// Before tells whether a row of that creation time and id comes after p in a listing, newest first.
func (p Place) Before(created time.Time, id string) bool {
	if p == (Place{}) {
		return true
	}
	c := created.Compare(p.Created)
	return c < 0 || c == 0 && id < p.ID
}

// Matches tells whether f selects b, its Limit aside.
func (f BackupFilter) Matches(b Backup) bool {
	if f.State == "" && b.State == BackupGone {
		return false
	}
	return (f.State == "" || f.State == b.State) && (f.Database == "" || f.Database == b.Database) && f.After.Before(b.Created, b.ID)
}
