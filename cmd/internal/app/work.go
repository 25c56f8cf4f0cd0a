package app

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// work is what the node does once it stands.
type work struct {
	ledger  ledger.Ledger
	stores  func() map[string]storage.Storage // guarded
	planner *pipeline.Planner
	worker  *pipeline.Worker
	numbers *raiser

	bridge *bridge
	items  component.Items
	// Those that go over items; nil on a node that has none.
	scheduler  *pipeline.Scheduler
	pruner     *pipeline.Pruner
	keeper     *pipeline.Housekeeper
	discoverer *pipeline.Discoverer
	runners    map[string]*component.Runner
	triggers   map[string][]component.Trigger // of the components whose items the ledger keeps
}

// cleanupWithin bounds what a task removes after itself, and with it a stop without a quorum, in which nothing can be
// written down: recovery has such a task anyway.
const cleanupWithin = 15 * time.Second

func (a *App) makeWork(ctx context.Context) (*work, *bridge, error) {
	cat, err := a.opened.catalog(a.group.ClusterID(), a.ids)
	if err != nil {
		return nil, nil, err
	}
	cat.Trust = trust(a.group)
	a.mu.Lock()
	a.fit = &outfit{cfg: &a.cfg, sources: cat.Sources, scratch: cat.Scratch, storages: a.opened.storages, ids: a.ids, catalog: cat}
	a.mu.Unlock()
	led, err := a.openLedger(ctx, cat.Storages)
	if err != nil {
		return nil, nil, err
	}
	high := &raiser{cluster: a.group.ClusterID, counter: groupCounter{a.group}, storages: func() map[string]storage.Storage { return a.outfitNow().storages }, ledger: ledgerAhead(led)}
	c := a.cfg
	w := &work{ledger: led, numbers: high, stores: a.storesNow, runners: make(map[string]*component.Runner), triggers: make(map[string][]component.Trigger)}
	if w.items, err = itemsOf(led, func() string { _, run := a.group.Self(); return run }); err != nil {
		return nil, nil, err
	}
	joint, err := components.New(components.Config{
		Group: a.group, Manager: a.manager, Ledger: led, Items: w.items, Granted: high.raise, Runner: a.runnerOf, Drained: a.drained, Logger: a.log,
	})
	if err != nil {
		return nil, nil, err
	}
	b := &bridge{Joint: joint, group: a.group, granted: high.raise, drained: a.drained, log: a.log}
	policies, err := policiesOf(c)
	if err != nil {
		return nil, nil, err
	}
	w.worker, err = pipeline.NewWorker(pipeline.Config{
		Ledger: led, Locks: b, Claims: b, Gate: b, Catalog: cat, MaxConcurrent: c.Backup.MaxConcurrent, Limit: c.Backup.TimeLimit,
		StallAfter: c.Backup.StallAfter, RateLimit: int64(c.Backup.RateLimit),
		KeepOld: c.Restore.KeepOld, RestoreJobs: c.Restore.Jobs, StopGrace: c.Stop.Grace, CleanupWithin: cleanupWithin, Writer: "fencepost " + a.version, Logger: a.log,
		Now: a.clock.Now, Paused: a.paused, Drained: a.drained, Marked: a.waitingMark, Memory: doneTasks{a}, Retention: policies, Abilities: a.abilities,
		Signer: signer(a.group, c.Node),
	})
	if err != nil {
		return nil, nil, err
	}
	b.worker, w.bridge = w.worker, b
	able := pipeline.AbilitiesOf(ctx, cat, c.Labels)
	a.mu.Lock()
	a.able = able
	a.mu.Unlock()
	if w.planner, err = pipeline.NewPlanner(pipeline.PlannerConfig{
		Ledger: led, Catalog: cat, Require: c.Backup.Require.String(), MaxAttempts: c.Backup.MaxAttempts,
		OnFailure: string(c.Backup.OnFailure), Labels: labelsOf(c), MaxDumps: maxDumpsOf(c), StartWithin: c.Restore.StartWithin, DeleteDelay: c.Backup.DeleteDelay, Now: a.clock.Now,
	}); err != nil {
		return nil, nil, err
	}
	return w, b, a.refit(ctx, w)
}
