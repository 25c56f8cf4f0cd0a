package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
)

// ledgers is the life of the group's ledger, for people. It needs no work of the node: a node that waits for its ledger is
// asked just as well.
type ledgers struct{ a *App }

// Ledger implements admin.Ledgers.
func (s ledgers) Ledger(ctx context.Context) (api.Ledger, error) {
	a := s.a
	l, _, err := components.ReadLineage(ctx, a.group)
	if err != nil {
		return api.Ledger{}, err
	}
	out := api.Ledger{Kind: l.Kind, ID: l.Ledger, Node: a.cfg.Node, Configured: a.ledgerKind()}
	if out.GroupMark, err = (groupOfLedger{a.group}).mark(ctx); err != nil {
		return out, err
	}
	if a.cfg.Ledger.DSN.Given() {
		r, err := a.openRepair(ctx)
		if err != nil {
			out.Problem, out.Hint = err.Error(), HintOf(err, "")
			return out, nil
		}
		defer r.Close()
		if in, made := r.Lineage(); made {
			out.Found, out.Owner, out.Generation, out.Mark, out.Frozen = in.Ledger, in.Cluster, in.Generation, in.Mark, in.Frozen
			out.Problem = in.Reason
		}
	}
	problem := a.waitsFor()
	if problem == nil {
		problem = a.ledgerStands(ctx)
	}
	if problem != nil {
		out.Problem, out.Hint = problem.Error(), HintOf(problem, "")
	}
	return out, nil
}

// ledgerStands says why the ledger that this node works with must not be used now; nil when it may, or there is none yet.
func (a *App) ledgerStands(ctx context.Context) error {
	a.mu.Lock()
	w := a.work
	a.mu.Unlock()
	if w == nil {
		return nil
	}
	if db, ok := w.ledger.(*ledgerdb.Ledger); ok {
		return db.Stands(ctx)
	}
	return a.mayOpen(ctx)
}

func (a *App) openRepair(ctx context.Context) (*ledgerdb.Repair, error) {
	cfg, err := a.databaseLedger()
	if err != nil {
		return nil, err
	}
	return ledgerdb.OpenRepair(ctx, cfg)
}

// verdict is a decision about the ledger, weighed: what it would change.
type verdict struct {
	repair  *ledgerdb.Repair // nil: the ledger is in the group's own state
	amend   ledgerdb.Amendment
	plan    api.LedgerPlan
	group   components.Lineage
	version uint64 // of it
}

func (v *verdict) close() {
	if v.repair != nil {
		v.repair.Close()
	}
}

// PlanLedger implements admin.Ledgers.
func (s ledgers) PlanLedger(ctx context.Context, do string) (api.LedgerPlan, error) {
	v, err := s.weigh(ctx, do)
	if err != nil {
		return api.LedgerPlan{}, err
	}
	defer v.close()
	return v.plan, nil
}

// DecideLedger implements admin.Ledgers. The ledger is changed first, and then what the group says of it: whoever is
// interrupted in between decides again.
func (s ledgers) DecideLedger(ctx context.Context, do string) (api.LedgerPlan, error) {
	v, err := s.weigh(ctx, do)
	if err != nil {
		return api.LedgerPlan{}, err
	}
	defer v.close()
	s.a.log.Warn("app: an operator has decided about the ledger", "do", do, "backups", len(v.plan.Backups), "tasks", len(v.plan.Tasks))
	next := components.Lineage{Kind: components.LedgerPostgres}
	var is ledgerdb.Lineage
	switch {
	case v.repair == nil:
		next.Kind = components.LedgerEmbedded
	case do == api.LedgerInit:
		cfg, err := s.a.databaseLedger()
		if err != nil {
			return v.plan, err
		}
		if is, err = ledgerdb.Found(ctx, cfg, ledger.Contents{Backups: v.amend.Backups}, ""); err != nil {
			return v.plan, err
		}
	default:
		if err := v.repair.Amend(ctx, v.amend); err != nil {
			return v.plan, err
		}
		is, _ = v.repair.Lineage()
	}
	next.Ledger = is.Ledger
	if v.group.Kind != next.Kind || v.group.Ledger != next.Ledger || v.group.Moving != "" {
		if err := components.WriteLineage(ctx, s.a.group, next, v.version); err != nil {
			return v.plan, err
		}
	}
	if is.Mark > 0 {
		if err := (groupOfLedger{s.a.group}).raise(ctx, is.Mark); err != nil {
			return v.plan, err
		}
	}
	s.a.wakeRunners()
	v.plan.Done = true
	v.plan.Ledger, err = s.Ledger(ctx)
	return v.plan, err
}

