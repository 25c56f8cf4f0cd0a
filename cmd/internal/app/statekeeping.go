package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/groupstate"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/cmd/internal/settings"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// The group stores its own state in each of its storages (package groupstate). One node does so for a storage: the leader, or
// the first that has it. It takes a lock for that, whose token is the name of the object: a node that was held up makes an
// older one, whenever it goes on. Where the newest lies is kept in the state cache, under state/in/<storage>.
const (
	stateComponent = "state"
	copyPrefix     = "in/"

	lookAtState = 5 * time.Second
	storeWithin = 2 * time.Minute
	// glanceWithin bounds the look at a storage that may be away: whoever is asked something about it by a person waits behind.
	glanceWithin = 5 * time.Second
)

func copyKey(storage string) gms.Key {
	return gms.Key{Component: stateComponent, Key: copyPrefix + storage}
}

// touchedKey changes with what people enter that only the ledger keeps.
func touchedKey() gms.Key { return gms.Key{Component: stateComponent, Key: "touched"} }

func stateLock(storage string) string { return "/fencepost/state/" + storage }

// keepState has the group's state stored when it has changed, and each night. It ends with ctx.
func (a *App) keepState(ctx context.Context) {
	ticker := time.NewTicker(lookAtState)
	defer ticker.Stop()
	tried := map[string]time.Time{} // by storage
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a.storeStates(ctx, tried)
	}
}

// storeStates stores it wherever it is due and this node's turn.
func (a *App) storeStates(ctx context.Context, tried map[string]time.Time) {
	w, err := (jobs{a}).now()
	if standing, _ := a.group.Standing(); err != nil || standing != gms.Held || a.cfg.Role != configs.RoleCore || !a.clock.Settled() {
		return
	}
	holders := a.holders()
	now, digest := a.clock.Now().UTC(), ""
	for name, st := range a.storesNow() {
		if writerOf(holders[name], a.group.Leader()) != a.cfg.Node {
			continue
		}
		if digest == "" {
			digest = a.stateDigest()
		}
		if !a.copyIn(name).Due(digest, tried[name], now) {
			continue
		}
		tried[name] = now
		if err := a.storeState(ctx, w, name, st); err != nil && !errors.Is(err, gms.ErrBusy) && ctx.Err() == nil {
			a.log.Warn("app: the group's state was not stored; it is tried again", "storage", name, "error", err)
			a.noteUnstored(ctx, name, err)
		}
	}
}

// holders are the members that reach a storage, by its name, as they have told.
func (a *App) holders() map[string][]string {
	out := map[string][]string{}
	for _, m := range a.group.Members() {
		var r abilitiesRecord
		e, err := a.group.Cache().GetLocal(abilitiesKey(m.Node))
		if err != nil || r.read(e.Value) != nil {
			continue
		}
		for _, name := range r.Storages {
			if !slices.Contains(r.Away, name) {
				out[name] = append(out[name], m.Node)
			}
		}
	}
	return out
}

// writerOf is who of the nodes that reach a storage writes there: the leader, or the first by name. Two that see it
// differently for a moment meet at the lock.
func writerOf(nodes []string, leader string) string {
	switch {
	case len(nodes) == 0:
		return ""
	case slices.Contains(nodes, leader):
		return leader
	}
	return slices.Min(nodes)
}

// copyIn is what this node knows of the state in a storage.
func (a *App) copyIn(name string) (c groupstate.Copy) {
	e, err := a.group.Cache().GetLocal(copyKey(name))
	if err != nil || json.Unmarshal(e.Value, &c) != nil || c.Format != groupstate.CopyFormat {
		return groupstate.Copy{}
	}
	return c
}

