package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// DeleteRequest asks for a backup to be deleted from all its storages.
type DeleteRequest struct {
	Backup   string
	Now      bool // without the delay in which it can be undone
	Internal bool // retention has decided it
}

// PlanDelete plans a delete task, which waits for the planner's DeleteDelay; one that is planned already is returned. It
// refuses what would be refused now (pinned, read, locked by a storage, the last good one): *RequestError of ledger.ErrRefused; whether it still
// may go is decided again when it goes.
func (p *Planner) PlanDelete(ctx context.Context, r DeleteRequest) (ledger.Task, error) {
	b, err := p.entry(ctx, r.Backup)
	if err != nil {
		return ledger.Task{}, err
	}
	active, err := p.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return ledger.Task{}, fmt.Errorf("list tasks: %w", err)
	}
	for _, t := range active {
		if t.Type == ledger.Delete && t.Backup == b.ID && t.CancelBy == "" {
			return t, nil
		}
	}
	switch b.State {
	case ledger.BackupCreating:
		return ledger.Task{}, &RequestError{Field: "backup", Problem: fmt.Sprintf("backup %s is being made", b.ID), Hint: "cancel its task", Err: ledger.ErrRefused}
	case ledger.BackupCompleted:
		all, err := p.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: b.Database})
		if err != nil {
			return ledger.Task{}, fmt.Errorf("list backups: %w", err)
		}
		if err := ledger.Deletable(b, ledger.Beside{Tasks: active, Backups: all}); err != nil {
			hint := "make another backup first"
			if b.Mark.Pinned {
				hint = "unpin it first"
			} else if slices.ContainsFunc(active, func(t ledger.Task) bool { return t.Backup == b.ID && t.Reads() }) {
				hint = "wait for that task, or cancel it"
			}
			return ledger.Task{}, &RequestError{Field: "backup", Problem: err.Error(), Hint: hint, Err: ledger.ErrRefused}
		}
	}
	storages, err := p.holders(b)
	if err != nil {
		return ledger.Task{}, err
	}
	now := p.cfg.Now().UTC()
	goes := now
	if !r.Now {
		goes = now.Add(p.cfg.DeleteDelay)
	}
	if b.State == ledger.BackupCompleted { // a storage that cannot be asked now is asked when it goes
		if lock, err := p.conf().Catalog.locked(ctx, b, goes); err == nil && lock != nil {
			return ledger.Task{}, &RequestError{Field: "backup", Problem: lock.Error(), Hint: lock.Hint(), Err: ledger.ErrRefused}
		}
	}
	t := p.task(ledger.Delete, now)
	t.Backup, t.Database, t.Storages, t.Flight, t.OnFailure = b.ID, b.Database, storages, "backup/"+b.ID, "rerun"
	if !r.Now && b.State == ledger.BackupCompleted {
		t.NotBefore = goes
	}
	if r.Internal {
		t.RunType = ledger.Internal
	}
	return t, p.plan(ctx, t)
}

// Undelete takes the planned deletes of a backup back. Once its entry says deleting it is too late: *RequestError of
// ledger.ErrFinal.
func (p *Planner) Undelete(ctx context.Context, id, by string) (ledger.Backup, error) {
	if _, err := p.entry(ctx, id); err != nil {
		return ledger.Backup{}, err
	}
	list, err := p.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true, Type: ledger.Delete, Backup: id})
	if err != nil {
		return ledger.Backup{}, fmt.Errorf("list deletes: %w", err)
	}
	for _, t := range list {
		if err := p.cfg.Ledger.RequestCancel(ctx, t.ID, by); err != nil && !errors.Is(err, ledger.ErrFinal) {
			return ledger.Backup{}, fmt.Errorf("take back task %s: %w", t.ID, err)
		}
	}
	if p.tooLate(ctx, id) { // read after the requests: from then on no delete begins
		return ledger.Backup{}, &RequestError{Field: "backup", Problem: fmt.Sprintf("backup %s is being deleted: that is not taken back any more", id), Err: ledger.ErrFinal}
	}
	b, err := p.entry(ctx, id)
	if err == nil && len(list) == 0 {
		err = &RequestError{Field: "backup", Problem: fmt.Sprintf("nobody is about to delete backup %s", id), Hint: "deletes that wait are among the tasks that have not ended", Err: ledger.ErrNotFound}
	}
	return b, err
}

// tooLate tells whether a backup's entry says deleting or gone.
func (p *Planner) tooLate(ctx context.Context, id string) bool {
	begun, err := deleteBegun(ctx, p.cfg.Ledger, id)
	return err == nil && begun
}

// deleteBegun tells whether a backup's entry says deleting or gone: from then on no cancel of the delete is heard
// (PROTOCOL.md 29). The state of the task says less: one that runs again is planned meanwhile.
func deleteBegun(ctx context.Context, l ledger.Ledger, backup string) (bool, error) {
	b, err := l.Backup(ctx, backup)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return b.State == ledger.BackupDeleting || b.State == ledger.BackupGone, err
}