// weigh says what a decision would change, or why it is not one to be made of this ledger. An older copy is frozen by it.
func (s ledgers) weigh(ctx context.Context, do string) (v *verdict, err error) {
	a := s.a
	if a.cfg.Role != configs.RoleCore {
		return nil, &api.Error{Code: api.CodeUnavailable, Message: "this node is a " + string(a.cfg.Role) + ", which has no storages to compare a ledger with", Hint: "ask a core member"}
	}
	v = &verdict{plan: api.LedgerPlan{Do: do, Backups: []api.LedgerBackup{}, Tasks: []api.LedgerTask{}, Away: []api.LedgerStorage{}}}
	if v.group, v.version, err = components.ReadLineage(ctx, a.group); err != nil {
		return nil, err
	}
	if v.group.Kind == components.LedgerEmbedded || !a.cfg.Ledger.DSN.Given() {
		return v, s.weighOwn(ctx, do, v)
	}
	if v.repair, err = a.openRepair(ctx); err != nil {
		return nil, err
	}
	defer func(r *ledgerdb.Repair) {
		if err != nil {
			r.Close()
		}
	}(v.repair)
	in, made := v.repair.Lineage()
	if do == api.LedgerReconcile && a.owns(in, made, v.group) {
		if err := v.repair.Compare(ctx); err != nil {
			return nil, err
		}
		in, made = v.repair.Lineage()
	}
	if err := a.mayDecide(do, in, made, v.group); err != nil {
		return nil, err
	}
	d := pipeline.Doubtful{Older: do == api.LedgerReconcile}
	if made {
		if d.Backups, d.Active, err = v.repair.Holding(ctx); err != nil {
			return nil, err
		}
	}
	if d.Held, err = a.heldTasks(ctx); err != nil {
		return nil, err
	}
	r, err := pipeline.Reconcile(ctx, a.wholeOutfit(ctx).catalog, d, a.clock.Now())
	if err != nil {
		return nil, err
	}
	v.take(r)
	v.plan.Ledger, err = s.Ledger(ctx)
	return v, err
}

// weighOwn is weigh for a ledger in the group's own state, of which only a move that was interrupted can be taken back.
func (s ledgers) weighOwn(ctx context.Context, do string, v *verdict) (err error) {
	switch {
	case v.group.Kind == components.LedgerPostgres:
		return &api.Error{Code: api.CodeConflict, Message: "the group keeps its ledger in a database, and the file of node " + s.a.cfg.Node + " names none", Hint: "ask a node whose file has ledger.dsn"}
	case do != api.LedgerReconcile:
		return &api.Error{Code: api.CodeConflict, Message: "the group keeps its ledger in its own state", Hint: "to have it in a database: fencepost ledger move --to DSN"}
	case v.group.Moving == "":
		return &api.Error{Code: api.CodeConflict, Message: "the ledger is in use: there is nothing to reconcile", Hint: "fencepost storage check compares one storage with it"}
	}
	v.plan.Ledger, err = s.Ledger(ctx)
	return err
}

// owns tells whether a ledger in a database is the one that the group uses.
func (a *App) owns(in ledgerdb.Lineage, made bool, group components.Lineage) bool {
	return made && in.Cluster == a.group.ClusterID() && (group.Ledger == "" || group.Ledger == in.Ledger)
}

// mayDecide says why a decision is not one to be made of a ledger in a database.
func (a *App) mayDecide(do string, in ledgerdb.Lineage, made bool, group components.Lineage) error {
	own := a.owns(in, made, group)
	var message, hint string
	switch {
	case do == api.LedgerInit && made:
		message, hint = "the database holds a ledger already, of group "+in.Cluster, "fencepost ledger reconcile opens the group's own one, fencepost ledger adopt takes over another"
	case do != api.LedgerInit && !made:
		message, hint = "the database holds no ledger", "one that is lost for good is begun anew by: fencepost ledger init"
	case do == api.LedgerAdopt && own:
		message, hint = "the ledger is the group's own", "one that is frozen: fencepost ledger reconcile"
	case do == api.LedgerReconcile && !own:
		message, hint = "the ledger in the database is not the one that the group uses", "if the group is to use it from now on: fencepost ledger adopt"
	case do == api.LedgerReconcile && !in.Frozen && group.Moving == "":
		message, hint = "the ledger is in use: there is nothing to reconcile", "fencepost storage check compares one storage with it"
	default:
		return nil
	}
	return &api.Error{Code: api.CodeConflict, Message: message, Hint: hint}
}