// storeState makes an object of the state as it is under the lock, and notes that.
func (a *App) storeState(ctx context.Context, w *work, name string, st storage.Storage) (err error) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	lock, err := a.group.TryLock(ctx, stateLock(name))
	if err != nil {
		return err
	}
	defer context.AfterFunc(lock.Context(), cancel)()
	defer func() {
		last, end := context.WithTimeout(context.WithoutCancel(ctx), syncWithin)
		defer end()
		if failed := a.group.Unlock(last, lock); failed != nil {
			a.log.Debug("app: the lock of the group's state ends with this node's run", "storage", name, "error", failed)
		}
	}()
	if err := a.group.Sync(ctx); err != nil { // what is read below is at least as new as the lock
		return err
	}
	if err := w.numbers.raise(ctx, lock.Token); err != nil {
		return err
	}
	look, seen := context.WithTimeout(ctx, glanceWithin)
	err = lookAtStorages(look, map[string]storage.Storage{name: st})[name] // it is the group's own now, whatever was seen before
	seen()
	if err != nil {
		return err
	}
	fit := a.outfitNow()
	chain, err := fit.catalog.Processors.Chain(fit.catalog.Chain)
	if err != nil {
		return err
	}
	digest := a.stateDigest()
	state, err := a.wholeState(ctx, w)
	if err != nil {
		return err
	}
	head := groupstate.Head{Group: a.group.Name(), Cluster: a.group.ClusterID(), Storage: fit.ids[name], Token: lock.Token, Made: a.clock.Now().UTC(), Node: a.cfg.Node, Key: a.group.NodeKey()}
	if !groupstate.Encrypts(chain) {
		state.Records = slices.DeleteFunc(state.Records, func(r groupstate.Record) bool { return !settings.Entered(r.Key) })
		head.Without = []string{"users", "tokens"}
	}
	text, err := groupstate.Seal(head, state, chain, a.group.Sign)
	if err != nil {
		return err
	}
	if _, err := st.Put(ctx, groupstate.Name(lock.Token), storage.Bytes(text), storage.Condition{}); err != nil {
		return err
	}
	err = a.noteState(ctx, name, func(groupstate.Copy) groupstate.Copy {
		return groupstate.Copy{Format: groupstate.CopyFormat, Object: groupstate.Name(lock.Token), Token: lock.Token, At: head.Made, Digest: digest, Bytes: len(text), Without: head.Without}
	})
	return errors.Join(err, groupstate.Prune(ctx, st, a.clock.Now()))
}

// noteUnstored has the group know why its state could not be stored.
func (a *App) noteUnstored(ctx context.Context, name string, why error) {
	if a.copyIn(name).Problem == why.Error() {
		return
	}
	err := a.noteState(ctx, name, func(c groupstate.Copy) groupstate.Copy {
		return c.Failed(errors.New(cutText(why.Error())), a.clock.Now().UTC())
	})
	if err != nil && ctx.Err() == nil {
		a.log.Debug("app: the group was not told that its state was not stored", "storage", name, "error", err)
	}
}

// noteState changes what the group knows of its state in a storage. What is older than what it knows is not noted.
func (a *App) noteState(ctx context.Context, name string, edit func(groupstate.Copy) groupstate.Copy) error {
	e, err := a.group.Cache().Get(ctx, copyKey(name))
	if err != nil && !errors.Is(err, gms.ErrNotFound) {
		return err
	}
	var was groupstate.Copy
	if len(e.Value) > 0 && json.Unmarshal(e.Value, &was) != nil {
		return fmt.Errorf("read what is kept of the group's state in storage %s", name)
	}
	next := edit(was)
	if next.Token < was.Token {
		return nil
	}
	_, err = a.group.Cache().Commit(ctx, gms.Txn{
		Conditions: []gms.Condition{gms.VersionIs(copyKey(name), e.Version)},
		Puts:       []gms.Put{putOf(copyKey(name), next)},
	})
	if isConflict(err) {
		return nil // another has just done so
	}
	return err
}

// touchState has the state be stored soon, since people have entered something that only the ledger keeps. What it fails
// for, the next night makes up for.
func (a *App) touchState(ctx context.Context) {
	value := strconv.FormatInt(a.clock.Now().UnixMilli(), 10)
	if _, err := a.group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{{Key: touchedKey(), Value: []byte(value)}}}); err != nil {
		a.log.WarnContext(ctx, "app: the group's state is stored by night only", "error", err)
	}
}

// stateDigest is the fingerprint of what people have entered, as this node knows it.
func (a *App) stateDigest() string {
	s := a.enteredState()
	e, _ := a.group.Cache().GetLocal(touchedKey()) // none: nothing was
	return s.Digest() + "-" + strconv.FormatUint(e.Version, 10)
}

