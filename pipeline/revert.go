package pipeline

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Found is what is known of a task whose owner is gone, and grows as the actions of Next are carried out.
type Found struct {
	Task  ledger.Task    // the row after Take: state as the dead owner left it, Attempt counts the new owner's
	Entry *ledger.Backup // create: the backup's entry, nil when no attempt had begun; its token is the dead attempt's. delete: the entry
	Need  int            // create: copies that the task requires
	Now   time.Time

	Entombed  bool           // create: tombstones are made wherever there was no manifest
	Manifests int            // create, once entombed: storages in which the attempt's real manifest was there before
	Dropped   bool           // create: what lower tokens stored is removed
	Settled   bool           // restore: sessions and new databases of lower tokens are gone
	Outcome   source.Outcome // restore, once settled: what became of the swap
}

// ActionKind says what to do next with a task whose owner is gone.
type ActionKind int

// Kinds of actions. The first three change Found; the others end the recovery of the task.
const (
	ActEntomb   ActionKind = iota + 1 // create the dead attempt's manifest, void, in each storage; count the real ones
	ActDrop                           // make real manifests of lower tokens void, remove their data
	ActSettle                         // end the dead attempts at the target; learn whether the swap happened
	ActAdopt                          // the attempt was complete: enter its backup in the ledger
	ActComplete                       // the swap happened: enter that in the ledger
	ActRerun                          // plan the task again, for the holder of the claim
	ActFinish                         // end the task in State, for Reason
)

// Action is what Next decided.
type Action struct {
	Kind   ActionKind
	State  ledger.State // of ActFinish
	Reason string       // one sentence, for the task's row
}

// Next is the revert table: what to do next with a task whose owner is gone. Pure; each answer of the first kinds is
// carried out, noted in f, and Next asked again, until it answers with one of the others.
//
//	planned                                nothing was begun → rerun or end
//	creating, applying processors          fell back: entomb; drop → rerun or end
//	uploading                              entomb; enough real manifests → adopt, else drop → rerun or end
//	downloading, deprocessing, restoring   settle; committed → complete, else → rerun or end
//	 of a verify or replicate task         nothing to revert but the scratch server → rerun or end
//	deleting                               rerun: nothing brings a backup back once this is said (PROTOCOL.md 29)
//
// Rerun or end: a cancel request ends the task cancelled, too many attempts failed, a restore that was not begun in time
// reverted, on_failure revert reverted; else it is run again.
func Next(f Found) Action {
	if f.Task.Type == ledger.Delete && f.Entry != nil && f.Entry.State == ledger.BackupDeleting {
		return Action{Kind: ActRerun, Reason: f.Task.Error} // neither a cancel nor the number of attempts brings it back
	}
	switch f.Task.State {
	case ledger.Creating, ledger.Processing:
		switch {
		case f.Entry == nil:
		case !f.Entombed && fellBack(f.Task):
			return Action{Kind: ActEntomb}
		case !f.Dropped:
			return Action{Kind: ActDrop}
		}
	case ledger.Uploading:
		return nextUploading(f)
	case ledger.Downloading, ledger.Deprocessing, ledger.Restoring:
		if f.Task.Type != ledger.Restore && f.Task.Scratch == "" {
			break // it only read, or brought copies to what they should be
		}
		if !f.Settled {
			return Action{Kind: ActSettle}
		}
		if f.Outcome == source.Committed && f.Task.Type == ledger.Restore {
			return Action{Kind: ActComplete}
		}
	case ledger.Deleting:
		return Action{Kind: ActRerun}
	}
	return rerunOrEnd(f)
}

// fellBack tells an attempt that was given up from one that had stored nothing yet: a manifest of it may still be under
// way to a storage. It is never adopted.
func fellBack(t ledger.Task) bool {
	for _, n := range t.Progress.Stored {
		if n > 0 {
			return true
		}
	}
	return false
}

func nextUploading(f Found) Action {
	switch {
	case f.Entry == nil:
		return rerunOrEnd(f)
	case !f.Entombed:
		return Action{Kind: ActEntomb}
	case f.Manifests >= f.Need && f.Need > 0:
		return Action{Kind: ActAdopt}
	case !f.Dropped:
		return Action{Kind: ActDrop}
	}
	return rerunOrEnd(f)
}

func rerunOrEnd(f Found) Action {
	t := f.Task
	reason := t.Error
	if t.State != ledger.Planned && reason == "" {
		reason = "its node ended"
	}
	last := ""
	if reason != "" {
		last = "; the last one: " + reason
	}
	switch {
	case t.CancelBy != "":
		return Action{Kind: ActFinish, State: ledger.Cancelled, Reason: (&cancelError{by: t.CancelBy}).Error()}
	case t.Attempt > t.MaxAttempts:
		return Action{Kind: ActFinish, State: ledger.Failed, Reason: fmt.Sprintf("gave up after %d attempts%s", t.MaxAttempts, last)}
	case t.Type == ledger.Restore && elapsed(t.StartBy, f.Now) && t.State == ledger.Planned:
		return Action{Kind: ActFinish, State: ledger.Failed, Reason: errExpired.Error() + last}
	case t.Type == ledger.Restore && elapsed(t.StartBy, f.Now):
		return Action{Kind: ActFinish, State: ledger.Reverted, Reason: "the attempt ended with its node, and the time in which the restore may begin is over"}
	case t.OnFailure != "rerun" && t.State != ledger.Planned:
		return Action{Kind: ActFinish, State: ledger.Reverted, Reason: "the attempt ended with its node and was reverted"}
	}
	return Action{Kind: ActRerun, Reason: reason}
}
