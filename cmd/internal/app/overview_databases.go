package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// How many entries are read at once: the newest of all databases together, which is all that there is to read in most groups,
// and for a database that is not clear by then, of it alone.
const (
	newestPage = 2000
	goodPage   = 10
)

// addDatabases reads what the ledger knows of each database that is configured here.
func (a *App) addDatabases(ctx context.Context, w *work, f *overview.Facts) error {
	active, err := w.ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return err
	}
	for _, t := range active {
		if t.State == ledger.Planned {
			f.Waiting++
		} else {
			f.Active++
		}
	}
	next, err := a.nextBackups(ctx, w)
	if err != nil {
		return err
	}
	n, err := readNewest(ctx, w.ledger, newestPage)
	if err != nil {
		return err
	}
	rpo := a.expectedEvery()
	since := a.expectedSince()
	for _, name := range slices.Sorted(maps.Keys(rpo)) {
		d := overview.Database{Name: name, RPO: rpo[name], Expected: since[name], Next: next[name]}
		if err := n.add(ctx, &d); err != nil {
			return err
		}
		f.Databases = append(f.Databases, d)
	}
	return nil
}

// newest are the newest backups and the tasks that make some, newest first, by database.
type newest struct {
	ledger     ledger.Ledger
	backups    map[string][]ledger.Backup
	tasks      map[string][]ledger.Task
	allBackups bool // there are no others
	allTasks   bool
}

// readNewest reads at most page of each.
func readNewest(ctx context.Context, led ledger.Ledger, page int) (newest, error) {
	n := newest{ledger: led, backups: map[string][]ledger.Backup{}, tasks: map[string][]ledger.Task{}}
	backups, err := led.Backups(ctx, ledger.BackupFilter{Limit: page})
	if err != nil {
		return n, fmt.Errorf("backups: %w", err)
	}
	tasks, err := led.Tasks(ctx, ledger.TaskFilter{Type: ledger.Create, Limit: page})
	if err != nil {
		return n, fmt.Errorf("tasks: %w", err)
	}
	n.allBackups, n.allTasks = len(backups) < page, len(tasks) < page
	for _, b := range backups {
		n.backups[b.Database] = append(n.backups[b.Database], b)
	}
	for _, t := range tasks {
		n.tasks[t.Database] = append(n.tasks[t.Database], t)
	}
	return n, nil
}

// add finds the newest complete backup of a database, the newest good one, and its newest tasks.
func (n newest) add(ctx context.Context, d *overview.Database) error {
	if known := n.backups[d.Name]; !seeBackups(d, known) && !n.allBackups {
		if err := n.goOn(ctx, d, known); err != nil {
			return err
		}
	}
	tasks := n.tasks[d.Name]
	if len(tasks) < goodPage && !n.allTasks {
		var err error
		if tasks, err = n.ledger.Tasks(ctx, ledger.TaskFilter{Database: d.Name, Type: ledger.Create, Limit: goodPage}); err != nil {
			return err
		}
	}
	for _, t := range tasks[:min(len(tasks), goodPage)] {
		d.Tasks = append(d.Tasks, taskOf(t))
	}
	return nil
}

// seeBackups notes what is among backups that follow those that were seen, newest first; true: the good one was found.
func seeBackups(d *overview.Database, list []ledger.Backup) bool {
	for _, b := range list {
		shown := backupOf(b)
		if d.Newest == nil && b.State == ledger.BackupCompleted {
			d.Newest = &shown
		}
		if overview.Good(shown) {
			d.Good = &shown
			return true
		}
	}
	return false
}

// goOn reads on behind the backups of a database that are known.
func (n newest) goOn(ctx context.Context, d *overview.Database, known []ledger.Backup) error {
	filter := ledger.BackupFilter{Database: d.Name, Limit: goodPage}
	for last := known; ; {
		if len(last) > 0 {
			end := last[len(last)-1]
			filter.After = ledger.Place{Created: end.Created, ID: end.ID}
		}
		list, err := n.ledger.Backups(ctx, filter)
		if err != nil {
			return fmt.Errorf("backups of %s: %w", d.Name, err)
		}
		if seeBackups(d, list) || len(list) < goodPage {
			return nil
		}
		last = list
	}
}
