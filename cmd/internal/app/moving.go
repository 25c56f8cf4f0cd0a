package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
)

const (
	quietWithin    = time.Minute      // to find a moment in which nothing runs
	leftWithin     = 10 * time.Second // for what has claimed something just before the ledger was frozen, to give it back
	takeBackWithin = 30 * time.Second // for the way back of a move that failed
)

// hold is a ledger as whoever moves it has it.
type hold interface {
	contents(ctx context.Context) (ledger.Contents, error)
	active(ctx context.Context) ([]ledger.Task, error)
	freeze(ctx context.Context, why string) error
	thaw(ctx context.Context) error
	leave(ctx context.Context) error // after all was moved away
	close()
}

// ownHold is the ledger in the group's own state. What the group says of it freezes it.
type ownHold struct{ *embedded.Ledger }

func (h ownHold) contents(ctx context.Context) (ledger.Contents, error) { return h.Contents(ctx) }

func (h ownHold) active(ctx context.Context) ([]ledger.Task, error) {
	return h.Tasks(ctx, ledger.TaskFilter{Active: true})
}

func (ownHold) freeze(context.Context, string) error { return nil }
func (ownHold) thaw(context.Context) error           { return nil }
func (h ownHold) leave(ctx context.Context) error    { return h.Clear(ctx) }
func (ownHold) close()                               {}

// databaseHold is one in a database, which stays there, frozen.
type databaseHold struct{ *ledgerdb.Repair }

func (h databaseHold) contents(ctx context.Context) (ledger.Contents, error) { return h.Contents(ctx) }

func (h databaseHold) active(ctx context.Context) ([]ledger.Task, error) {
	_, active, err := h.Holding(ctx)
	return active, err
}

func (h databaseHold) freeze(ctx context.Context, why string) error { return h.Freeze(ctx, why) }
func (h databaseHold) thaw(ctx context.Context) error               { return h.Amend(ctx, ledgerdb.Amendment{}) }
func (databaseHold) leave(context.Context) error                    { return nil }
func (h databaseHold) close()                                       { h.Close() }

// holdOf takes hold of the ledger that the group uses.
func (a *App) holdOf(ctx context.Context, l components.Lineage) (hold, error) {
	if l.Kind == components.LedgerEmbedded {
		led, err := embedded.New(embedded.Config{Store: components.BareStore(a.group), Now: a.clock.Now})
		return ownHold{led}, err
	}
	if !a.cfg.Ledger.DSN.Given() {
		return nil, &api.Error{Code: api.CodeConflict, Message: "the group keeps its ledger in a database, and the file of node " + a.cfg.Node + " names none", Hint: "ask a node whose file has ledger.dsn"}
	}
	r, err := a.openRepair(ctx)
	if err != nil {
		return nil, err
	}
	if in, made := r.Lineage(); !made || in.Ledger != l.Ledger || in.Frozen && l.Moving == "" {
		r.Close()
		return nil, &api.Error{Code: api.CodeConflict, Message: "the ledger in the database of node " + a.cfg.Node + " is not the group's, or is frozen", Hint: "fencepost ledger show"}
	}
	return databaseHold{r}, nil
}

// transfer copies the ledger to another place; use: and has the group keep it there. The group says first that it is being
// moved, so that nothing is written to it while it is read, and last where it is; what fails in between is taken back.
func (s ledgers) transfer(ctx context.Context, to string, use bool) (out api.MovedLedger, err error) {
	a := s.a
	l, version, err := components.ReadLineage(ctx, a.group)
	switch {
	case err != nil:
		return out, err
	case l.Kind == "":
		return out, &api.Error{Code: api.CodeUnavailable, Message: "no node has opened the group's ledger yet", Hint: "see `fencepost status`"}
	case l.Kind == to:
		return out, &api.Error{Code: api.CodeConflict, Message: "the group keeps its ledger in its own state already"}
	case l.Moving != "":
		return out, &api.Error{Code: api.CodeConflict, Message: "the ledger is being moved to " + l.Moving, Hint: "a move that was interrupted is taken back by: fencepost ledger reconcile --apply"}
	}
	target, err := a.targetOf(ctx, to)
	if err != nil {
		return out, err
	}
	from, err := a.holdOf(ctx, l)
	if err != nil {
		return out, err
	}
	defer from.close()
	out = api.MovedLedger{From: l.Kind, To: components.LedgerEmbedded, InUse: use}
	if target != nil {
		out.To = components.LedgerPostgres
	}
	if !use {
		return out, a.carry(ctx, from, target, "it is a copy of ledger "+l.Ledger+", made by an operator", &out)
	}
	a.log.Warn("app: an operator has the group's ledger moved", "from", l.Kind, "to", to)
	if err := a.awaitIdle(ctx, from, quietWithin); err != nil {
		return out, err
	}
	moving := l
	moving.Moving = to
	if err := components.WriteLineage(ctx, a.group, moving, version); err != nil {
		return out, err
	}
	if err := a.moveFrozen(ctx, from, target, to, &out); err != nil {
		return out, errors.Join(err, a.takeBack(ctx, from, l))
	}
	return out, nil
}

