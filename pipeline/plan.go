package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// RequestError says what is wrong with a request. Nothing was planned.
type RequestError struct {
	Field   string // name of the request's field, as in JSON
	Problem string
	Hint    string // what would be right; may be empty
	Err     error  // ledger.ErrNotFound, ErrFinal and the like; may be nil
}

// Error implements error.
func (e *RequestError) Error() string { return e.Field + ": " + e.Problem }

// Unwrap returns Err.
func (e *RequestError) Unwrap() error { return e.Err }

// PlannerConfig configures a Planner.
type PlannerConfig struct {
	Ledger  ledger.Ledger // required
	Catalog Catalog       // names that a request may use
	// Require is how many storages must hold a backup: all (also ""), any, or a number; a request may say otherwise.
	Require string
	// MaxAttempts of each task; at least 1, default 3.
	MaxAttempts int
	// OnFailure is rerun (default) or revert: what follows a reverted attempt.
	OnFailure string
	// DeleteDelay is how long a delete waits after it was asked for, and can be undone; 0 = not at all.
	DeleteDelay time.Duration
	// Labels are what a node must carry to touch a database or scratch server, by configured name; a request may ask for more.
	Labels map[string][]string
	// MaxDumps is how many backups of databases on one server are made at the same time, by database; 0 = any number.
	MaxDumps map[string]int
	// StartWithin is how long after it was asked for a restore may still begin; default 15 min.
	StartWithin time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Planner checks requests and plans tasks. It only writes rows; a Worker, here or elsewhere, does the work. Safe for
// concurrent use.
type Planner struct {
	cfg     PlannerConfig
	renewed atomic.Pointer[PlannerConfig] // nil: cfg is still right
}

// conf is what there is now.
func (p *Planner) conf() *PlannerConfig {
	if c := p.renewed.Load(); c != nil {
		return c
	}
	return &p.cfg
}

// Renew has the planner know another catalog, labels and numbers of dumps, by database, from now on. It keeps what it is
// given.
func (p *Planner) Renew(c Catalog, labels map[string][]string, maxDumps map[string]int) {
	next := p.cfg
	next.Catalog, next.Labels, next.MaxDumps = c, labels, maxDumps
	p.renewed.Store(&next)
}

// NewPlanner checks cfg.
func NewPlanner(cfg PlannerConfig) (*Planner, error) {
	if cfg.OnFailure == "" {
		cfg.OnFailure = "rerun"
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = 3
	}
	switch {
	case cfg.Ledger == nil:
		return nil, errors.New("pipeline planner: Ledger is missing")
	case cfg.MaxAttempts < 1:
		return nil, fmt.Errorf("pipeline planner: MaxAttempts is %d: need at least 1", cfg.MaxAttempts)
	case cfg.OnFailure != "rerun" && cfg.OnFailure != "revert":
		return nil, fmt.Errorf("pipeline planner: OnFailure is %q: want rerun or revert", cfg.OnFailure)
	}
	orDefault(&cfg.StartWithin, 15*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Planner{cfg: cfg}, nil
}

// BackupRequest asks for a backup.
type BackupRequest struct {
	Database string   // configured name
	Storages []string // configured names; empty: all
	Require  string   // empty: the planner's
	Internal bool     // not asked for by a person
	Dump     source.DumpOptions
	ID       string   // of the task; empty: a new one
	Schedule string   // that asks for it; empty: none
	Labels   []string // that the node must carry, beside those that the database always needs
}

// RestoreRequest asks for a restore.
type RestoreRequest struct {
	Backup   string   // id; empty: the newest completed one of Database
	Database string   // configured name whose server receives it; empty: the backup's
	Target   string   // name of the database to make; empty: the name that was dumped
	Replace  bool     // an existing target may be replaced
	Storage  string   // configured name of the storage to read; empty: any that holds it
	Foreign  bool     // also a backup that this group has not made, or not signed
	Labels   []string // that the node must carry, beside those that the database always needs
	Choices  source.RestoreChoices
}

// PlanBackup plans a create task with a backup id of its own. *RequestError when the request is wrong;
// ledger.ErrUnavailable when the outcome is unknown.
func (p *Planner) PlanBackup(ctx context.Context, r BackupRequest) (ledger.Task, error) {
	if err := p.database("database", r.Database); err != nil {
		return ledger.Task{}, err
	}
	storages, err := p.storages(r.Storages)
	if err != nil {
		return ledger.Task{}, err
	}
	require := r.Require
	if require == "" {
		require = p.cfg.Require
	}
	if _, err := Needed(require, len(storages)); err != nil {
		return ledger.Task{}, &RequestError{Field: "require", Problem: err.Error(), Hint: "say all, any, or a number of storages"}
	}
	if err := jobs(r.Dump.Jobs); err != nil {
		return ledger.Task{}, err
	}
	if c, ok := p.conf().Catalog.Sources[r.Database].(source.Checker); ok {
		if err := c.CheckOptions(r.Dump); err != nil {
			return ledger.Task{}, &RequestError{Field: "options", Problem: err.Error(), Hint: "see what can be chosen of a database, and leave out what does not fit"}
		}
	}
	now := p.cfg.Now().UTC()
	t := p.task(ledger.Create, now)
	t.Database, t.Storages, t.Require, t.Backup, t.Dump = r.Database, storages, require, NewID(now), r.Dump
	t.Flight, t.Schedule = "create/"+r.Database, r.Schedule
	if at, ok := p.conf().Catalog.Sources[r.Database].(source.Placed); ok && p.conf().MaxDumps[r.Database] > 0 {
		t.Server, t.MaxDumps = at.Server(), p.conf().MaxDumps[r.Database]
	}
	if t.Needs, err = p.needs(ctx, r.Database, r.Labels); err != nil {
		return ledger.Task{}, err
	}
	if r.ID != "" {
		t.ID = r.ID
	}
	if r.Internal {
		t.RunType = ledger.Internal
	}
	return t, p.plan(ctx, t)
}

// needs are what a node must have to dump a database: its labels, and programs that did it the last time.
func (p *Planner) needs(ctx context.Context, database string, labels []string) (ledger.Needs, error) {
	n, err := p.labelled(database, labels)
	if err != nil {
		return n, err
	}
	last, err := p.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: database, State: ledger.BackupCompleted, Limit: 1})
	if err == nil && len(last) > 0 {
		n.Client = source.MajorOf(last[0].Info.ServerVersion)
	}
	return n, nil // without an answer the node that begins finds out
}

