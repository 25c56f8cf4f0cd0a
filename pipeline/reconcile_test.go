package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// TestReconcile: what a ledger that lacks the last night, or is of a group that is no more, has to be told.
func TestReconcile(t *testing.T) {
	m := goodManifest() // backup b1, token 7
	tomb := Tombstone("b1", 7, "deleted", noon)
	right := map[string]int64{source.PartData: 5, source.PartDatabase: 2}
	foreign := &found{parts: right, manifest: &m, foreign: errors.New("not ours")}
	in := func(where string, f *found) map[string]inventory {
		all := map[string]inventory{"one": {}, "two": {}}
		if f != nil {
			all[where] = inventory{attempts: map[string]map[uint64]*found{"b1": {7: f}}}
		}
		return all
	}
	entry := func(state ledger.BackupState, token uint64, where ...string) []ledger.Backup {
		b := ledger.Backup{ID: "b1", Database: "shop", State: state, Token: token, Mark: ledger.Mark{Pinned: true}}
		for _, name := range where {
			b.Copies = append(b.Copies, ledger.Copy{Storage: name, State: ledger.CopyPresent, Bytes: 7})
		}
		return []ledger.Backup{b}
	}
	task := func(typ ledger.TaskType, state ledger.State, token uint64) []ledger.Task {
		return []ledger.Task{{ID: "t1", Type: typ, State: state, Token: token, Backup: "b1"}}
	}
	held := map[string]uint64{"t1": 7}
	for name, c := range map[string]struct {
		all  map[string]inventory
		d    Doubtful
		want string
	}{
		"all is well":                    {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one")}, ""},
		"made since":                     {in("one", lying(&m, right)), Doubtful{}, "b1:completed[one+]"},
		"made since, by another group":   {in("one", foreign), Doubtful{}, ""},
		"another group's, and known":     {in("one", foreign), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one")}, ""},
		"finished since":                 {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCreating, 5), Active: task(ledger.Create, ledger.Uploading, 5)}, "b1:completed[one+]! t1:completed"},
		"finished and not noted, held":   {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCreating, 7), Active: task(ledger.Create, ledger.Uploading, 7), Held: held}, ""},
		"held under a token it lost":     {in("one", nil), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "away"), Active: task(ledger.Restore, ledger.Planned, 0), Held: held, Older: true}, "t1:interrupted"},
		"an attempt that stopped":        {in("one", &found{parts: right}), Doubtful{Backups: entry(ledger.BackupCreating, 7), Active: task(ledger.Create, ledger.Uploading, 7)}, ""},
		"deleted since":                  {in("one", nil), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one", "two"), Active: task(ledger.Delete, ledger.Planned, 0)}, "b1:gone[one+ two+]! t1:completed"},
		"voided since":                   {in("one", lying(&tomb, nil)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one")}, "b1:gone[one+]!"},
		"a copy is gone":                 {in("two", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one", "two")}, "b1:completed[one- two+]!"},
		"a copy came":                    {in("two", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "away")}, "b1:completed[away+ two+]!"},
		"may be where nobody can look":   {in("one", nil), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "away")}, ""},
		"damaged, and a check's matter":  {in("one", lying(&m, map[string]int64{source.PartData: 4})), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one")}, ""},
		"a manifest that cannot be read": {in("one", &found{parts: right, broken: errManifest}), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one")}, ""},
		"on its way out":                 {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupDeleting, 7, "one"), Active: task(ledger.Delete, ledger.Deleting, 6), Older: true}, ""},
		"gone stays gone":                {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupGone, 7, "one")}, ""},
		"a delete that was not begun":    {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one"), Active: task(ledger.Delete, ledger.Planned, 0)}, "t1:interrupted"},
		"a restore that was not begun":   {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one"), Active: task(ledger.Restore, ledger.Planned, 0)}, "t1:interrupted"},
		"a restore, as of last night":    {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one"), Active: task(ledger.Restore, ledger.Restoring, 6), Older: true}, "t1:interrupted"},
		"a restore that was cut off":     {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one"), Active: task(ledger.Restore, ledger.Restoring, 6)}, ""},
		"a verification":                 {in("one", lying(&m, right)), Doubtful{Backups: entry(ledger.BackupCompleted, 7, "one"), Active: task(ledger.Verify, ledger.Planned, 0), Older: true}, ""},
	} {
		var got []string
		r := c.d.reconcile(c.all, noon)
		for _, b := range r.Backups {
			var copies []string
			for _, x := range b.Entry.Copies {
				copies = append(copies, x.Storage+map[string]string{ledger.CopyPresent: "+", ledger.CopyMissing: "-"}[x.State])
			}
			pinned := ""
			if b.Entry.Mark.Pinned {
				pinned = "!"
			}
			got = append(got, fmt.Sprintf("%s:%s[%s]%s", b.Entry.ID, b.Entry.State, strings.Join(copies, " "), pinned))
			if b.Entry.State == ledger.BackupCompleted && b.Entry.Completed.IsZero() && b.Was != ledger.BackupCompleted || b.Entry.State == ledger.BackupGone && !b.Entry.Gone.Equal(noon) {
				t.Errorf("%s: %+v", name, b.Entry)
			}
		}
		for _, a := range r.Tasks {
			got = append(got, fmt.Sprintf("%s:%s", a.Task.ID, a.Task.State))
			if (a.Task.Error == "") != (a.Task.State == ledger.Completed) || !slices.ContainsFunc(c.d.Active, func(x ledger.Task) bool { return x.State == a.Was && x.Token == a.Task.Token }) {
				t.Errorf("%s: %+v, was %s", name, a.Task, a.Was)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
