package app

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/groupstate"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/cmd/internal/settings"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// A group that is made anew takes the state of the lost one in an order that lets it be done again wherever it was
// interrupted: first by what keys and under what ids backups are its own, then what is pinned, and last what works with
// them. Marks of backups that no storage has shown yet wait under marks/<backup>, and come with the backup.
const markPrefix = "marks/"

// mostChanges of a transaction, and mostBytes of their values.
const (
	mostChanges = 100
	mostBytes   = 256 << 10
)

// states are what groups keep of themselves, for people.
type states struct{ a *App }

// weighed is a state that was asked for, beside what the group has.
type weighed struct {
	state groupstate.State
	cmp   groupstate.Comparison
	out   api.RestoredGroup
}

// PlanRestoreGroup implements admin.GroupStates.
func (s states) PlanRestoreGroup(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error) {
	w, err := s.weigh(ctx, r)
	return w.out, err
}

func (s states) weigh(ctx context.Context, r api.RestoreGroup) (w weighed, err error) {
	a := s.a
	w.out = api.RestoredGroup{Group: a.group.Name(), Cluster: a.group.ClusterID(), Entered: []string{}, Against: []string{}, Waiting: []string{}, Left: []string{}}
	if w.state, err = groupstate.Unpack(r.Secrets); err != nil {
		return w, &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	if err := (groupStore{a}).joined(); err != nil {
		return w, err
	}
	if err := a.group.Sync(ctx); err != nil {
		return w, err
	}
	have := a.enteredState()
	w.state.Sort()
	w.cmp = groupstate.Compare(have.Records, w.state.Records)
	for _, r := range w.cmp.New {
		w.out.Entered = append(w.out.Entered, recordWords(r.Key))
	}
	for _, key := range w.cmp.Against {
		w.out.Against = append(w.out.Against, recordWords(key))
	}
	for _, name := range slices.Sorted(maps.Keys(w.state.Storages)) {
		if id := have.Storages[name]; id != "" && id != w.state.Storages[name] {
			w.out.Left = append(w.out.Left, fmt.Sprintf("storage %s: the group knows another one under this name, and keeps it", name))
		}
	}
	w.out.Same, w.out.Marks, w.out.Ledger = w.cmp.Same, len(w.state.Marks), w.state.Ledger
	w.out.Storages = append([]string{}, slices.Sorted(maps.Keys(w.state.Storages))...)
	return w, nil
}

// recordWords is what people call a record.
func recordWords(key string) string {
	words := strings.SplitN(strings.TrimPrefix(key, settings.Prefix), "/", 3)
	switch {
	case len(words) == 3 && words[0] == "one":
		return words[1] + " " + words[2]
	case len(words) == 3:
		return "database " + words[2] + " of server " + words[1]
	}
	return strings.Join(words, " ")
}

// RestoreGroup implements admin.GroupStates.
func (s states) RestoreGroup(ctx context.Context, r api.RestoreGroup) (api.RestoredGroup, error) {
	a := s.a
	if a.cfg.Role != configs.RoleCore {
		return api.RestoredGroup{}, &api.Error{Code: api.CodeUnavailable, Message: "this node is a " + string(a.cfg.Role) + ", which has no storages", Hint: "ask a core member"}
	}
	w, err := s.weigh(ctx, r)
	if err != nil {
		return w.out, err
	}
	if against := w.out.Against; len(against) > 0 && !r.Over {
		shown := strings.Join(against[:min(len(against), 3)], ", ")
		return w.out, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("the group has %d settings, users or tokens of its own that the state has not, or otherwise: %s", len(against), shown),
			Hint: "a new group takes it as it is; --over replaces those that the state has otherwise, and leaves the others"}
	}
	if err := a.oneMayTake(ctx, w.cmp.New); err != nil {
		return w.out, err
	}
	a.log.WarnContext(ctx, "app: an operator has the group take over the state of a lost one", "storage", r.From, "object", r.Object, "group", r.Cluster)
	if err := a.takeIDs(ctx, w.state); err != nil {
		return w.out, err
	}
	work, working := (jobs{a}).now()
	if err := a.takeMarks(ctx, work, w.state.Marks); err != nil {
		return w.out, err
	}
	if err := a.takeRecords(ctx, w.cmp.New); err != nil {
		return w.out, err
	}
	for name, by := range w.state.Paused {
		if a.paused(name) {
			continue
		}
		if err := a.pause(ctx, name, true, by); err != nil {
			return w.out, err
		}
	}
	if working != nil {
		w.out.Left = append(w.out.Left, "backups and schedules: "+working.Error())
		return w.out, nil
	}
	if err := a.takeWork(ctx, work, r.Cluster, w.state, &w.out); err != nil {
		return w.out, err
	}
	w.out.Done = len(w.out.Left) == 0
	return w.out, nil
}

