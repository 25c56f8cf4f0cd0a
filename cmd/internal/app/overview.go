package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/gms"
)

// overviewWithin bounds what an overview may take; what is not known by then is left out, and said to be.
const overviewWithin = 10 * time.Second

// Overview implements admin.Members.
func (p people) Overview(ctx context.Context) (api.Overview, error) { return p.a.seen.Get(ctx), nil }

// look makes the overview of this moment.
func (a *App) look(ctx context.Context) api.Overview {
	ctx, cancel := context.WithTimeout(ctx, overviewWithin)
	defer cancel()
	stale := !people{a}.fresh(ctx)
	g := a.group
	node, run := g.Self()
	standing, _ := g.Standing()
	f := a.facts(api.Status{
		Node: node, Run: run, Epoch: g.Epoch(), Group: g.Name(), Cluster: g.ClusterID(), Leader: g.Leader(), Version: a.version, View: g.View().Version,
		State: a.stateNow(), Lease: standing.String(), Ready: a.stateNow() == "ready", CertificateUntil: a.certificateUntil(), Sealed: a.abilities().Sealed,
	})
	f.View.Stale, f.Upgrade = stale, a.upgradeNow()
	copies := a.copies()
	f.Others = slices.Concat(a.othersAlarms(), a.notifyProblems(), a.settingsAlarms(), a.approvalAlarms(), stateAlarms(copies, a.clock.Now()), a.kitAlarm())
	if warnings, err := offline.CheckSecurity(&a.cfg, f.Now); err != nil {
		f.Certificate, f.Uncertified = err.Error(), true
	} else if len(warnings) > 0 {
		f.Certificate = warnings[0]
	}
	if w, err := (jobs{a}).now(); err == nil {
		f.Stuck, f.Aside = stuckOf(w), a.setAside(ctx, w)
		if f.Ledger = a.ledgerStands(ctx); f.Ledger == nil {
			f.Ledger = a.addDatabases(ctx, w, &f)
		}
		if f.Ledger != nil {
			f.Databases = nil // half a list would look like a whole one
		}
	}
	o := overview.Judge(f)
	o.GroupState, o.Kit = copiesShown(copies), a.newestKit()
	return o
}

// facts are those that are known without asking anybody: all but the databases.
func (a *App) facts(s api.Status) overview.Facts {
	f := overview.Facts{
		Now: a.clock.Now().UTC(), Status: s, View: people{a}.view(), NodeProblem: a.Err(), Waits: a.waitsFor(), ClockOff: a.clock.problem(), Uncopied: a.copyProblem(),
		GroupAlarms: a.group.Health().Alarms, Fences: people{a}.fences(), Storages: a.shelvesNow(),
	}
	f.Distrusted = a.distrusted()
	for _, sv := range a.group.Servers() {
		if sv.Voter {
			f.Voters = append(f.Voters, sv.Node)
		}
	}
	for _, c := range a.group.Claims() {
		f.Claims = append(f.Claims, claimShown(c))
	}
	return f
}

// stuckOf are the claims whose work is not proven to have stopped, of all components.
func stuckOf(w *work) (list []api.Claim) {
	for _, r := range w.runners {
		for _, c := range r.Stuck() {
			list = append(list, api.Claim{Component: c.Component, Item: c.Item, RoundTrip: c.RoundTrip, Token: c.Token})
		}
	}
	return list
}

// shelvesNow are the storages of this node as they were seen last.
func (a *App) shelvesNow() []api.StorageState {
	all := a.outfitNow().storages
	a.mu.Lock()
	defer a.mu.Unlock()
	list := []api.StorageState{}
	for name := range all {
		s, looked := a.shelves[name]
		if !looked {
			s = api.StorageState{Name: name, State: "unknown"}
		}
		list = append(list, s)
	}
	return list
}

// nextBackups is when each database's next backup is scheduled.
func (a *App) nextBackups(ctx context.Context, w *work) (map[string]*time.Time, error) {
	next := map[string]*time.Time{}
	if w.scheduler == nil {
		return next, nil // a spectator plans nothing, and knows no schedules
	}
	states, err := w.scheduler.Schedules(ctx, 1)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		if s.Job.Verify || len(s.Next) == 0 {
			continue
		}
		if at := s.Next[0].Start; next[s.Job.Database] == nil || at.Before(*next[s.Job.Database]) {
			next[s.Job.Database] = &at
		}
	}
	return next, nil
}

// expectedEvery are the databases that have backups made of them, with the age that the newest may have.
func (a *App) expectedEvery() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, d := range a.outfitNow().cfg.Databases {
		if !d.Scratch {
			out[d.Name] = d.RPO
		}
	}
	return out
}

// expectedComponent keeps in the state cache since when the group expects backups of a database: expected/<database>, a
// time in RFC 3339. One that nobody ever made a backup of is overdue by it.
const expectedComponent = "expected"

func (a *App) expectedSince() map[string]time.Time {
	out := map[string]time.Time{}
	for _, e := range a.group.Cache().ListLocal(expectedComponent, "", "") {
		if at, err := time.Parse(time.RFC3339, string(e.Value)); err == nil {
			out[e.Key.Key] = at
		}
	}
	return out
}

// expectFrom notes databases that are new to the group. Of two leaders that believe in themselves the first one counts.
func (a *App) expectFrom(ctx context.Context) error {
	since := a.expectedSince()
	for _, name := range slices.Sorted(maps.Keys(a.expectedEvery())) {
		if _, known := since[name]; known {
			continue
		}
		key := gms.Key{Component: expectedComponent, Key: name}
		_, err := a.group.Cache().Commit(ctx, gms.Txn{
			Conditions: []gms.Condition{gms.VersionIs(key, 0)},
			Puts:       []gms.Put{{Key: key, Value: []byte(a.clock.Now().UTC().Format(time.RFC3339))}},
		})
		if err != nil && !isConflict(err) {
			return fmt.Errorf("note that backups of %s are expected: %w", name, err)
		}
	}
	return nil
}
