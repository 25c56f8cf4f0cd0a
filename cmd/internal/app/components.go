package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/schedule"
)

// components are the recovery components of this daemon, named like the work they do: those of the tasks, those that plan
// tasks, those that clean up, and the host's own.
func (a *App) components() []string {
	names := append(pipeline.Components(), pipeline.ScheduleComponent, pipeline.PruneComponent, pipeline.SweepComponent, pipeline.TidyComponent, pipeline.DiscoverComponent)
	for _, c := range a.cfg.Components {
		names = append(names, c.Name)
	}
	return names
}

// itemsOf are the items of components, kept where the tasks are.
func itemsOf(led ledger.Ledger, self func() string) (component.Items, error) {
	switch led := led.(type) {
	case *embedded.Ledger:
		return embedded.NewItems(led, self), nil
	case *ledgerdb.Ledger:
		return ledgerdb.NewItems(led, self), nil
	}
	return nil, fmt.Errorf("a ledger of type %T keeps no items", led)
}

// itemComponent is a component whose items the ledger keeps.
type itemComponent struct {
	name  string
	begin func(ctx context.Context) error
	cfg   component.Config
	timed bool // a change of the ledger makes nothing more to do
}

// itemComponents are those of this node: the scheduler's, the pruner's, the housekeeper's, the host's.
func (a *App) itemComponents(w *work) ([]itemComponent, error) {
	fit := a.outfitNow()
	jobs, err := jobsOf(*fit.cfg)
	if err != nil {
		return nil, err
	}
	if w.scheduler, err = pipeline.NewScheduler(w.planner, w.items, jobs, a.clock.Now); err != nil {
		return nil, err
	}
	policies, err := policiesOf(*fit.cfg)
	if err != nil {
		return nil, err
	}
	if w.pruner, err = pipeline.NewPruner(w.planner, w.items, policies, a.clock); err != nil {
		return nil, err
	}
	list := []itemComponent{
		{name: pipeline.ScheduleComponent, begin: w.scheduler.Begin, cfg: w.scheduler.Component()},
		{name: pipeline.PruneComponent, begin: w.pruner.Begin, cfg: w.pruner.Component()},
	}
	w.keeper = pipeline.NewHousekeeper(w.worker, w.items)
	for _, c := range w.keeper.Components() {
		list = append(list, itemComponent{c.Component, w.keeper.Begin, c, true})
	}
	w.discoverer = pipeline.NewDiscoverer(w.items, a.clock.Now, func(ctx context.Context, server string, names []string, problem error) error {
		return a.settings.Note(ctx, server, a.cfg.Node, names, problem)
	})
	w.discoverer.Renew(fit.servers)
	list = append(list, itemComponent{pipeline.DiscoverComponent, w.discoverer.Begin, w.discoverer.Component(), true})
	for _, c := range a.cfg.Components {
		list = append(list, hostComponent(c, a.indexFor(w, c.Types, c.Past, c.PastFailed), w.items, a))
	}
	return list, nil
}

// indexFor is the index of a component whose trigger names these types and past events: the items of the ledger, with the
// completed backups and their verifications among them where they are asked for.
func (a *App) indexFor(w *work, wanted ...[]string) component.Index {
	for _, word := range slices.Concat(wanted...) {
		if word == pipeline.BackupItem || word == pipeline.VerifyEvent {
			return pipeline.BackupItems{Items: w.items, Ledger: w.ledger}
		}
	}
	return w.items
}

// hostComponent is one of the host's own, whose work is a program.
func hostComponent(c configs.Component, index component.Index, items component.Items, a *App) itemComponent {
	procedure := component.Many
	if c.Procedure == 1 {
		procedure = component.One
	}
	return itemComponent{name: c.Name, begin: func(context.Context) error { return nil }, cfg: component.Config{
		Component: c.Name, Procedure: procedure, SimultaneousProcesses: c.Simultaneous, Every: c.Every, Limit: c.Limit, Grace: c.Grace, Peek: true,
		Trigger: component.Trigger{
			Past: c.Past, PastFailed: c.PastFailed, Future: c.Future, Old: c.Old, Types: c.Types,
		},
		Worker:   component.Exec{Path: c.Exec, Args: c.Args, Logger: a.log},
		Fairness: component.Fairness{BackOff: c.BackOff, MaxBackOff: max(6*time.Hour, c.BackOff), QuarantineAfter: c.QuarantineAfter},
		Index:    index, Store: items, Now: a.clock.Now,
	}}
}