// heldTasks are the tokens of the claims on tasks that open runs hold.
func (a *App) heldTasks(ctx context.Context) (map[string]uint64, error) {
	if err := a.group.Sync(ctx); err != nil {
		return nil, err
	}
	held := map[string]uint64{}
	for _, c := range a.group.Claims() {
		if ofTasks(c.Component) && !c.Orphan {
			held[c.Item] = c.Token
		}
	}
	return held, nil
}

// wholeOutfit is the present one, with the group's settings also on a node that does not work yet.
func (a *App) wholeOutfit(ctx context.Context) *outfit {
	a.mu.Lock()
	working := a.work != nil
	a.mu.Unlock()
	if working {
		return a.outfitNow()
	}
	a.fitting.Lock()
	defer a.fitting.Unlock()
	fit := a.tailor(ctx, a.outfitNow(), a.settingsNow())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fit = fit
	return fit
}

// take notes what has to be changed, for the ledger and for people.
func (v *verdict) take(r pipeline.Reconciliation) {
	for _, b := range r.Backups {
		shown := api.LedgerBackup{ID: b.Entry.ID, Database: b.Entry.Database, Was: string(b.Was), Is: string(b.Entry.State), Storages: []string{}, Why: b.Why}
		for _, c := range b.Entry.Copies {
			if b.Entry.State == ledger.BackupCompleted && c.State == ledger.CopyPresent {
				shown.Storages = append(shown.Storages, c.Storage)
			}
		}
		v.plan.Backups = append(v.plan.Backups, shown)
		v.amend.Backups = append(v.amend.Backups, b.Entry)
	}
	for _, t := range r.Tasks {
		v.plan.Tasks = append(v.plan.Tasks, api.LedgerTask{
			ID: t.Task.ID, Type: string(t.Task.Type), Database: t.Task.Database, Backup: t.Task.Backup, Was: string(t.Was), Is: string(t.Task.State), Why: t.Task.Error,
		})
		v.amend.Tasks = append(v.amend.Tasks, t.Task)
	}
	for name, err := range r.Away {
		v.plan.Away = append(v.plan.Away, api.LedgerStorage{Storage: name, Problem: err.Error()})
	}
	slices.SortFunc(v.plan.Away, func(a, b api.LedgerStorage) int { return strings.Compare(a.Storage, b.Storage) })
}

// MoveLedger implements admin.Ledgers.
func (s ledgers) MoveLedger(ctx context.Context, to string) (api.MovedLedger, error) {
	return s.transfer(ctx, to, true)
}

// CopyLedger implements admin.Ledgers.
func (s ledgers) CopyLedger(ctx context.Context, to string) (api.MovedLedger, error) {
	if to == components.LedgerEmbedded {
		return api.MovedLedger{}, &api.Error{Code: api.CodeUsage, Message: "the group's own state holds one ledger, the one in use", Hint: "copy into a database, or move"}
	}
	return s.transfer(ctx, to, false)
}

// targetOf is the configuration of a ledger in a database that a person names; nil for the group's own state.
func (a *App) targetOf(ctx context.Context, to string) (*ledgerdb.Config, error) {
	if to == components.LedgerEmbedded {
		return nil, nil
	}
	dsn, err := configs.HandedDSN(to)
	if err != nil {
		return nil, &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	text, err := dsn.Resolve()
	if err != nil {
		return nil, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s: %s", to, err), Hint: "node " + a.cfg.Node + " follows it, and has to have what it refers to"}
	}
	cfg := ledgerdb.Config{DSN: text, Cluster: a.group.ClusterID(), Protocol: a.group.Protocol(), Mark: groupOfLedger{a.group}.mark, Logger: a.log}
	r, err := ledgerdb.OpenRepair(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if in, made := r.Lineage(); made {
		return nil, &api.Error{Code: api.CodeConflict, Message: "there is a ledger already, of group " + in.Cluster, Hint: "name an empty database"}
	}
	return &cfg, nil
}
