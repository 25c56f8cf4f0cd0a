package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// PlanRestore plans a restore task. Errors as of PlanBackup.
func (p *Planner) PlanRestore(ctx context.Context, r RestoreRequest) (ledger.Task, error) {
	t, _, err := p.restoreTask(ctx, r)
	if err != nil {
		return ledger.Task{}, err
	}
	return t, p.plan(ctx, t)
}

// RestorePlan is what a restore would do.
type RestorePlan struct {
	Task    ledger.Task // as PlanRestore would write it
	Backup  ledger.Backup
	Storage string // that it would read from
	Preview source.Preview
}

// PreviewRestore makes the checks of PlanRestore and those with which the restore would begin on the server, and tells what
// it would meet. Nothing is planned or changed. It blocks on the storages and the server.
func (p *Planner) PreviewRestore(ctx context.Context, r RestoreRequest) (RestorePlan, error) {
	t, b, err := p.restoreTask(ctx, r)
	if err != nil {
		return RestorePlan{}, err
	}
	catalog := p.conf().Catalog
	if t.Foreign {
		catalog.Trust = nil
	}
	from, err := pick(ctx, catalog, b.ID, t.Storages)
	if err != nil {
		return RestorePlan{}, err
	}
	plan := RestorePlan{Task: t, Backup: b, Storage: from.name}
	src, ok := p.conf().Catalog.Sources[t.Database].(source.Previewer)
	if !ok {
		return plan, nil // nothing is known before it is tried
	}
	plan.Preview, err = src.Preview(ctx, source.RestoreOptions{Target: t.Target, Replace: t.Replace, Info: from.manifest.Source, RestoreChoices: t.Choices})
	return plan, err
}

// Undo takes the swap of a completed restore back: the database that it replaced gets its name again, and what it made is
// kept for keep under the other's. It is done when it returns.
func (p *Planner) Undo(ctx context.Context, id string, keep time.Duration) error {
	t, err := p.cfg.Ledger.Task(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return &RequestError{Field: "task", Problem: fmt.Sprintf("there is no task %q", id), Hint: "list the tasks to find its id", Err: err}
	case err != nil:
		return fmt.Errorf("read task %s: %w", id, err)
	case t.Type != ledger.Restore || t.State != ledger.Completed:
		return &RequestError{Field: "task", Problem: fmt.Sprintf("task %s is no completed restore", id), Hint: "only a restore that replaced a database can be undone"}
	}
	src, ok := p.conf().Catalog.Sources[t.Database].(source.Undoer)
	if !ok {
		return &RequestError{Field: "task", Problem: fmt.Sprintf("restores of database %q cannot be undone", t.Database), Hint: "restore an older backup instead"}
	}
	return src.Undo(ctx, source.Attempt{Task: t.ID, Token: t.Token}, t.Prepared, keep)
}

// inPlace refuses what cannot be done in one transaction of the target.
func inPlace(i source.Info, r RestoreRequest) error {
	switch {
	case i.Format == source.FormatPlain:
		return &RequestError{Field: "in_place", Problem: "a plain backup can only be restored into a new database", Hint: "leave in_place out"}
	case r.Choices.Jobs > 1:
		return &RequestError{Field: "jobs", Problem: "a restore in place is one transaction, which one session makes", Hint: "leave jobs out, or restore into a new database"}
	case i.Streams > 0 && r.Replace:
		return &RequestError{Field: "replace", Problem: "a backup of several streams cannot replace what is in a database",
			Hint: "leave in_place out: a new database replaces the whole; or restore in place into an empty database"}
	}
	return nil
}

// restoreTask checks a request and makes the task of it.
func (p *Planner) restoreTask(ctx context.Context, r RestoreRequest) (ledger.Task, ledger.Backup, error) {
	b, err := p.backup(ctx, r)
	if err != nil {
		return ledger.Task{}, b, err
	}
	if err := jobs(r.Choices.Jobs); err != nil {
		return ledger.Task{}, b, err
	}
	if r.Choices.InPlace {
		if err := inPlace(b.Info, r); err != nil {
			return ledger.Task{}, b, err
		}
	}
	now := p.cfg.Now().UTC()
	t := p.task(ledger.Restore, now)
	t.Backup, t.Database, t.Target, t.Replace, t.Choices = b.ID, r.Database, r.Target, r.Replace, r.Choices
	t.Foreign, t.StartBy = r.Foreign, now.Add(p.cfg.StartWithin)
	if t.Database == "" {
		t.Database = b.Database
	}
	if t.Target == "" {
		t.Target = b.Info.Database
	}
	t.Of, t.Flight = b.Database, "restore/"+t.Database+"/"+t.Target
	if err := p.database("database", t.Database); err != nil {
		return ledger.Task{}, b, err
	}
	if t.Target == "" || len(t.Target) > 63 || strings.ContainsRune(t.Target, 0) {
		return ledger.Task{}, b, &RequestError{Field: "target", Problem: fmt.Sprintf("%q cannot name a database", t.Target), Hint: "give a name of 1 to 63 bytes"}
	}
	if t.Needs, err = p.labelled(t.Database, r.Labels); err != nil {
		return ledger.Task{}, b, err
	}
	t.Needs.Client = b.Info.ClientMajor()
	if r.Storage != "" {
		if err := p.holds(b, r.Storage); err != nil {
			return ledger.Task{}, b, err
		}
		t.Storages = []string{r.Storage}
	}
	return t, b, nil
}
