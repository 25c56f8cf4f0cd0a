package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// PruneComponent is the component that looks after what is kept; its items are the databases.
const PruneComponent = "prune"

// databaseItems is the type of its items.
const databaseItems = "database"

// confirmedFor is how long an operator's word counts that more than a policy's share may go.
const confirmedFor = time.Hour

// mendAgain is how long after a look copies that still are not whole are looked at again.
const mendAgain = time.Hour

// Pruner looks at a database after each new backup of it, and whenever copies are not whole: it plans the mending of copies,
// and the deletion of what retention lets go. What it plans is done by the components replicate and delete, and checked
// again there. It never decides on the back of a listing that failed, in the ledger or in a storage.
type Pruner struct {
	planner  *Planner
	items    component.Items
	policies atomic.Pointer[map[string]retention.Policy]
	noted    notedItems
	clock    Clock
}

// Clock is the time that retention is decided by.
type Clock interface {
	Now() time.Time
	// Doubt names a node whose clock is off; nil when they agree. Nothing is pruned as long as there is one.
	Doubt() error
}

// NewPruner checks the policies, by database; one without a policy keeps everything.
func NewPruner(p *Planner, items component.Items, policies map[string]retention.Policy, clock Clock) (*Pruner, error) {
	made := &Pruner{planner: p, items: items, clock: clock}
	return made, made.Renew(policies)
}

// Renew has other policies count from now on, by database; nothing is changed when one of them is none. It keeps what it is
// given.
func (p *Pruner) Renew(policies map[string]retention.Policy) error {
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		if err := policies[name].Check(); err != nil {
			return fmt.Errorf("retention of %s: %w", name, err)
		}
	}
	p.policies.Store(&policies)
	return nil
}

// policy is that of a database.
func (p *Pruner) policy(name string) (retention.Policy, bool) {
	policy, ok := (*p.policies.Load())[name]
	return policy, ok
}

func databaseItem(name string) string { return databaseItems + ":" + name }

func databaseOf(it component.Item) string {
	if it.Type != databaseItems {
		return ""
	}
	return strings.TrimPrefix(it.ID, databaseItems+":")
}

// Component fills in what is the pruner's of the configuration of its component; the caller adds the group's side.
func (p *Pruner) Component() component.Config {
	return component.Config{
		Component: PruneComponent, Trigger: component.Trigger{Types: []string{databaseItems}, Old: []string{PruneComponent}},
		Peek: true, Every: time.Minute, Limit: 30 * time.Minute,
		Able:   func(it component.Item) bool { _, ok := p.planner.conf().Catalog.Sources[databaseOf(it)]; return ok },
		Worker: component.Func(p.work), Index: databases{p.items, p}, Store: databases{p.items, p},
		Fairness: component.Fairness{BackOff: 5 * time.Minute, MaxBackOff: 6 * time.Hour, QuarantineAfter: -1},
		Now:      p.clock.Now,
	}
}

// Begin makes the items of the databases that nobody knew yet. Called before the component starts, and whenever the
// planner's catalog was renewed.
func (p *Pruner) Begin(ctx context.Context) error {
	for name := range p.planner.conf().Catalog.Sources {
		if err := p.noted.put(ctx, p.items, component.Item{Type: databaseItems, ID: databaseItem(name)}); err != nil {
			return fmt.Errorf("note database %s: %w", name, err)
		}
	}
	return nil
}

// databases are the items with the time of their last change, which is that of the newest change of a backup.
type databases struct {
	component.Items
	p *Pruner
}

// Query implements component.Index.
func (d databases) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	all, err := d.All(ctx, q.Component, databaseItems)
	if err != nil {
		return nil, err
	}
	entries, err := d.p.planner.cfg.Ledger.Backups(ctx, ledger.BackupFilter{})
	if err != nil {
		return nil, err
	}
	for i, it := range all {
		all[i] = seen(it, entries, q.At)
	}
	return component.Answer(all, q), nil
}