// oneMayTake says why one person may not have the group take records: it has decided that some changes take two.
func (a *App) oneMayTake(ctx context.Context, records []groupstate.Record) error {
	needed, err := secondPersons{a}.ApprovalsNeeded(ctx)
	if err != nil || len(needed) == 0 || len(records) == 0 {
		return err
	}
	return &api.Error{Code: api.CodeConflict, Message: "the group has changes of its own approved by a second person, and a state would go round that",
		Hint: "a state is for a group that is new; one by one, fencepost apply asks for each change"}
}

// takeIDs has the group know storages and keys of a lost one. What it knows itself stays.
func (a *App) takeIDs(ctx context.Context, s groupstate.State) error {
	var puts []gms.Put
	for name, id := range s.Storages {
		puts = append(puts, putOf(storageKey(name), storageRecord{Format: storageFormat, ID: id}))
	}
	for _, signer := range s.Signers {
		key, err := hex.DecodeString(signer.Key)
		if err != nil || signer.Cluster == "" {
			return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("the state has a signer %q of group %q, which is none", signer.Key, signer.Cluster)}
		}
		r := signerRecord{Format: signerFormat, Node: signer.Node}
		if signer.Cluster != a.group.ClusterID() {
			r.Cluster = signer.Cluster
		}
		puts = append(puts, putOf(signerKey(key), r))
	}
	for _, put := range puts {
		_, err := a.group.Cache().Commit(ctx, gms.Txn{Conditions: []gms.Condition{gms.VersionIs(put.Key, 0)}, Puts: []gms.Put{put}})
		if err != nil && !isConflict(err) {
			return err
		}
	}
	return a.keepSigners(ctx)
}

// takeMarks has marks wait for the backups that the ledger does not know, before it can learn of any.
func (a *App) takeMarks(ctx context.Context, w *work, marks map[string]ledger.Mark) error {
	var changes []kept.Change
	for id, m := range marks {
		if _, waits := a.waitingMark(id); waits {
			continue
		}
		if w != nil {
			_, err := w.ledger.Backup(ctx, id)
			if err == nil {
				continue // it gets it by itself
			}
			if !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
		}
		changes = append(changes, kept.Put(markPrefix+id, m, 0))
	}
	return a.commitInParts(ctx, changes)
}

