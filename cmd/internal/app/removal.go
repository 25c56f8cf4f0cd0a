package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// A node is removed by its drain, with the word that it leaves: once it is idle it stops by itself, and then whoever
// acts for the group has it forgotten. Each step is done by whoever can, as long as the wish stands: it outlives the one who asked, and every
// leader; to have the node work again takes the wish back, until it has left.

// removeLook is how often whoever acts for the group looks whether somebody who is removed has gone.
const removeLook = time.Second

// Removal implements admin.Drains.
func (p people) Removal(ctx context.Context, node string) (api.Removal, error) {
	p.fresh(ctx)
	if err := p.knows(node); err != nil {
		return api.Removal{}, err
	}
	r, _, wanted := p.a.drainOf(node)
	out := api.Removal{Node: node, State: api.RemovalNone, Drain: p.a.drainShown(ctx, node)}
	if wanted && r.Leaves {
		out.State, out.By, out.Since = removalState(out.Drain), r.By, optional(r.Since)
	}
	if out.State != api.RemovalNone { // it was said when it was asked for, and takes a read of all backups
		out.Storages = []api.BoundStorage{}
		return out, nil
	}
	var err error
	out.Storages, err = p.boundTo(ctx, node)
	return out, err
}

func removalState(d api.Drain) string {
	switch {
	case !d.Here:
		return api.RemovalForgetting
	case d.State == api.DrainIdle:
		return api.RemovalLeaving
	}
	return api.RemovalDraining
}

// RemoveNode implements admin.Drains.
func (p people) RemoveNode(ctx context.Context, want api.NodeName) (api.Removal, error) {
	if err := p.knows(want.Node); err != nil {
		return api.Removal{}, err
	}
	if want.Node == p.a.cfg.Node {
		return api.Removal{}, &api.Error{Code: api.CodeConflict, Message: "this is " + want.Node + " itself, which is not there to see the end of it", Hint: "ask another member, by --server or on its machine"}
	}
	works := func(m gms.MemberDetail) bool { return m.Node != want.Node && m.Role == signals.Core }
	if m, here := p.a.member(want.Node); (!here || m.Role == signals.Core) && !slices.ContainsFunc(p.a.group.Members(), works) {
		return api.Removal{}, &api.Error{Code: api.CodeConflict, Message: "no other core member is here: nobody would do the group's work", Hint: "start one, or add one: fencepost node add"}
	}
	bound, err := p.boundTo(ctx, want.Node)
	if err != nil {
		return api.Removal{}, err
	}
	p.a.log.Warn("app: an operator has a node leave for good", "node", want.Node)
	if err := p.a.wishDrain(ctx, want.Node, drainRecord{By: (jobs(p)).asker(ctx), Leaves: true}); err != nil {
		return api.Removal{}, err
	}
	if err := p.a.group.Sync(ctx); err != nil { // that this node knows it too
		return api.Removal{}, err
	}
	out, err := p.Removal(ctx, want.Node)
	out.Storages = bound
	return out, err
}

// boundTo are the storages that a node has and no other one, with what lies there.
func (p people) boundTo(ctx context.Context, node string) ([]api.BoundStorage, error) {
	list := []api.BoundStorage{}
	var elsewhere []string
	for _, e := range p.a.group.Cache().ListLocal(abilitiesComponent, "", "") {
		var r abilitiesRecord
		if r.read(e.Value) != nil {
			continue // of another version
		}
		for _, s := range r.Storages {
			switch {
			case e.Key.Key != node:
				elsewhere = append(elsewhere, s)
			default:
				list = append(list, api.BoundStorage{Name: s})
			}
		}
	}
	list = slices.DeleteFunc(list, func(b api.BoundStorage) bool { return slices.Contains(elsewhere, b.Name) })
	if len(list) == 0 {
		return list, nil
	}
	w, err := (jobs(p)).now()
	if err != nil {
		return list, err
	}
	backups, err := w.ledger.Backups(ctx, ledger.BackupFilter{State: ledger.BackupCompleted})
	if err != nil {
		return list, fmt.Errorf("look for backups that lie nowhere else: %w", err)
	}
	for _, b := range backups {
		countCopies(list, b)
	}
	return list, nil
}