// labelled are the labels that a database or scratch server needs, with more.
func (p *Planner) labelled(server string, more []string) (ledger.Needs, error) {
	n := ledger.Needs{Labels: slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.conf().Labels[server], more))))}
	if err := n.Check(); err != nil {
		return n, &RequestError{Field: "labels", Problem: err.Error(), Hint: "see labels in the configurations of the nodes"}
	}
	return n, nil
}

// Cancel asks for the end of a task, whoever runs it; the answer does not wait for it. Idempotent. A task that has
// ended is a *RequestError of ledger.ErrFinal.
func (p *Planner) Cancel(ctx context.Context, id, by string) error {
	if t, err := p.cfg.Ledger.Task(ctx, id); err == nil && t.Type == ledger.Delete && p.tooLate(ctx, t.Backup) {
		return &RequestError{Field: "task", Problem: fmt.Sprintf("backup %s is being deleted: that is not taken back any more", t.Backup), Err: ledger.ErrFinal}
	}
	err := p.cfg.Ledger.RequestCancel(ctx, id, by)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return &RequestError{Field: "task", Problem: fmt.Sprintf("there is no task %q", id), Hint: "list the tasks to find its id", Err: err}
	case errors.Is(err, ledger.ErrFinal):
		return &RequestError{Field: "task", Problem: fmt.Sprintf("task %s has ended", id), Err: err}
	}
	return err
}

func (p *Planner) task(kind ledger.TaskType, now time.Time) ledger.Task {
	return ledger.Task{
		ID: NewID(now), Type: kind, RunType: ledger.User, State: ledger.Planned, Created: now,
		MaxAttempts: p.cfg.MaxAttempts, OnFailure: p.cfg.OnFailure,
	}
}

func (p *Planner) plan(ctx context.Context, t ledger.Task) error {
	if err := p.cfg.Ledger.Plan(ctx, t); err != nil {
		return fmt.Errorf("plan %s of %s: %w", t.Type, t.Database, err)
	}
	return nil
}

