package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// ledgerAgain is how often a node that waits for its ledger tries to open it.
const ledgerAgain = 2 * time.Second

// openLedger opens what the configuration chooses: the group's own state cache, or a database. One that is away or frozen, or is
// not the one that the group uses, is waited for: a person is at work on it, or has to be. One that cannot be used at all is an
// error.
func (a *App) openLedger(ctx context.Context, storages map[string]storage.Storage) (ledger.Ledger, error) {
	state := a.stateNow()
	defer func() { a.setWaits(nil); a.setState(state) }()
	for {
		led, err := a.tryLedger(ctx, storages)
		if err == nil {
			return led, nil
		}
		if !passing(err) {
			return nil, err
		}
		a.setState("waiting for the ledger")
		a.setWaits(err)
		a.log.Warn("app: waiting for the ledger", "error", err, "hint", HintOf(err, ""))
		select {
		case <-time.After(ledgerAgain):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (a *App) tryLedger(ctx context.Context, storages map[string]storage.Storage) (ledger.Ledger, error) {
	if err := a.mayOpen(ctx); err != nil {
		return nil, err
	}
	if a.ledgerKind() == components.LedgerEmbedded {
		return embedded.New(embedded.Config{Store: components.Store(a.group), Now: a.clock.Now, Archive: archiveTo(storages)})
	}
	cfg, err := a.databaseLedger()
	if err != nil {
		return nil, err
	}
	led, err := ledgerdb.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a.onStop("ledger", func(context.Context) error { return led.Close() })
	return led, nil
}

// ledgerKind is the kind that this node's file names.
func (a *App) ledgerKind() string {
	if a.cfg.Ledger.DSN.Given() {
		return components.LedgerPostgres
	}
	return components.LedgerEmbedded
}

// mayOpen says why this node must not open a ledger of the kind that its file names: the group keeps its own elsewhere, or
// moves it. The first node of a group chooses the kind; which database it is, is noted once that has answered.
func (a *App) mayOpen(ctx context.Context) error {
	kind := a.ledgerKind()
	l, version, err := components.ReadLineage(ctx, a.group)
	if err != nil {
		return err
	}
	if l.Kind == "" && kind == components.LedgerPostgres && a.keepsEntries() { // of a version that did not note it
		l.Kind = components.LedgerEmbedded
	}
	switch {
	case l.Moving != "":
		return hint(fmt.Errorf("the group's ledger is being moved to %s: %w", l.Moving, ledger.ErrUnavailable), "wait for its end; a move that was interrupted is taken back by: fencepost ledger reconcile --apply")
	case l.Kind == kind:
		return nil
	case l.Kind == components.LedgerEmbedded:
		return hint(fmt.Errorf("the group keeps its ledger in its own state, and the file of node %s names a database: %w", a.cfg.Node, ledger.ErrUnavailable),
			"take ledger.dsn out of the file and start the node again; to have the ledger there: fencepost ledger move --to DSN")
	case l.Kind == components.LedgerPostgres:
		return hint(fmt.Errorf("the group keeps its ledger in a database, and the file of node %s names none: %w", a.cfg.Node, ledger.ErrUnavailable),
			"give it the ledger.dsn that the other nodes have, and start it again")
	case kind == components.LedgerEmbedded:
		err := components.WriteLineage(ctx, a.group, components.Lineage{Kind: kind}, version)
		if err != nil { // another node was faster, or the group does not answer
			return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
	}
	return nil
}

// keepsEntries tells whether the group's own state holds a ledger.
func (a *App) keepsEntries() bool {
	for _, prefix := range []string{"backup/", "task/"} {
		if len(a.group.Cache().ListLocal(components.LedgerComponent, "", prefix)) > 0 {
			return true
		}
	}
	return false
}

// passing tells whether a ledger that cannot be opened for err may be waited for: it is away, or a person is at work on it.
func passing(err error) bool {
	return errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledgerdb.ErrSetup)
}

// setWaits notes what the node waits for; nil: nothing any more.
func (a *App) setWaits(problem error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = problem
}

func (a *App) waitsFor() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waits
}

func (a *App) databaseLedger() (ledgerdb.Config, error) {
	dsn, err := a.cfg.Ledger.DSN.Resolve()
	if err != nil {
		return ledgerdb.Config{}, fmt.Errorf("ledger.dsn: %w", err)
	}
	g := groupOfLedger{a.group}
	return ledgerdb.Config{
		DSN: dsn, Cluster: a.group.ClusterID(), Protocol: a.group.Protocol(), Check: g.stands, Mark: g.mark, Uses: g.uses, Reached: g.reached,
		Marked: func(ctx context.Context, token uint64) {
			if err := g.raise(ctx, token); err != nil {
				a.log.Warn("app: the group's mark of the ledger was not raised; the next result raises it", "token", token, "error", err)
			}
		},
		Logger: a.log,
	}, nil
}

// floor is the highest number that the storages and the ledger have seen, whoever owns them (gms.Config.Floor). A ledger
// that cannot be used at all ends the node here: it would wait for its group to form in vain.
func (a *App) floor(ctx context.Context) (uint64, error) {
	high, err := a.opened.highest(ctx)
	if err != nil || !a.cfg.Ledger.DSN.Given() {
		return high, err
	}
	cfg, err := a.databaseLedger()
	if err == nil {
		var seen uint64
		cfg.Cluster = a.cfg.Group // any: there is no id yet
		seen, err = ledgerdb.Highest(ctx, cfg)
		high = max(high, seen)
	}
	if err != nil && !passing(err) {
		a.fail(err)
	}
	return high, err
}

// groupOfLedger is what a ledger in a database is told about the group.
type groupOfLedger struct{ g *gms.Group }

// stands checks a guard at one position of the log.
func (l groupOfLedger) stands(ctx context.Context, g ledger.Guard) error {
	txn := gms.Txn{Conditions: []gms.Condition{gms.RunOpen(g.Run), gms.ClaimHeld(g.Component, g.Item, g.Run, g.Token)}}
	if f := g.Fence; f != nil {
		txn.Conditions = append(txn.Conditions, gms.FenceHeld(f.Component, f.Node, f.Run, f.Token))
	}
	_, err := l.g.Cache().Commit(ctx, txn)
	var failed *gms.ConditionError
	_, self := l.g.Self()
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed), errors.Is(err, gms.ErrRunClosed) && g.Run != self:
		return fmt.Errorf("%w (%w)", ledger.ErrFenced, err)
	}
	return fmt.Errorf("ask the group: %w: %w", ledger.ErrUnavailable, err)
}