// countCopies adds a backup to the storages that it lies in.
func countCopies(list []api.BoundStorage, b ledger.Backup) {
	var in []int
	only := true
	for _, c := range b.Copies {
		if c.State != ledger.CopyPresent {
			continue
		}
		i := slices.IndexFunc(list, func(s api.BoundStorage) bool { return s.Name == c.Storage })
		if i < 0 {
			only = false
			continue
		}
		in = append(in, i)
	}
	for _, i := range in {
		list[i].Backups++
		if only {
			list[i].Only++
		}
	}
}

// decline has the group know whether this node, which leaves, wants no vote any more.
func (a *App) decline(ctx context.Context, leaves bool) error {
	m, here := a.member(a.cfg.Node)
	switch said := len(m.Details[gms.DetailVoteless]) > 0; {
	case !here || said == leaves:
		return nil
	case leaves:
		return a.group.SetDetail(ctx, gms.DetailVoteless, []byte("leaves"))
	}
	return a.group.RemoveDetail(ctx, gms.DetailVoteless)
}

// missable tells whether the others are a majority without this node. The only voter stays until another one has its vote.
func (a *App) missable() bool {
	if !a.group.Follows() {
		return true // it is fed, and has no vote
	}
	voters, others, own := 0, 0, false
	for _, s := range a.group.Servers() {
		if !s.Voter {
			continue
		}
		voters++
		if s.Node == a.cfg.Node {
			own = true
			continue
		}
		if m, here := a.member(s.Node); here && !m.Suspected {
			others++
		}
	}
	return !own || others > voters/2
}

// forgetRemoved has whoever acts for the group forget nodes that have left for good, until ctx ends.
func (a *App) forgetRemoved(ctx context.Context) {
	ticker := time.NewTicker(removeLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !a.speaks() {
			continue
		}
		for _, e := range a.group.Cache().ListLocal(drainComponent, "", "") {
			node := e.Key.Key
			r, version, wanted := a.drainOf(node)
			if _, here := a.member(node); here || !wanted || !r.Leaves || a.unrecovered(node) {
				continue
			}
			if err := a.forgetFor(ctx, node, r, version); err != nil && ctx.Err() == nil {
				a.log.Debug("app: a node that has left is not forgotten yet", "node", node, "error", err)
			}
		}
	}
}

// unrecovered tells whether something that the node had begun is still to be recovered: until then it may be let work again.
func (a *App) unrecovered(node string) bool {
	open, _ := a.group.Recoveries()
	return slices.ContainsFunc(open, func(r gms.Recovery) bool { return r.Member.Node == node })
}

// forgetFor takes the next steps of a removal, the last of which is to forget the wish: when nothing of the node is left.
func (a *App) forgetFor(ctx context.Context, node string, r drainRecord, version uint64) error {
	if err := a.noWayBack(ctx, node, r, version); err != nil {
		return err
	}
	if err := a.group.ForgetNode(ctx, node); err != nil && !errors.Is(err, gms.ErrNotFound) {
		return err
	}
	if slices.ContainsFunc(a.group.Servers(), func(s gms.Server) bool { return s.Node == node }) {
		return errors.New("its place in the log is not given up yet")
	}
	a.log.Warn("app: a node has left for good and is forgotten", "node", node)
	return a.forgetWords(ctx, node)
}

// forgetWords removes what the node has told and what was wished of it: whoever comes under its name is another one.
func (a *App) forgetWords(ctx context.Context, node string) error {
	_, err := a.group.Cache().Commit(ctx, gms.Txn{Deletes: []gms.Key{drainKey(node), abilitiesKey(node)}})
	return err
}