func (p *Planner) database(field, name string) error {
	cat := p.conf().Catalog
	if _, ok := cat.Sources[name]; ok {
		return nil
	}
	if _, ok := cat.Scratch[name]; ok {
		known := strings.Join(slices.Sorted(maps.Keys(cat.Sources)), ", ")
		return &RequestError{Field: field, Problem: fmt.Sprintf("%q is a scratch server, which backups are tried out on: none is made of it, and none restored there for good", name),
			Hint: "name one of: " + known + "; to try a backup out there, verify it with that scratch server"}
	}
	return unknown(field, "database", name, cat.Sources)
}

// storages resolves the chosen names; none means all.
func (p *Planner) storages(names []string) ([]string, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(p.conf().Catalog.Storages))
	}
	if len(names) == 0 {
		return nil, &RequestError{Field: "storages", Problem: "no storage is configured", Hint: "add one under storages in the configuration"}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if _, ok := p.conf().Catalog.Storages[name]; !ok {
			return nil, unknown("storages", "storage", name, p.conf().Catalog.Storages)
		}
		if seen[name] {
			return nil, &RequestError{Field: "storages", Problem: fmt.Sprintf("storage %q is named twice", name), Hint: "name each once"}
		}
		seen[name] = true
	}
	return slices.Clone(names), nil
}

// backup finds what a restore request means.
func (p *Planner) backup(ctx context.Context, r RestoreRequest) (ledger.Backup, error) {
	if r.Backup == "" && r.Database == "" {
		return ledger.Backup{}, &RequestError{Field: "backup", Problem: "neither a backup nor a database is named", Hint: "give the id of a backup"}
	}
	if r.Backup == "" {
		list, err := p.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: r.Database, State: ledger.BackupCompleted})
		if err != nil {
			return ledger.Backup{}, fmt.Errorf("find the newest backup of %s: %w", r.Database, err)
		}
		if len(list) == 0 {
			return ledger.Backup{}, &RequestError{Field: "database", Problem: fmt.Sprintf("there is no completed backup of %q", r.Database), Hint: "list the backups to see what there is", Err: ledger.ErrNotFound}
		}
		for _, b := range list {
			if b.Good() {
				return b, nil
			}
		}
		return list[0], &RequestError{Field: "database", Problem: fmt.Sprintf("every backup of %q is suspect, or holds chosen parts only", r.Database), Hint: "look at them, and name the one that you want"}
	}
	b, err := p.cfg.Ledger.Backup(ctx, r.Backup)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return b, &RequestError{Field: "backup", Problem: fmt.Sprintf("there is no backup %q", r.Backup), Hint: "list the backups to find its id", Err: err}
	case err != nil:
		return b, fmt.Errorf("read backup %s: %w", r.Backup, err)
	case b.State != ledger.BackupCompleted:
		return b, &RequestError{Field: "backup", Problem: fmt.Sprintf("backup %s is %s", b.ID, b.State), Hint: "only completed backups can be restored"}
	}
	return b, nil
}

// jobs checks a number of streams or sessions.
func jobs(n int) error {
	if n < 0 || n > source.MaxStreams {
		return &RequestError{Field: "jobs", Problem: fmt.Sprintf("%d jobs", n), Hint: fmt.Sprintf("say 0 to %d", source.MaxStreams)}
	}
	return nil
}

// holds tells whether a storage is known and has a copy.
func (p *Planner) holds(b ledger.Backup, name string) error {
	if _, ok := p.conf().Catalog.Storages[name]; !ok {
		return unknown("storage", "storage", name, p.conf().Catalog.Storages)
	}
	var have []string
	for _, c := range b.Copies {
		if c.State == "present" {
			have = append(have, c.Storage)
		}
	}
	if !slices.Contains(have, name) {
		return &RequestError{Field: "storage", Problem: fmt.Sprintf("storage %q has no copy of backup %s", name, b.ID), Hint: "copies are in: " + strings.Join(have, ", ")}
	}
	return nil
}

// unknown is the error for a name that is not configured, with those that are.
func unknown[T any](field, what, name string, known map[string]T) *RequestError {
	hint := "none is configured"
	if len(known) > 0 {
		hint = "known: " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	}
	return &RequestError{Field: field, Problem: fmt.Sprintf("unknown %s %q", what, name), Hint: hint, Err: ledger.ErrNotFound}
}
