package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Doubtful is a ledger of which nobody knows whether it holds all that was done, and what there is to compare it with.
type Doubtful struct {
	Backups []ledger.Backup   // every entry, gone ones too
	Active  []ledger.Task     // that have not ended
	Held    map[string]uint64 // by task: token of the claim that an open run holds
	Older   bool              // it is an older copy; otherwise it is whole, and its group is no more
}

// Reconciliation is what a ledger has to be told, and what could not be looked at. All in it is still to be done.
type Reconciliation struct {
	Backups []AmendedBackup  // in order of id
	Tasks   []AmendedTask    // in order of id
	Away    map[string]error // storages that could not be looked through: what they may hold is left as the ledger has it
}

// AmendedBackup is an entry as it is to be.
type AmendedBackup struct {
	Entry ledger.Backup
	Was   ledger.BackupState // "": the ledger does not know it
	Why   string             // one sentence
}

// AmendedTask is a task as it is to end; its Error says why.
type AmendedTask struct {
	Task ledger.Task
	Was  ledger.State
}

// Reconcile looks through all storages of a catalog and says what the ledger has to be told. It changes nothing. The rules:
//
//   - a whole backup that is believed, and that the ledger does not know or knows as unfinished, is completed;
//   - a completed one of which no storage has a manifest, believed or not, is gone, if all storages that should were looked
//     through; copies are as they were found;
//   - what the ledger says is deleting, or gone, stays so;
//   - a backup's task whose backup is whole is completed; a restore or a delete that was not begun ends, since it may have been
//     done or taken back, and so does a restore that was begun under an older copy; a delete that says deleting goes on;
//   - a task whose claim an open run holds, under the token that the ledger has, is that run's, and so is its backup.
//
// What is left of tasks that have begun is taken up by the worker, as of anybody who is gone.
func Reconcile(ctx context.Context, cat Catalog, d Doubtful, now time.Time) (Reconciliation, error) {
	all, away := map[string]inventory{}, map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(cat.Storages)) {
		inv, err := cat.look(ctx, name)
		if ctx.Err() != nil {
			return Reconciliation{}, context.Cause(ctx)
		}
		if err != nil {
			away[name] = err
			continue
		}
		all[name] = inv
	}
	r := d.reconcile(all, now)
	r.Away = away
	return r, nil
}

// reconcile applies the rules. It is pure.
func (d Doubtful) reconcile(all map[string]inventory, now time.Time) (r Reconciliation) {
	entries := map[string]ledger.Backup{}
	for _, b := range d.Backups {
		entries[b.ID] = b
	}
	stored := storedIn(all)
	known := maps.Clone(entries)
	for id := range stored {
		known[id] = ledger.Backup{}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		entry, ok := entries[id]
		if d.busyWith(id) {
			continue
		}
		if next, why := amendedEntry(entry, ok, stored[id], all, now); why != "" {
			r.Backups = append(r.Backups, AmendedBackup{Entry: next, Was: entry.State, Why: why})
			entries[id] = next
		}
	}
	for _, t := range d.Active {
		if state, why := d.amendedTask(t, entries[t.Backup]); why != "" {
			was := t.State
			t.State, t.Error, t.Hint = state, why, ""
			if state == ledger.Completed {
				t.Error = ""
			}
			r.Tasks = append(r.Tasks, AmendedTask{Task: t, Was: was})
		}
	}
	slices.SortFunc(r.Tasks, func(a, b AmendedTask) int { return strings.Compare(a.Task.ID, b.Task.ID) })
	return r
}

// shelved is what storages have of one backup.
type shelved struct {
	whole  map[uint64]*ledger.Backup         // attempts that are a backup, by token: whole and believed, with their copies
	copies map[uint64]map[string]ledger.Copy // whatever has a manifest that is not void, by token and storage
}

// storedIn is what storages have of each backup.
func storedIn(all map[string]inventory) map[string]shelved {
	out := map[string]shelved{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for id, attempts := range all[name].attempts {
			if _, ok := out[id]; !ok {
				out[id] = shelved{map[uint64]*ledger.Backup{}, map[uint64]map[string]ledger.Copy{}}
			}
			for token, f := range attempts {
				out[id].note(id, token, f, name)
			}
		}
	}
	return out
}

