package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// That a node is to be drained is kept in the state cache under drain/<node>, for the whole group, until somebody takes it
// back: it outlives the node's runs, so that a machine which starts three times while it is worked on, or a node that its
// warden starts again, begins nothing in between. That it is idle the node says itself, in the detail "drained" of its run,
// whose value is the version of that entry: nothing has to be taken back when the run ends, or another drain begins.
//
// Its own stop a node tells by the detail "stopping", which ends with the run.

// drainComponent is the component of the entries, and of the message by which a drained leader asks another voter to lead.
const drainComponent = "drain"

const (
	drainedDetail  = "drained"
	stoppingDetail = "stopping"
)

const (
	drainLook    = 250 * time.Millisecond // between two looks of a drained node at itself, until it is idle
	handOverStep = 2 * time.Second        // between two requests of a drained leader to another voter
	tellStop     = 2 * time.Second        // that the word of a stop may take; without a quorum nobody hears it
)

func drainKey(node string) gms.Key { return gms.Key{Component: drainComponent, Key: node} }

// drainRecord is who had a node drained, for people, and what comes then.
type drainRecord struct {
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Leaves bool      `json:"leaves,omitempty"` // for good, once it is idle: see removal.go
	Going  bool      `json:"going,omitempty"`  // it has left, and is being forgotten: there is no way back
}

// drainOf is the wish that a node be drained, as this node knows it. It reads memory only.
func (a *App) drainOf(node string) (r drainRecord, version uint64, wanted bool) {
	e, err := a.group.Cache().GetLocal(drainKey(node))
	if err != nil {
		return r, 0, false
	}
	_ = json.Unmarshal(e.Value, &r) // that the entry is there is what counts
	return r, e.Version, true
}

// drained tells whether this node is to begin nothing.
func (a *App) drained() bool {
	_, _, wanted := a.drainOf(a.cfg.Node)
	return wanted
}

// drainer is what a node does about its own drain.
type drainer struct {
	*App
	was   bool
	asked time.Time // when another voter was last asked to lead
}

// keepDrained hands leadership over while the node is drained, and says when it is idle; until ctx ends.
func (a *App) keepDrained(ctx context.Context) {
	d := drainer{App: a}
	again := time.NewTicker(drainLook)
	defer again.Stop()
	for {
		entry, own := a.group.Cache().Changed(), a.group.Changed()
		var soon <-chan time.Time
		if d.look(ctx) {
			soon = again.C
		}
		select {
		case <-ctx.Done():
			return
		case <-entry:
		case <-own:
		case <-soon:
		}
	}
}

// look takes the next step; true when there is more to do, and nothing of the group tells when.
func (d *drainer) look(ctx context.Context) (more bool) {
	wish, version, wanted := d.drainOf(d.cfg.Node)
	if err := d.decline(ctx, wish.Leaves); err != nil {
		d.log.DebugContext(ctx, "app: the group does not know yet whether this node wants a vote", "error", err)
		return true
	}
	if !wanted {
		if d.was {
			d.wakeRunners()
		}
		d.was = false
		return false
	}
	d.was = true
	leader := d.group.Leader()
	if to := d.successor(d.cfg.Node); to != "" && leader == d.cfg.Node {
		d.handOver(ctx, to)
		return true
	}
	m, here := d.member(d.cfg.Node)
	if !here || leader == "" || !d.idle() {
		return true
	}
	if saysDrained(m, version) {
		switch {
		case wish.Leaves && !d.missable():
			return true
		case wish.Leaves:
			d.log.WarnContext(ctx, "app: leaves the group for good, as an operator has asked", "operator", wish.By)
			d.retire()
		}
		return false
	}
	if err := d.group.SetDetail(ctx, drainedDetail, strconv.AppendUint(nil, version, 10)); err != nil {
		d.log.DebugContext(ctx, "app: drained, and could not say so yet", "error", err)
		return true
	}
	d.log.InfoContext(ctx, "app: drained")
	return wish.Leaves
}

// saysDrained tells whether a run has said that it does nothing any more, since the entry of that version.
func saysDrained(m gms.MemberDetail, version uint64) bool {
	return string(m.Details[drainedDetail]) == strconv.FormatUint(version, 10)
}

// isDrained tells whether a run is through with its drain. One that was elected again hands over again first.
func (a *App) isDrained(m gms.MemberDetail, version uint64) bool {
	return saysDrained(m, version) && (!m.Leader || a.successor(m.Node) == "")
}

// idle tells whether this node, which begins nothing, has come to the end of all that it had begun.
func (a *App) idle() bool {
	a.mu.Lock()
	w := a.work
	a.mu.Unlock()
	if w == nil {
		return a.cfg.Role != configs.RoleCore && a.cfg.Role != configs.RoleSpectator
	}
	for _, r := range w.runners {
		if r.Taken() > 0 {
			return false
		}
	}
	_, self := a.group.Self()
	recoveries, _ := a.group.Recoveries()
	return a.claimsOf(self) == 0 && !slices.ContainsFunc(recoveries, func(r gms.Recovery) bool { return r.Appointee == self })
}

// claimsOf counts what a run holds; what is set aside is nobody's work.
func (a *App) claimsOf(run string) (n int) {
	for _, c := range a.group.Claims() {
		if c.Run == run && !c.Quarantined {
			n++
		}
	}
	return n
}

func (a *App) wakeRunners() {
	if w, err := (jobs{a}).now(); err == nil {
		for _, r := range w.runners {
			r.Wake()
		}
	}
}