// takeRecords puts records as they were, and then has everybody look at the settings.
func (a *App) takeRecords(ctx context.Context, records []groupstate.Record) error {
	store := groupStore{a}
	var changes, last []kept.Change // last: with them it takes two people from then on
	touched := false
	for _, r := range records {
		if _, lasting := lastingValue(r); !lasting && !settings.Entered(r.Key) {
			return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("the state has a record %q, which none of this version is", r.Key)}
		}
		change := kept.Again(kept.Record{Key: r.Key, Value: r.Value, Version: store.Local(r.Key).Version})
		if strings.HasPrefix(r.Key, settings.Prefix+"one/approval/") {
			last = append(last, change)
		} else {
			changes = append(changes, change)
		}
		touched = touched || settings.Entered(r.Key)
	}
	for _, part := range [][]kept.Change{changes, last} {
		if err := a.commitInParts(ctx, part); err != nil {
			return err
		}
	}
	if !touched {
		return nil
	}
	for _, key := range []string{settings.HeadKey, settings.FoundKey} {
		err := kept.Update(ctx, store, key, func(r kept.Record) ([]kept.Change, error) {
			c, err := settings.Touch(r)
			return []kept.Change{c}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func lastingValue(r groupstate.Record) ([]byte, bool) {
	one := kept.Record{Key: r.Key, Value: r.Value}
	list := entered([]kept.Record{one})
	if len(list) == 0 {
		return nil, false
	}
	return list[0].Value, true
}

// commitInParts makes changes that need not come about together.
func (a *App) commitInParts(ctx context.Context, changes []kept.Change) error {
	for len(changes) > 0 {
		n, size := 0, 0
		for n < len(changes) && n < mostChanges && (n == 0 || size+len(changes[n].Value) <= mostBytes) {
			size += len(changes[n].Value)
			n++
		}
		if err := (groupStore{a}).Commit(ctx, changes[:n]...); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// takeWork has the node's work know what was taken: storages, the backups in them, marks, schedules that were disabled.
func (a *App) takeWork(ctx context.Context, w *work, lost string, s groupstate.State, out *api.RestoredGroup) error {
	if err := a.refit(ctx, w); err != nil {
		return err
	}
	left := func(format string, args ...any) { out.Left = append(out.Left, fmt.Sprintf(format, args...)) }
	fit := a.outfitNow()
	for _, name := range slices.Sorted(maps.Keys(s.Storages)) {
		st := fit.catalog.Storages[name]
		if st == nil || fit.ids[name] != s.Storages[name] {
			left("storage %s: node %s does not have it yet: name it in its file and restart it, then say the same again", name, a.cfg.Node)
			continue
		}
		err := lookAtStorages(ctx, map[string]storage.Storage{name: st})[name]
		if errors.Is(err, storage.ErrForeign) {
			err = a.takeOver(ctx, fit.storages[name], st, lost)
		}
		if err != nil {
			left("storage %s: %v", name, err)
			continue
		}
		made, err := jobs{a}.RebuildCatalog(ctx, api.RebuildCatalog{Storages: []string{name}})
		if err != nil {
			left("storage %s: %v", name, err)
		}
		out.Backups += len(made)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Marks)) {
		switch b, err := w.ledger.Backup(ctx, id); {
		case errors.Is(err, ledger.ErrNotFound):
			out.Waiting = append(out.Waiting, id)
		case err != nil:
			return err
		case b.Mark == (ledger.Mark{}) && b.State == ledger.BackupCompleted:
			if _, err := w.ledger.EditBackup(ctx, id, func(m ledger.Mark) ledger.Mark {
				if m == (ledger.Mark{}) {
					m = s.Marks[id]
				}
				return m
			}); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Disabled)) {
		if err := w.scheduler.Enable(ctx, name, false, s.Disabled[name]); err != nil {
			left("schedule %s, which was disabled: %v", name, err)
		}
	}
	if s.Ledger == components.LedgerPostgres {
		if l, _, err := components.LocalLineage(a.group); err == nil && l.Kind != components.LedgerPostgres {
			left("the lost group kept its ledger in a database, and this one does not: fencepost ledger adopt, on a node whose file has ledger.dsn")
		}
	}
	a.wakeRunners()
	return nil
}

// takeOver makes a storage of the lost group this one's, and has its guard see that.
func (a *App) takeOver(ctx context.Context, bare, guarded storage.Storage, lost string) error {
	owner, err := storage.CheckOwner(ctx, bare, a.group.ClusterID())
	if errors.Is(err, storage.ErrForeign) && owner.Cluster == lost {
		_, err = storage.Adopt(ctx, bare, storage.Adoption{Cluster: a.group.ClusterID(), High: a.group.Epoch(), TakeOver: true})
	}
	if guard, ok := storage.As[*storage.Guard](guarded); ok && err == nil {
		_, err = guard.Check(ctx)
	}
	return storageHint(err)
}

// waitingMark is the mark that waits for a backup.
func (a *App) waitingMark(backup string) (m ledger.Mark, waits bool) {
	r := groupStore{a}.Local(markPrefix + backup)
	return m, r.Version != 0 && json.Unmarshal(r.Value, &m) == nil
}

// waitingMarks are all of them, by backup.
func (a *App) waitingMarks() map[string]ledger.Mark {
	out := map[string]ledger.Mark{}
	for _, r := range (groupStore{a}).localBelow(markPrefix) {
		var m ledger.Mark
		if json.Unmarshal(r.Value, &m) == nil {
			out[strings.TrimPrefix(r.Key, markPrefix)] = m
		}
	}
	return out
}

// markCame ends the waiting of marks whose backups have got them.
func (a *App) markCame(ctx context.Context, backups ...string) {
	for _, id := range backups {
		if _, waits := a.waitingMark(id); !waits {
			continue
		}
		err := kept.Update(ctx, groupStore{a}, markPrefix+id, func(r kept.Record) ([]kept.Change, error) {
			if r.Version == 0 {
				return nil, nil
			}
			return []kept.Change{kept.Delete(r)}, nil
		})
		if err != nil && ctx.Err() == nil {
			a.log.Debug("app: a mark that was taken over still waits for its backup, which has it", "backup", id, "error", err)
		}
	}
}