// Mark changes what people say of a backup.
func (p *Planner) Mark(ctx context.Context, id string, edit func(ledger.Mark) ledger.Mark) (ledger.Backup, error) {
	at := p.cfg.Now().UTC()
	b, err := p.cfg.Ledger.EditBackup(ctx, id, func(m ledger.Mark) ledger.Mark {
		m = edit(m)
		m.At = at
		return m
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return b, noBackup(id, err)
	case errors.Is(err, ledger.ErrFinal):
		return b, &RequestError{Field: "backup", Problem: fmt.Sprintf("backup %s is not one that is kept", id), Hint: "pins, notes and labels are for completed backups that are not being deleted", Err: err}
	}
	return b, err
}

// CheckRequest asks for a backup to be verified.
type CheckRequest struct {
	Backup   string   // id; empty: the newest completed one of Database
	Database string   // configured name; with Backup it must be its own
	Storages []string // configured names of copies to read back; empty: all that there should be
	Scratch  string   // configured name of the scratch server to restore it into; empty: only bytes are compared
	Internal bool
	ID       string // of the task; empty: a new one
	Schedule string // that asks for it; empty: none
}

// PlanVerify plans a verify task.
func (p *Planner) PlanVerify(ctx context.Context, r CheckRequest) (ledger.Task, error) {
	b, err := p.backup(ctx, RestoreRequest{Backup: r.Backup, Database: r.Database})
	if err != nil {
		return ledger.Task{}, err
	}
	if r.Scratch != "" {
		if _, ok := p.conf().Catalog.Scratch[r.Scratch]; !ok {
			return ledger.Task{}, unknown("scratch", "scratch server", r.Scratch, p.conf().Catalog.Scratch)
		}
	}
	names, err := p.holders(b)
	if err == nil && len(r.Storages) > 0 {
		names, err = p.among(b, names, r.Storages)
	}
	if err != nil {
		return ledger.Task{}, err
	}
	t := p.keepTask(ledger.Verify, b, r.ID, r.Internal)
	t.Storages, t.Scratch, t.Schedule = names, r.Scratch, r.Schedule
	if r.Scratch != "" {
		if t.Needs, err = p.labelled(r.Scratch, nil); err != nil {
			return ledger.Task{}, err
		}
		t.Needs.Client = b.Info.ClientMajor()
	}
	return t, p.plan(ctx, t)
}

// CopyRequest asks for copies of a backup to be made or mended.
type CopyRequest struct {
	Backup   string
	Storages []string // configured names; empty: those whose copies are missing or corrupt
	Internal bool
	ID       string // of the task; empty: a new one
}

// PlanReplicate plans a replicate task.
func (p *Planner) PlanReplicate(ctx context.Context, r CopyRequest) (ledger.Task, error) {
	b, err := p.backup(ctx, RestoreRequest{Backup: r.Backup, Database: "-"})
	if err != nil {
		return ledger.Task{}, err
	}
	names := r.Storages
	if len(names) == 0 {
		names = Lacking(b)
	} else if names, err = p.storages(names); err != nil {
		return ledger.Task{}, err
	}
	whole := slices.ContainsFunc(b.Copies, func(c ledger.Copy) bool { return c.State == ledger.CopyPresent && !slices.Contains(names, c.Storage) })
	switch {
	case len(names) == 0:
		return ledger.Task{}, &RequestError{Field: "backup", Problem: fmt.Sprintf("every copy of backup %s is whole", b.ID), Hint: "name a storage that shall get one too"}
	case !whole:
		return ledger.Task{}, &RequestError{Field: "backup", Problem: fmt.Sprintf("backup %s has no whole copy to copy from", b.ID), Hint: "verify it to have its copies looked at again, or make another backup"}
	}
	t := p.keepTask(ledger.Replicate, b, r.ID, r.Internal)
	t.Storages = names
	return t, p.plan(ctx, t)
}

// Lacking are the storages in which a backup should be and is not whole.
func Lacking(b ledger.Backup) []string {
	var names []string
	for _, c := range b.Copies {
		if c.State != ledger.CopyPresent {
			names = append(names, c.Storage)
		}
	}
	return names
}

func (p *Planner) keepTask(kind ledger.TaskType, b ledger.Backup, id string, internal bool) ledger.Task {
	t := p.task(kind, p.cfg.Now().UTC())
	t.Backup, t.Database, t.Flight = b.ID, b.Database, "backup/"+b.ID
	if id != "" {
		t.ID = id
	}
	if internal {
		t.RunType = ledger.Internal
	}
	return t
}

func (p *Planner) entry(ctx context.Context, id string) (ledger.Backup, error) {
	b, err := p.cfg.Ledger.Backup(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound), err == nil && b.State == ledger.BackupGone:
		return b, noBackup(id, ledger.ErrNotFound)
	case err != nil:
		return b, fmt.Errorf("read backup %s: %w", id, err)
	}
	return b, nil
}

func noBackup(id string, err error) error {
	return &RequestError{Field: "backup", Problem: fmt.Sprintf("there is no backup %q", id), Hint: "list the backups to find its id", Err: err}
}

// holders are the storages in which copies of a backup are or should be; each must be configured.
func (p *Planner) holders(b ledger.Backup) ([]string, error) {
	var names []string
	for _, c := range b.Copies {
		if _, ok := p.conf().Catalog.Storages[c.Storage]; !ok {
			err := unknown("backup", "storage", c.Storage, p.conf().Catalog.Storages)
			err.Problem = fmt.Sprintf("backup %s has a copy in storage %q, which is not configured here", b.ID, c.Storage)
			return nil, err
		}
		names = append(names, c.Storage)
	}
	return names, nil
}

// among are wanted ones of the storages of a backup.
func (p *Planner) among(b ledger.Backup, all, wanted []string) ([]string, error) {
	for _, name := range wanted {
		if !slices.Contains(all, name) {
			return nil, &RequestError{Field: "storages", Problem: fmt.Sprintf("storage %q has no copy of backup %s", name, b.ID), Hint: "copies are in: " + strings.Join(all, ", ")}
		}
	}
	return slices.Clone(wanted), nil
}