// uses has the group use a ledger in a database when it uses none yet, and returns the one that it uses.
func (l groupOfLedger) uses(ctx context.Context, found string) (string, error) {
	for {
		is, version, err := components.ReadLineage(ctx, l.g)
		switch {
		case err != nil:
			return "", err
		case is.Kind == components.LedgerEmbedded || is.Moving != "":
			return "", fmt.Errorf("%w: it was moved meanwhile", components.ErrLedgerElsewhere)
		case is.Ledger != "" || found == "":
			return is.Ledger, nil
		}
		err = components.WriteLineage(ctx, l.g, components.Lineage{Kind: components.LedgerPostgres, Ledger: found}, version)
		if err == nil {
			return found, nil
		}
		if !isConflict(err) {
			return "", err
		}
	}
}

// reached is the last token that the group has granted. Positions are no measure: they may grow faster, and a ledger knows
// tokens only.
func (l groupOfLedger) reached(ctx context.Context) (uint64, error) {
	n, err := l.g.Numbers(ctx)
	return n.Token, err
}

// markRecord is what the group keeps of its ledger: the highest token whose result it is known to hold. A ledger that
// holds less is an older copy.
type markRecord struct {
	Format int    `json:"format"`
	Token  uint64 `json:"token"`
}

const (
	markFormat = 1
	markWithin = 5 * time.Second // a result is not held up for longer
)

func markKey() gms.Key { return gms.Key{Component: components.LedgerComponent, Key: "mark"} }

func (l groupOfLedger) mark(ctx context.Context) (uint64, error) {
	r, _, err := l.readMark(ctx)
	return r.Token, err
}

func (l groupOfLedger) readMark(ctx context.Context) (r markRecord, version uint64, err error) {
	e, err := l.g.Cache().Get(ctx, markKey())
	if errors.Is(err, gms.ErrNotFound) {
		return r, 0, nil
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, 0, fmt.Errorf("read the mark of the ledger: %w", err)
	}
	return r, e.Version, nil
}

// raise makes the mark at least token.
func (l groupOfLedger) raise(ctx context.Context, token uint64) error {
	ctx, cancel := context.WithTimeout(ctx, markWithin)
	defer cancel()
	for {
		r, version, err := l.readMark(ctx)
		if err != nil || r.Token >= token {
			return err
		}
		_, err = l.g.Cache().Commit(ctx, gms.Txn{
			Conditions: []gms.Condition{gms.VersionIs(markKey(), version)},
			Puts:       []gms.Put{putOf(markKey(), markRecord{Format: markFormat, Token: token})},
		})
		if !errors.Is(err, gms.ErrConflict) {
			return err
		}
	}
}

// ledgerClock is the ledger when it has a clock of its own, which then is the group's; nil otherwise.
func (a *App) ledgerClock() server {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return nil
	}
	s, _ := a.work.ledger.(server)
	return s
}
