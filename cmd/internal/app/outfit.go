package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/cmd/internal/settings"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/retention"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// outfit is what a node works with: what its file names and what the group's settings do, opened. It is not changed once it
// is made; when the settings change there is another one, which has in common with it what has stayed the same.
type outfit struct {
	cfg      *configs.Config // the file, with the settings
	state    settings.State
	problems []configs.Problem // what of the settings does not count on this node, and why
	at       time.Time         // when it was made
	told     *configs.Notify   // as App.told was

	sources  map[string]source.Source
	scratch  map[string]source.Source
	storages map[string]storage.Storage // metered, not guarded
	ids      map[string]string          // of the storages, as the group knows them
	catalog  pipeline.Catalog           // guarded
	servers  map[string]pipeline.Lister
}

// againAfter is how long after a look problems of the settings are looked at again: a file that was missing may be there.
const againAfter = time.Minute

// outfitNow is the present one; before there is any, it is empty but for the file.
func (a *App) outfitNow() *outfit {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fit == nil {
		return &outfit{cfg: &a.cfg, storages: a.opened.storages}
	}
	return a.fit
}

func (a *App) storesNow() map[string]storage.Storage { return a.outfitNow().catalog.Storages }

// settingsNow are the group's, as this node knows them.
func (a *App) settingsNow() settings.State {
	return settings.Read(groupStore{a}.localBelow(settings.Prefix))
}