// member is a node's present run.
func (a *App) member(node string) (gms.MemberDetail, bool) { return a.group.Member(node) }

// successor is the voter that shall lead in a node's place; empty when nobody else can: a drained node leads on rather than
// that two of them ask each other for ever.
func (a *App) successor(of string) string {
	return successorAmong(a.group.Members(), of, func(node string) bool {
		_, _, drained := a.drainOf(node)
		return drained
	})
}

// handOver asks a voter to lead. One that does not win is asked again.
func (d *drainer) handOver(ctx context.Context, to string) {
	if time.Since(d.asked) < handOverStep {
		return
	}
	d.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, handOverStep)
	defer cancel()
	if err := d.group.Send(ctx, drainComponent, nil, to); err != nil {
		d.log.DebugContext(ctx, "app: leadership not handed over yet", "to", to, "error", err)
	}
}

// hearHandOver is the action of a leader's message that it is about to stop.
func (a *App) hearHandOver(ctx context.Context, s signals.Signal) error {
	m, ok := s.(*signals.Message)
	if !ok || m.Facts().Member.Node != a.group.Leader() {
		return nil // it is late: another leads by now
	}
	a.log.InfoContext(ctx, "app: stands for election, the leader is about to stop", "leader", m.Facts().Member.Node)
	return a.group.StandForElection(ctx)
}

// sayStopping has the others know that this node stops, so that they leave the group enough of those who stay.
func (a *App) sayStopping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tellStop)
	defer cancel()
	if err := a.group.SetDetail(ctx, stoppingDetail, []byte("yes")); err != nil {
		a.log.DebugContext(ctx, "app: the others do not know of this stop", "error", err)
	}
}

// wishDrain writes the wish down. One that is there stays, unless the new one is that the node leaves.
func (a *App) wishDrain(ctx context.Context, node string, r drainRecord) error {
	r.Since = a.clock.Now().UTC().Truncate(time.Second)
	txn := gms.Txn{Puts: []gms.Put{putOf(drainKey(node), r)}}
	if !r.Leaves {
		txn.Conditions = []gms.Condition{gms.VersionIs(drainKey(node), 0)}
	} else if old, _, _ := a.drainOf(node); old.Leaves {
		return nil
	}
	if _, err := a.group.Cache().Commit(ctx, txn); err != nil && (r.Leaves || !isConflict(err)) {
		return fmt.Errorf("drain %s: %w", node, err)
	}
	return nil
}

// takeDrainBack lets the node work again; not one that has left for good meanwhile.
func (a *App) takeDrainBack(ctx context.Context, node string) error {
	for {
		if err := a.group.Sync(ctx); err != nil {
			return fmt.Errorf("let %s work again: %w", node, err)
		}
		r, version, wanted := a.drainOf(node)
		switch {
		case !wanted:
			return nil
		case r.Going:
			return &api.Error{Code: api.CodeConflict, Message: node + " has left for good, and is being forgotten", Hint: "to have it again: fencepostd home reset on its machine, then start it"}
		}
		txn := gms.Txn{Conditions: []gms.Condition{gms.VersionIs(drainKey(node), version)}, Deletes: []gms.Key{drainKey(node)}}
		if _, err := a.group.Cache().Commit(ctx, txn); !isConflict(err) {
			if err != nil {
				err = fmt.Errorf("let %s work again: %w", node, err)
			}
			return err
		}
	}
}

// noWayBack writes down that a node which leaves has left: from then on it is forgotten, and nobody takes that back.
func (a *App) noWayBack(ctx context.Context, node string, r drainRecord, version uint64) error {
	if r.Going {
		return nil
	}
	r.Going = true
	_, err := a.group.Cache().Commit(ctx, gms.Txn{Conditions: []gms.Condition{gms.VersionIs(drainKey(node), version)}, Puts: []gms.Put{putOf(drainKey(node), r)}})
	return err
}

// drainShown is how far a node is.
func (a *App) drainShown(ctx context.Context, node string) api.Drain {
	m, here := a.member(node)
	r, version, wanted := a.drainOf(node)
	d := api.Drain{Node: node, State: api.DrainNone, By: r.By, Since: optional(r.Since), Here: here, Leads: m.Leader, Tasks: []api.DrainTask{}}
	if here {
		d.Claims = a.claimsOf(m.Run)
		d.Tasks, d.LeftMS = a.tasksOn(ctx, node)
	}
	switch {
	case wanted && (!here || a.isDrained(m, version)):
		d.State = api.DrainIdle
	case wanted:
		d.State = api.DrainBusy
	}
	return d
}

// tasksOn are the tasks that a node works on, as far as this one can tell, and the time until the last of them ends: 0 when
// it is not known of all.
func (a *App) tasksOn(ctx context.Context, node string) (list []api.DrainTask, left int64) {
	list = []api.DrainTask{}
	tasks, err := (jobs{a}).Tasks(ctx, api.TaskFilter{Active: true, Internal: true})
	if err != nil {
		return list, 0
	}
	known := true
	for _, t := range tasks {
		if t.Node != node || t.State == "planned" {
			continue
		}
		list = append(list, api.DrainTask{ID: t.ID, Type: t.Type, Database: t.Database, LeftMS: t.Progress.LeftMS})
		left, known = max(left, t.Progress.LeftMS), known && t.Progress.LeftMS > 0
	}
	if !known {
		left = 0
	}
	return list, left
}