// Begin implements component.Store.
func (d databases) Begin(ctx context.Context, c component.Claim, at time.Time) (component.Item, error) {
	it, err := d.Items.Begin(ctx, c, at)
	if err != nil {
		return it, err
	}
	entries, err := d.p.planner.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: databaseOf(it)})
	it.ChangedAt = changedAt(it, entries, at)
	it.Record.NotBefore = time.Time{} // Query has judged that: the attempt has begun by now
	return it, err
}

// seen is an item beside the backups of its database. What has changed since the last look is looked at now, however often
// that failed: somebody may just have said what it waited for.
func seen(it component.Item, entries []ledger.Backup, now time.Time) component.Item {
	it.ChangedAt = changedAt(it, entries, now)
	if it.ChangedAt.After(it.Record.LastAttempt) {
		it.Record.NotBefore = time.Time{}
	}
	return it
}

// changedAt is when something of a database's backups changed last; an hour after the last look when copies are not whole.
func changedAt(it component.Item, entries []ledger.Backup, now time.Time) time.Time {
	at := time.Time{}
	lacking := false
	for _, b := range entries {
		if b.Database != databaseOf(it) || b.State != ledger.BackupCompleted {
			continue
		}
		for _, t := range []time.Time{b.Completed, b.Verified, b.Mark.At} {
			at = latest(at, t)
		}
		lacking = lacking || len(Lacking(b)) > 0
	}
	if last, ok := it.Newest(PruneComponent); ok && lacking && !now.Before(last.Start.Add(mendAgain)) {
		at = latest(at, now)
	}
	var data pruneData
	if json.Unmarshal(it.Data, &data) == nil {
		at = latest(at, data.Confirmed)
	}
	return at.Add(-1) // a look that began at that very moment has seen it
}

// pruneData is the data of an item.
type pruneData struct {
	Confirmed time.Time `json:"confirmed,omitzero"` // when an operator agreed to more than the share
	By        string    `json:"by,omitempty"`
}

func (p *Pruner) work(ctx context.Context, j component.Job) (report component.Report, err error) {
	name := databaseOf(j.Item)
	var data pruneData
	if len(j.Item.Data) > 0 {
		if err := json.Unmarshal(j.Item.Data, &data); err != nil {
			return report, fmt.Errorf("read what is remembered: %w", err)
		}
	}
	if err := p.mend(ctx, name); err != nil {
		report.Fail(component.Failure{Item: name, Type: "mend", Text: err.Error()})
	}
	if _, ok := p.policy(name); !ok {
		return report, nil
	}
	now := p.clock.Now()
	plan, err := p.decide(ctx, name, !data.Confirmed.IsZero() && now.Sub(data.Confirmed) < confirmedFor)
	if err != nil {
		return report, err
	}
	for _, id := range plan.Remove() {
		if _, err := p.planner.PlanDelete(ctx, DeleteRequest{Backup: id, Internal: true}); err != nil {
			report.Fail(component.Failure{Item: id, Type: "delete", Text: err.Error()})
		}
	}
	for i, stop := range plan.Stops {
		if heldBack(plan) > 0 {
			report.Fail(component.Failure{Item: name, Type: string(stop), Text: plan.Details[i]})
		}
	}
	return report, nil
}

// heldBack counts the backups that would go if the plan were not stopped.
func heldBack(plan retention.Plan) (n int) {
	for _, d := range plan.Decisions {
		if d.Action == retention.Held {
			n++
		}
	}
	return n
}