// enteredState is what the state cache has of the state.
func (a *App) enteredState() groupstate.State {
	store := groupStore{a}
	s := groupstate.State{Records: entered(store.localBelow(settings.Prefix)), Storages: map[string]string{}, Paused: map[string]string{}}
	for _, prefix := range accounts.LastingPrefixes() {
		s.Records = append(s.Records, entered(store.localBelow(prefix))...)
	}
	for _, e := range a.group.Cache().ListLocal("storages", "", "") {
		var r storageRecord
		if json.Unmarshal(e.Value, &r) == nil {
			s.Storages[e.Key.Key] = r.ID
		}
	}
	for _, e := range a.group.Cache().ListLocal("signers", "", "") {
		var r signerRecord
		if json.Unmarshal(e.Value, &r) == nil {
			s.Signers = append(s.Signers, groupstate.Signer{Key: e.Key.Key, Node: r.Node, Cluster: r.of(a.group.ClusterID())})
		}
	}
	for _, e := range a.group.Cache().ListLocal(pauseComponent, "", "") {
		s.Paused[e.Key.Key] = string(e.Value)
	}
	s.Marks = a.waitingMarks()
	s.Sort()
	return s
}

// entered are what of records was entered by people.
func entered(records []kept.Record) (list []groupstate.Record) {
	for _, r := range records {
		value, lasting := accounts.Lasting(r)
		if settings.Entered(r.Key) {
			value, lasting = r.Value, true
		}
		if lasting {
			list = append(list, groupstate.Record{Key: r.Key, Value: bytes.Clone(value)})
		}
	}
	return list
}

// wholeState is enteredState with what the ledger has of it.
func (a *App) wholeState(ctx context.Context, w *work) (groupstate.State, error) {
	s := a.enteredState()
	lineage, _, err := components.LocalLineage(a.group)
	if err != nil {
		return s, err
	}
	s.Ledger = lineage.Kind
	for _, state := range []ledger.BackupState{ledger.BackupCompleted, ledger.BackupDeleting} {
		list, err := w.ledger.Backups(ctx, ledger.BackupFilter{State: state})
		if err != nil {
			return s, fmt.Errorf("read which backups are marked: %w", err)
		}
		for _, b := range list {
			if b.Mark != (ledger.Mark{}) {
				s.Marks[b.ID] = b.Mark
			}
		}
	}
	if s.Disabled, err = w.scheduler.DisabledBy(ctx); err != nil {
		return s, err
	}
	return s, nil
}

// placedCopy is what the group knows of its state in a storage.
type placedCopy struct {
	storage string
	groupstate.Copy
}

// copies are those in the storages that some member reaches, by name. One that was just added has none yet.
func (a *App) copies() (list []placedCopy) {
	holders := a.holders()
	for _, name := range slices.Sorted(maps.Keys(holders)) {
		if c := a.copyIn(name); c.Format != 0 {
			list = append(list, placedCopy{name, c})
		}
	}
	return list
}

// copiesShown are copies, for people.
func copiesShown(copies []placedCopy) []api.GroupCopy {
	list := []api.GroupCopy{}
	for _, c := range copies {
		list = append(list, api.GroupCopy{Storage: c.storage, Object: c.Object, At: optional(c.At), Bytes: c.Bytes, Without: append([]string{}, c.Without...), Problem: c.Problem, Since: optional(c.Since)})
	}
	return list
}

// stateAlarms are about storages in which the group's state is old, or cannot be stored; the same on every node. Pure.
func stateAlarms(copies []placedCopy, now time.Time) (list []api.Alarm) {
	for _, c := range copies {
		alarm := api.Alarm{Kind: "state", About: c.storage, Severity: api.Warning, Cause: c.Problem, Hint: "fencepost storage test " + c.storage + " tries the storage; without the state a lost group is set up by hand"}
		switch {
		case c.Old(now):
			alarm.Text, alarm.Since = fmt.Sprintf("the group's own state was last stored in storage %s on %s", c.storage, c.At.UTC().Format(time.DateTime+"Z")), optional(c.At)
		case c.Late(now):
			alarm.Text, alarm.Since = "the group's own state could not be stored in storage "+c.storage, optional(c.Since)
		default:
			continue
		}
		if c.Problem != "" {
			alarm.Text += ": " + c.Problem
		}
		list = append(list, alarm)
	}
	if len(list) == len(copies) { // no storage has a good one
		for i := range list {
			list[i].Severity = api.Critical
		}
	}
	return list
}
