package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Waits between tries to remove what a storage still holds.
const (
	removeAgainMin = 5 * time.Second
	removeAgainMax = 5 * time.Minute
)

// delete runs the delete chain: the entry says deleting, guarded and checked where it takes effect (ledger.MayBegin), then
// the manifests go everywhere, then the data, then the entry is gone. From the first write on nothing brings the backup
// back (PROTOCOL.md 29): a cancel is not heard any more, and a storage that is away is waited for.
func (a *attempt) delete(ctx, keep context.Context) error {
	t := a.row()
	entry, err := a.cfg.Ledger.Backup(ctx, t.Backup)
	gone := errors.Is(err, ledger.ErrNotFound) || err == nil && entry.State == ledger.BackupGone
	switch {
	case gone:
		return a.save(keep, nil, func(t *ledger.Task) { t.State = ledger.Completed })
	case err != nil:
		return fmt.Errorf("read backup %s: %w", t.Backup, err)
	}
	if entry.State == ledger.BackupCompleted {
		switch lock, err := a.cfg.Catalog.locked(ctx, entry, a.cfg.Now()); {
		case err != nil:
			return fmt.Errorf("ask whether backup %s is locked: %w: %w", t.Backup, ErrUnavailable, err)
		case lock != nil:
			return lock
		}
	}
	entry.State = ledger.BackupDeleting
	if err := a.mark(keep, t, entry); err != nil { // a cancel that is there is seen by it; one that comes meanwhile is too late
		return err
	}
	work, end := context.WithCancelCause(keep)
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
			end(cause)
		}
	})()
	if err := a.removeEverywhere(work, entry); err != nil {
		return err
	}
	entry.State = ledger.BackupGone
	return a.save(keep, &entry, func(t *ledger.Task) { t.State, t.Error = ledger.Completed, "" })
}

// mark makes the entry say deleting. What retention has planned, retention is asked again.
func (a *attempt) mark(ctx context.Context, t ledger.Task, entry ledger.Backup) error {
	var confirm func([]ledger.Backup) error
	if policy, ok := a.cfg.Retention[entry.Database]; t.RunType == ledger.Internal {
		confirm = func(all []ledger.Backup) error {
			if !ok {
				return fmt.Errorf("database %s has no retention policy any more", entry.Database)
			}
			return stillToGo(policy, all, entry.ID, a.cfg.Now())
		}
	}
	return a.saveChange(ctx, ledger.Change{Backup: &entry, Confirm: confirm}, func(t *ledger.Task) { t.State, t.Error, t.Hint = ledger.Deleting, "", "" })
}

// stillToGo is retention's word on one backup, with all that are there now. What was confirmed before needs no second
// confirmation.
func stillToGo(p retention.Policy, all []ledger.Backup, id string, now time.Time) error {
	plan := retention.Decide(p, retention.Input{Backups: RetentionView(all, nil), Now: now, Confirmed: true})
	for _, d := range plan.Decisions {
		if d.ID == id && d.Action != retention.Remove {
			return fmt.Errorf("retention: %s", d.Reason)
		}
	}
	return nil
}

// removeEverywhere removes a backup from all storages of the task, again and again while one is away.
func (a *attempt) removeEverywhere(ctx context.Context, entry ledger.Backup) error {
	for wait := removeAgainMin; ; wait = min(2*wait, removeAgainMax) {
		err := a.removeOnce(ctx, entry)
		if err == nil || errors.Is(err, storage.ErrPermanent) {
			return err
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		a.log.WarnContext(ctx, "backup not removed everywhere yet", "backup", entry.ID, "err", err)
		if err := a.save(ctx, nil, func(t *ledger.Task) { t.Error = sentence(err) }); err != nil {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (a *attempt) removeOnce(ctx context.Context, entry ledger.Backup) error {
	for _, remove := range []func(context.Context, storage.Storage, string, uint64) error{removeManifests, Remove} {
		var errs []error
		for _, name := range a.row().Storages {
			st, step := a.cfg.Catalog.Storages[name], remove
			if st == nil {
				errs = append(errs, fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable))
				continue
			}
			if storage.Keeps(ctx, st) {
				step = a.voidInstead
			}
			if err := step(ctx, st, entry.ID, entry.Token); err != nil {
				errs = append(errs, &storageError{name: name, err: err})
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err // no data goes while a manifest is left that tells of it
		}
	}
	return nil
}

// voidInstead is how a backup is removed from where nothing can be removed: nobody restores it any more.
func (a *attempt) voidInstead(ctx context.Context, st storage.Storage, backup string, token uint64) error {
	return voidManifests(ctx, st, backup, token, func(t uint64) Manifest {
		return a.cfg.Signer.sign(Tombstone(backup, t, "deleted", a.cfg.Now().UTC()))
	})
}

// RetentionView is what retention sees of a database's entries; used are the ids of those that tasks read.
func RetentionView(entries []ledger.Backup, used map[string]bool) []retention.Backup {
	var out []retention.Backup
	for _, b := range entries {
		if b.State != ledger.BackupCompleted {
			continue // unfinished ones are their task's, deleting ones are on their way
		}
		at := b.AsOf
		if at.IsZero() {
			at = b.Completed
		}
		out = append(out, retention.Backup{
			ID: b.ID, AsOf: at, Good: true, Verified: !b.Verified.IsZero(), Partial: b.Info.Options.Partial() != "", Suspect: len(b.Suspect) > 0, Accepted: b.Mark.Accepted,
			Pinned: b.Mark.Pinned, InUse: used[b.ID],
		})
	}
	return out
}