// moveFrozen moves a ledger that the group says is being moved.
func (a *App) moveFrozen(ctx context.Context, from hold, target *ledgerdb.Config, to string, out *api.MovedLedger) error {
	if err := from.freeze(ctx, "the group's ledger was moved to "+to); err != nil {
		return err
	}
	if err := a.awaitIdle(ctx, from, leftWithin); err != nil { // nothing begins any more; what has, would not get its result stored
		return err
	}
	if err := a.carry(ctx, from, target, "", out); err != nil {
		return err
	}
	_, version, err := components.ReadLineage(ctx, a.group)
	if err == nil {
		err = components.WriteLineage(ctx, a.group, components.Lineage{Kind: out.To, Ledger: out.ID}, version)
	}
	if err != nil {
		return err
	}
	if err := from.leave(ctx); err != nil {
		a.log.Warn("app: what the ledger held before it was moved is still there; nobody reads it", "error", err)
	}
	return nil
}

// carry reads one ledger and fills another. A reason makes it frozen there.
func (a *App) carry(ctx context.Context, from hold, target *ledgerdb.Config, frozen string, out *api.MovedLedger) error {
	all, err := from.contents(ctx)
	if err != nil {
		return err
	}
	out.Tasks, out.Backups, out.Items = len(all.Tasks), len(all.Backups), len(all.Items)
	if target == nil {
		led, err := embedded.New(embedded.Config{Store: components.BareStore(a.group), Now: a.clock.Now})
		if err != nil {
			return err
		}
		return led.Fill(ctx, all)
	}
	in, err := ledgerdb.Found(ctx, *target, all, frozen)
	out.ID = in.Ledger
	return err
}

// takeBack has the group use the ledger that it used before a move failed, unless the group says that it has moved.
func (a *App) takeBack(ctx context.Context, from hold, l components.Lineage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackWithin)
	defer cancel()
	is, version, err := components.ReadLineage(ctx, a.group)
	if err != nil || is.Moving == "" {
		return err
	}
	if err := from.thaw(ctx); err != nil {
		return fmt.Errorf("the ledger stays frozen: %w", err)
	}
	return components.WriteLineage(ctx, a.group, l, version)
}

// awaitIdle waits until nobody works with a ledger. A task that has begun is not waited for, and is the error at once; work on
// items is, which takes moments.
func (a *App) awaitIdle(ctx context.Context, from hold, within time.Duration) error {
	limit := time.NewTimer(within)
	defer limit.Stop()
	for {
		changed := a.group.Cache().Changed()
		active, err := from.active(ctx)
		if err != nil {
			return err
		}
		for _, t := range ledger.Begun(active) {
			return busy(fmt.Sprintf("task %s (%s of %s) has begun", t.ID, t.Type, t.Database))
		}
		if err := a.group.Sync(ctx); err != nil {
			return err
		}
		claims := a.group.Claims()
		if len(claims) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return busy(fmt.Sprintf("item %s of component %s is claimed", claims[0].Item, claims[0].Component))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func busy(what string) error {
	return &api.Error{Code: api.CodeBusy, Message: what + ": a ledger is moved while nothing runs", Hint: "wait until it has ended; fencepost node drain, for each node, keeps others from beginning"}
}