// followSettings has the node work with what the group's settings say, as they change. It ends with ctx.
func (a *App) followSettings(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		changed := a.group.Cache().Written(keptComponent)
		a.mu.Lock()
		w := a.work
		a.mu.Unlock()
		if w != nil && a.outgrown() {
			if err := a.refit(ctx, w); err != nil && ctx.Err() == nil {
				a.log.Warn("app: the group's settings have changed, and not all of it counts here yet; it is tried again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

// outgrown tells whether the settings are others than those of the outfit, or what was wrong with them may be mended.
func (a *App) outgrown() bool {
	fit := a.outfitNow()
	store := groupStore{a}
	if fit.told != a.told.Load() {
		return true
	}
	if store.Local(settings.HeadKey).Version != fit.state.Versions[0] || store.Local(settings.FoundKey).Version != fit.state.Versions[1] {
		return true
	}
	return len(fit.problems) > 0 && time.Since(fit.at) >= againAfter
}

// refit makes another outfit and has all that works use it. What cannot be opened is left out, and told of.
func (a *App) refit(ctx context.Context, w *work) error {
	a.fitting.Lock()
	defer a.fitting.Unlock()
	was := a.outfitNow()
	next := a.tailor(ctx, was, a.settingsNow())
	policies, err := policiesOf(*next.cfg)
	if err != nil {
		return err
	}
	jobs, err := jobsOf(*next.cfg)
	if err != nil {
		return err
	}
	a.renewTelling(next)
	able := pipeline.AbilitiesOf(ctx, next.catalog, a.cfg.Labels)
	a.mu.Lock()
	a.fit, a.able = next, able
	a.mu.Unlock()
	w.worker.Renew(next.catalog, policies)
	w.planner.Renew(next.catalog, labelsOf(*next.cfg), maxDumpsOf(*next.cfg))
	err = errors.Join(a.refitItems(ctx, w, next, policies, jobs), a.tellAbilitiesOfCore(ctx))
	for _, p := range next.problems {
		if !slices.Contains(was.problems, p) {
			a.log.Warn("app: a setting of the group does not count on this node", "setting", p.Path, "problem", p.Text)
		}
	}
	return err
}

// tellAbilitiesOfCore is for nodes that carry tasks out.
func (a *App) tellAbilitiesOfCore(ctx context.Context) error {
	if a.cfg.Role != configs.RoleCore {
		return nil
	}
	return a.tellAbilities(ctx)
}

// tailor makes an outfit of the settings; it takes over from was what is the same.
func (a *App) tailor(ctx context.Context, was *outfit, state settings.State) *outfit {
	file, told := a.cfg, a.told.Load()
	if told != nil {
		file.Notify = *told
	}
	cfg, problems := file.With(state.Settings.Expand(state.Found))
	next := &outfit{
		cfg: cfg, state: state, problems: slices.Concat(state.Problems, problems), at: time.Now(), told: told,
		sources: map[string]source.Source{}, scratch: map[string]source.Source{}, storages: map[string]storage.Storage{}, ids: map[string]string{},
		servers: map[string]pipeline.Lister{},
	}
	next.catalog = was.catalog
	next.catalog.Sources, next.catalog.Scratch, next.catalog.Storages = next.sources, next.scratch, map[string]storage.Storage{}
	dsns := dsnReader{}
	for _, d := range cfg.Databases {
		next.open(ctx, a, was, d, dsns)
	}
	for _, s := range cfg.Storages {
		next.mount(ctx, a, was, s)
	}
	for _, s := range state.Settings.Servers {
		if !containsAll(a.cfg.Labels, s.Needs) {
			continue
		}
		src, err := offline.OpenSource(configs.Database{Name: s.Name, DSN: dsns.read(s.DSN)}, a.log)
		lister, ok := src.(pipeline.Lister)
		if err == nil && !ok {
			err = errors.New("it cannot tell which databases it has")
		}
		if err != nil {
			next.problem("server "+s.Name, err)
			continue
		}
		next.servers[s.Name] = lister
	}
	return next
}

func (o *outfit) problem(path string, err error) {
	o.problems = append(o.problems, configs.Problem{Path: path, Text: err.Error()})
}

// open opens a database, if it is not open.
func (o *outfit) open(ctx context.Context, a *App, was *outfit, d configs.Database, dsns dsnReader) {
	into, before := o.sources, was.sources
	if d.Scratch {
		into, before = o.scratch, was.scratch
	}
	if src := before[d.Name]; src != nil && sameEntry(was.cfg.Databases, d, func(x configs.Database) string { return x.Name }) {
		into[d.Name] = src
		return
	}
	read := d
	if !d.Throwaway() {
		read.DSN = dsns.read(d.DSN)
	}
	src, err := offline.OpenSource(read, a.log)
	if err != nil {
		o.problem("database "+d.Name, err)
		return
	}
	if left, ok := src.(interface{ Sweep(context.Context) }); ok && before[d.Name] == nil {
		left.Sweep(ctx) // of an earlier process
	}
	into[d.Name] = src
}

// mount opens a storage, if it is not open, and has the group know it. One that is not the group's is in the catalog, and
// refuses all calls; one that nobody could add yet is left out.
func (o *outfit) mount(ctx context.Context, a *App, was *outfit, s configs.Storage) {
	st := was.storages[s.Name]
	same := st != nil && sameEntry(was.cfg.Storages, s, func(x configs.Storage) string { return x.Name })
	if guarded := was.catalog.Storages[s.Name]; same && guarded != nil {
		o.storages[s.Name], o.ids[s.Name], o.catalog.Storages[s.Name] = st, was.ids[s.Name], guarded
		return
	}
	if !same {
		bare, closer, err := offline.OpenStorage(s, offline.Accounts{}, false, a.log)
		if err != nil {
			o.problem("storage "+s.Name, err)
			return
		}
		if s.AppendOnly {
			bare = storage.AppendOnly(bare, a.log.With("storage", s.Name))
		}
		a.mu.Lock()
		a.closers = append(a.closers, closer) // what attempts have begun with stays open until the node stops
		a.mu.Unlock()
		st = meter(bare, s.Name, a.metrics)
	}
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	id, err := a.knownStorage(s.Name), error(nil)
	if a.cfg.Role == configs.RoleCore {
		id, err = addStorage(within, a.group, s.Name, st)
	}
	if err != nil {
		o.problem("storage "+s.Name, err)
	}
	o.storages[s.Name] = st
	if id == "" {
		return
	}
	o.ids[s.Name] = id
	o.catalog.Storages[s.Name] = storage.OwnedAs(storage.Retry(st, storage.RetryOptions{}), a.group.ClusterID(), id)
}

// knownStorage is the id under which the group knows a storage, as this node knows; empty when it does not.
func (a *App) knownStorage(name string) string {
	var r storageRecord
	e, err := a.group.Cache().GetLocal(storageKey(name))
	if err != nil || json.Unmarshal(e.Value, &r) != nil {
		return ""
	}
	return r.ID
}

// refitItems has the components that go over items know what there is to do.
func (a *App) refitItems(ctx context.Context, w *work, fit *outfit, policies map[string]retention.Policy, jobs []pipeline.Job) error {
	if w.scheduler == nil {
		return nil // they are not made yet, or this node has none
	}
	w.discoverer.Renew(fit.servers)
	if err := errors.Join(w.scheduler.Renew(jobs), w.pruner.Renew(policies)); err != nil {
		return err
	}
	err := errors.Join(w.scheduler.Begin(ctx), w.pruner.Begin(ctx), w.keeper.Begin(ctx), w.discoverer.Begin(ctx))
	for _, r := range w.runners {
		r.Wake()
	}
	return err
}

// dsnReader follows each reference once: a command may take half a minute.
type dsnReader map[configs.DSN]configs.DSN

// read is the connection itself, or the reference when it cannot be followed now: opening says why.
func (r dsnReader) read(d configs.DSN) configs.DSN {
	if known, ok := r[d]; ok {
		return known
	}
	r[d] = d
	if text, err := d.Resolve(); err == nil {
		r[d] = configs.NewDSN(text)
	}
	return r[d]
}

// sameEntry tells whether a list has an entry of that name that says the same.
func sameEntry[T any](list []T, entry T, name func(T) string) bool {
	i := slices.IndexFunc(list, func(x T) bool { return name(x) == name(entry) })
	return i >= 0 && reflect.DeepEqual(list[i], entry)
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

// settingsAlarms are about settings that do not count here, and about what they have found.
func (a *App) settingsAlarms() (list []api.Alarm) {
	fit := a.outfitNow()
	for _, p := range fit.problems {
		list = append(list, api.Alarm{Kind: "settings", About: p.Path + " on " + a.cfg.Node, Severity: api.Warning, Local: true, Cause: p.Text,
			Text: fmt.Sprintf("%s of the group's settings does not count on node %s: %s", p.Path, a.cfg.Node, p.Text), Hint: "fencepost export shows the settings; the node's file and the files that they refer to are its own"})
	}
	return append(list, fit.state.Alarms()...)
}
