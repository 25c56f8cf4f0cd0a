package ledger

import (
	"fmt"
	"slices"
	"time"
)

// Begins tells whether a task in t's state has just begun: a write of such a state over Planned is a beginning.
func Begins(t Task) bool {
	return t.State == Creating || t.State == Downloading || t.State == Deleting
}

// Gates are the names of the gates that a beginning passes, in order: two beginnings at one gate come one after the other.
// Each database has one, and each server whose dumps are counted.
func Gates(t Task) []string {
	gates := []string{t.Database}
	if t.Of != "" && t.Of != t.Database {
		gates = append(gates, t.Of)
	}
	if t.counted() {
		gates = append(gates, "server "+t.Server) // no database's name has a space
	}
	slices.Sort(gates)
	return gates
}

// counted tells whether there may be too many like it at its server.
func (t Task) counted() bool { return t.Type == Create && t.Server != "" && t.MaxDumps > 0 }

// TooMany tells whether as many dumps of t's server have begun as it allows, by the tasks that have not ended.
func (t Task) TooMany(active []Task) bool {
	if !t.counted() {
		return false
	}
	begun := 0
	for _, other := range active {
		if other.Type == Create && other.Server == t.Server && other.ID != t.ID && other.State != Planned && !other.State.Final() {
			begun++
		}
	}
	return begun >= t.MaxDumps
}

// Origin is the database that a task's backup is of.
func (t Task) Origin() string {
	if t.Of != "" {
		return t.Of
	}
	return t.Database
}

// Reads tells whether a task reads the backup that it names, so that it must not be deleted meanwhile.
func (t Task) Reads() bool { return t.Type == Restore || t.Type == Verify || t.Type == Replicate }

// Beside is what else there is when a task begins, as it is inside its gates.
type Beside struct {
	Tasks   []Task   // that have not ended, of all databases
	Backups []Backup // of Origin, gone ones excepted
}

// MayBegin decides whether the task stored may begin by c. The rules:
//
//   - of tasks with the same flight at most one has begun (ErrInFlight);
//   - of dumps of one server no more have begun than the task allows (ErrInFlight);
//   - a backup that is read is completed;
//   - a backup becomes deleting only when it is not pinned, nobody reads it or has asked to, somebody has not thought
//     better of it, another good one of its database is left, and c.Confirm has no objection.
//
// All but the first two are ErrRefused.
func MayBegin(stored Task, c Change, b Beside) error {
	for _, t := range b.Tasks {
		if stored.Flight != "" && t.Flight == stored.Flight && t.ID != stored.ID && t.State != Planned && !t.State.Final() {
			return fmt.Errorf("begin task %s: task %s has begun: %w", stored.ID, t.ID, ErrInFlight)
		}
	}
	if stored.TooMany(b.Tasks) {
		return fmt.Errorf("begin task %s: server %s makes %d dumps already: %w", stored.ID, stored.Server, stored.MaxDumps, ErrInFlight)
	}
	i := slices.IndexFunc(b.Backups, func(x Backup) bool { return x.ID == stored.Backup })
	switch {
	case stored.Reads() && (i < 0 || b.Backups[i].State != BackupCompleted):
		return refuse(stored, "backup %s is not there any more, or about to go", stored.Backup)
	case stored.Type != Delete || c.Backup == nil || c.Backup.State != BackupDeleting:
		return nil
	case i < 0:
		return refuse(stored, "backup %s is not there any more", stored.Backup)
	case b.Backups[i].State == BackupDeleting:
		return nil
	case stored.CancelBy != "":
		return refuse(stored, "%s has undone it", stored.CancelBy)
	}
	return mayDelete(stored, b.Backups[i], c, b)
}

func mayDelete(stored Task, backup Backup, c Change, b Beside) error {
	if err := Deletable(backup, b); err != nil {
		return refuse(stored, "%s", err)
	}
	if c.Confirm == nil {
		return nil
	}
	if err := c.Confirm(slices.Clone(b.Backups)); err != nil {
		return fmt.Errorf("begin task %s: %w: %w", stored.ID, ErrRefused, err)
	}
	return nil
}

// Deletable says why a backup must not be deleted; nil when it may be. An unfinished or damaged one may always go.
func Deletable(backup Backup, b Beside) error {
	if backup.Mark.Pinned {
		return fmt.Errorf("backup %s is pinned", backup.ID)
	}
	for _, t := range b.Tasks {
		if t.Backup == backup.ID && t.Reads() && !t.State.Final() {
			return fmt.Errorf("task %s (%s) reads backup %s", t.ID, t.Type, backup.ID)
		}
	}
	others := slices.ContainsFunc(b.Backups, func(x Backup) bool { return x.ID != backup.ID && x.Good() })
	if backup.Good() && !others {
		return fmt.Errorf("backup %s is the last good one of %s", backup.ID, backup.Database)
	}
	return nil
}

func refuse(t Task, format string, args ...any) error {
	return fmt.Errorf("begin task %s: %s: %w", t.ID, fmt.Sprintf(format, args...), ErrRefused)
}

// Edited decides EditBackup: the entry to store in place of stored.
func Edited(stored Backup, edit func(Mark) Mark) (Backup, error) {
	if stored.State != BackupCompleted {
		return Backup{}, fmt.Errorf("edit backup %s, which is %s: %w", stored.ID, stored.State, ErrFinal)
	}
	next := stored
	next.Mark = edit(stored.Mark)
	next.Mark.Note, next.Mark.By = clip(next.Mark.Note), clip(next.Mark.By)
	return next, nil
}

// Due tells whether a planned task may begin at now as far as its time goes.
func (t Task) Due(now time.Time) bool { return !t.NotBefore.After(now) }