// note adds what a storage has of one attempt.
func (s shelved) note(id string, token uint64, f *found, where string) {
	if f.manifest == nil && f.broken == nil || f.manifest != nil && f.manifest.Void {
		return
	}
	row := ledger.Copy{Storage: where, State: ledger.CopyPresent, Bytes: f.bytes()}
	if s.copies[token] == nil {
		s.copies[token] = map[string]ledger.Copy{}
	}
	s.copies[token][where] = row
	if f.manifest == nil || f.foreign != nil || len(f.objects(id, token)) > 0 {
		return
	}
	if s.whole[token] == nil {
		s.whole[token] = f.manifest.entry(nil)
		s.whole[token].Created, s.whole[token].Completed = f.manifest.Created, f.manifest.Created
	}
	s.whole[token].Copies = append(s.whole[token].Copies, row)
}

// held tells whether an open run holds a task, under the token that the ledger has.
func (d Doubtful) held(t ledger.Task) bool { return t.Token != 0 && d.Held[t.ID] == t.Token }

// busyWith tells whether a task that is held is at work on a backup.
func (d Doubtful) busyWith(backup string) bool {
	return slices.ContainsFunc(d.Active, func(t ledger.Task) bool { return t.Backup == backup && d.held(t) })
}

// amendedEntry is an entry as it is to be, and why; without a reason it stays.
func amendedEntry(entry ledger.Backup, known bool, has shelved, all map[string]inventory, now time.Time) (next ledger.Backup, why string) {
	highest := uint64(0)
	for token := range has.whole {
		highest = max(highest, token)
	}
	switch {
	case !known && highest > 0:
		return *has.whole[highest], "it lies whole in " + storagesOf(*has.whole[highest]) + ", and the ledger does not know it"
	case known && entry.State == ledger.BackupCreating && highest >= entry.Token && highest > 0:
		next = *has.whole[highest]
		next.Created, next.Mark = entry.Created, entry.Mark
		return next, "it lies whole in " + storagesOf(next) + ", and the ledger has it as unfinished"
	case !known || entry.State != ledger.BackupCompleted:
		return entry, ""
	}
	return seenAgain(entry, maps.Clone(has.copies[entry.Token]), all, now)
}

// seenAgain compares the copies of a completed backup with those that were found.
func seenAgain(entry ledger.Backup, found map[string]ledger.Copy, all map[string]inventory, now time.Time) (next ledger.Backup, why string) {
	next = entry
	next.Copies = slices.Clone(entry.Copies)
	var changed []string
	left := 0 // copies that are there, or may be
	for i, c := range next.Copies {
		is, there := found[c.Storage]
		_, looked := all[c.Storage]
		delete(found, c.Storage)
		switch {
		case there && c.State == ledger.CopyMissing:
			next.Copies[i] = is
			changed = append(changed, "a copy is in "+c.Storage)
		case looked && !there && c.State != ledger.CopyMissing:
			next.Copies[i] = ledger.Copy{Storage: c.Storage, State: ledger.CopyMissing, Error: "it was not found when the ledger was reconciled"}
			changed = append(changed, "no copy is in "+c.Storage)
		}
		if there || !looked {
			left++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		next.Copies, left = append(next.Copies, found[name]), left+1
		changed = append(changed, "a copy is in "+name)
	}
	if left == 0 {
		next = entry
		next.State, next.Gone = ledger.BackupGone, now.UTC()
		return next, "no storage holds it any more: it was deleted since, or is lost"
	}
	return next, strings.Join(changed, ", ")
}

func storagesOf(b ledger.Backup) string {
	var names []string
	for _, c := range b.Copies {
		names = append(names, c.Storage)
	}
	return strings.Join(names, ", ")
}

// amendedTask is how a task is to end, and why; without a reason it goes on. backup is the entry of its backup as it is to be.
func (d Doubtful) amendedTask(t ledger.Task, backup ledger.Backup) (ledger.State, string) {
	doubt := "the ledger was taken over from a group that is no more, before this was begun; ask for it again if it is still wanted"
	if d.Older {
		doubt = "the ledger is an older copy: whether this was carried out or taken back since is not known; look, and ask for it again if it is still wanted"
	}
	switch {
	case d.held(t):
		return "", ""
	case t.Type == ledger.Create && backup.State == ledger.BackupCompleted:
		return ledger.Completed, fmt.Sprintf("backup %s is whole", t.Backup)
	case t.Type == ledger.Restore && (t.State == ledger.Planned || d.Older):
		return ledger.Interrupted, doubt
	case t.Type == ledger.Delete && backup.State == ledger.BackupGone:
		return ledger.Completed, fmt.Sprintf("backup %s is gone", t.Backup)
	case t.Type == ledger.Delete && backup.State != ledger.BackupDeleting:
		return ledger.Interrupted, doubt
	}
	return "", ""
}