// startItemComponents starts them; each is woken by changes of the ledger.
func (a *App) startItemComponents(ctx context.Context, w *work, b *bridge) error {
	list, err := a.itemComponents(w)
	if err != nil {
		return err
	}
	var own []*component.Runner
	for _, c := range list {
		if err := c.begin(ctx); err != nil {
			return err
		}
		cfg := c.cfg
		cfg.Node, cfg.Locks, cfg.Claims, cfg.Gate, cfg.Logger = a.cfg.Node, b, b, b, a.log
		cfg.Paused = func() bool { return a.paused(c.name) || a.drained() || !a.clock.Settled() }
		r, err := component.New(cfg)
		if err != nil {
			return err
		}
		if err := r.Start(ctx); err != nil {
			return err
		}
		r.Wake()
		w.runners[c.name], w.triggers[c.name] = r, cfg.Triggers()
		if !c.timed {
			own = append(own, r)
		}
		a.onStop("component "+c.name, func(ctx context.Context) error {
			grace, cancel := a.grace(ctx)
			defer cancel()
			if r.Drain(grace) == nil {
				return nil
			}
			return r.Stop(ctx)
		})
	}
	maps.Copy(w.runners, w.worker.Runners())
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	var waking sync.WaitGroup
	waking.Go(func() { wakeAll(run, w.ledger.Watch(run), own) })
	a.onStop("ledger's hints", func(context.Context) error { end(); waking.Wait(); return nil })
	return nil
}

// wakeAll passes the ledger's hints on until ctx ends.
func wakeAll(ctx context.Context, hints <-chan struct{}, runners []*component.Runner) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-hints:
			if !ok {
				return
			}
			for _, r := range runners {
				r.Wake()
			}
		}
	}
}

// jobsOf are the configured schedules.
func jobsOf(c configs.Config) ([]pipeline.Job, error) {
	var jobs []pipeline.Job
	for _, s := range c.Schedules {
		jobs = append(jobs, pipeline.Job{
			Database: s.Database, Storages: s.Storages, Verify: s.Kind == "verify", Scratch: s.Scratch,
			Schedule: schedule.Config{
				Name: s.Name, Cron: s.Cron, Zone: s.Zone, Missed: schedule.Missed(s.Missed), Within: s.Within, Overlap: schedule.Overlap(s.Overlap),
				MaxQueued: s.MaxQueued, Spread: s.Spread, Windows: s.Windows, Disabled: s.Disabled,
			},
		})
	}
	for i, j := range jobs {
		if _, err := schedule.New(j.Schedule); err != nil {
			return nil, fmt.Errorf("schedules[%d] %s: %w", i, j.Schedule.Name, err)
		}
	}
	return jobs, nil
}

// labelsOf are what nodes must carry, by database.
func labelsOf(c configs.Config) map[string][]string {
	out := make(map[string][]string)
	for _, d := range c.Databases {
		out[d.Name] = d.Needs
	}
	return out
}

// maxDumpsOf is how many dumps their servers make at the same time, by database.
func maxDumpsOf(c configs.Config) map[string]int {
	out := make(map[string]int)
	for _, d := range c.Databases {
		out[d.Name] = d.MaxDumps
	}
	return out
}

// policiesOf are the configured retention policies, by database.
func policiesOf(c configs.Config) (map[string]retention.Policy, error) {
	out := make(map[string]retention.Policy)
	for i, r := range c.Retention {
		zone, err := time.LoadLocation(r.Zone)
		if err != nil {
			return nil, fmt.Errorf("retention[%d].zone: %w", i, err)
		}
		p := retention.Policy{
			Last: r.Last, Hourly: r.Hourly, Daily: r.Daily, Weekly: r.Weekly, Monthly: r.Monthly, Yearly: r.Yearly, MaxAge: r.MaxAge,
			MinKeep: r.MinKeep, MaxShare: float64(r.MaxPercent) / 100, Unverified: r.Unverified, Zone: zone,
		}
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("retention[%d] of %s: %w", i, r.Database, err)
		}
		out[r.Database] = p
	}
	return out, nil
}

// ofTasks tells whether a component does tasks.
func ofTasks(name string) bool { return slices.Contains(pipeline.Components(), name) }