// mend plans the mending of copies; its id is that of the hour, so that it is planned once whoever looks.
func (p *Pruner) mend(ctx context.Context, name string) error {
	entries, err := p.planner.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: name, State: ledger.BackupCompleted})
	if err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	active, err := p.planner.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Active: true, Type: ledger.Replicate})
	if err != nil {
		return fmt.Errorf("list tasks: %w", err)
	}
	var errs []error
	for _, b := range entries {
		lacking := slices.DeleteFunc(Lacking(b), func(s string) bool { return p.planner.conf().Catalog.Storages[s] == nil })
		if len(lacking) == 0 || slices.ContainsFunc(active, func(t ledger.Task) bool { return t.Backup == b.ID }) {
			continue
		}
		_, err := p.planner.PlanReplicate(ctx, CopyRequest{Backup: b.ID, Storages: lacking, Internal: true, ID: mendTask(b.ID, p.clock.Now())})
		if err != nil && !errors.Is(err, ledger.ErrExists) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func mendTask(backup string, now time.Time) string {
	return "m" + backup + strconv.FormatInt(now.Unix()/int64(mendAgain/time.Second), 32)
}

// decide asks retention about one database, with what is in the ledger and in the storages.
func (p *Pruner) decide(ctx context.Context, name string, confirmed bool) (retention.Plan, error) {
	entries, err := p.planner.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: name})
	if err != nil {
		return retention.Plan{}, fmt.Errorf("list backups: %w", err)
	}
	tasks, err := p.planner.cfg.Ledger.Tasks(ctx, ledger.TaskFilter{Database: name})
	if err != nil {
		return retention.Plan{}, fmt.Errorf("list tasks: %w", err)
	}
	used := map[string]bool{}
	for _, t := range tasks {
		if t.Reads() && !t.State.Final() {
			used[t.Backup] = true
		}
	}
	view := RetentionView(entries, used)
	listing := p.look(ctx, entries, view)
	policy, ok := p.policy(name)
	if !ok { // it was taken away meanwhile
		return retention.Plan{}, fmt.Errorf("database %q has no retention any more", name)
	}
	return retention.Decide(policy, retention.Input{
		Backups: view, Listing: listing, LastRun: lastRun(tasks), Clocks: p.clock.Doubt(), Now: p.clock.Now(), Confirmed: confirmed,
	}), nil
}

// lastRun is why the newest backup run that has ended failed; nil when it did not.
func lastRun(tasks []ledger.Task) error {
	for _, t := range tasks { // newest first
		if t.Type == ledger.Create && t.State.Final() && t.State != ledger.Cancelled {
			if t.State != ledger.Completed {
				return fmt.Errorf("task %s is %s: %s", t.ID, t.State, t.Error)
			}
			return nil
		}
	}
	return nil
}

// look finds the manifest of each backup in the storages that should have it: one that is nowhere is not good. The error
// is that of a storage that could not be read.
func (p *Pruner) look(ctx context.Context, entries []ledger.Backup, view []retention.Backup) error {
	for i := range view {
		b := entries[slices.IndexFunc(entries, func(b ledger.Backup) bool { return b.ID == view[i].ID })]
		lock, err := p.planner.conf().Catalog.locked(ctx, b, p.clock.Now())
		if err != nil {
			return err
		}
		if lock != nil {
			view[i].Locked = lock.until
		}
		found := 0
		for _, c := range b.Copies {
			st := p.planner.conf().Catalog.Storages[c.Storage]
			if c.State != ledger.CopyPresent || st == nil {
				continue
			}
			_, err := st.Stat(ctx, ManifestPath(b.ID, b.Token))
			switch {
			case err == nil:
				found++
			case !errors.Is(err, storage.ErrNotFound):
				return &storageError{name: c.Storage, err: err}
			}
		}
		view[i].Good = found > 0
	}
	return nil
}

// Decide is a dry run: what retention says of each backup of a database now, and why. Nothing is planned.
func (p *Pruner) Decide(ctx context.Context, name string, confirmed bool) (retention.Plan, error) {
	if err := p.planner.database("database", name); err != nil {
		return retention.Plan{}, err
	}
	if _, ok := p.policy(name); !ok {
		return retention.Plan{}, &RequestError{Field: "database", Problem: fmt.Sprintf("database %q has no retention: everything is kept", name), Hint: "add one under retention in the configuration"}
	}
	return p.decide(ctx, name, confirmed)
}

// Confirm has a database be looked at again, and for an hour lets go more at once than the policy's share.
func (p *Pruner) Confirm(ctx context.Context, name, by string) error {
	if err := p.planner.database("database", name); err != nil {
		return err
	}
	_, err := p.items.Edit(ctx, databaseItem(name), func(it component.Item) (component.Item, error) {
		data, err := json.Marshal(pruneData{Confirmed: p.clock.Now().UTC(), By: by})
		it.Data = data
		return it, err
	})
	return err
}
