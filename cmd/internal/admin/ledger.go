package admin

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Ledgers is the life of the group's ledger. All but Ledger may take as long as reading all storages, or all of the ledger.
type Ledgers interface {
	Ledger(ctx context.Context) (api.Ledger, error)
	// PlanLedger tells what DecideLedger would change; nothing is, but that an older copy is frozen.
	PlanLedger(ctx context.Context, do string) (api.LedgerPlan, error)
	// DecideLedger changes all of it or nothing. CodeConflict when the ledger is not one for that decision.
	DecideLedger(ctx context.Context, do string) (api.LedgerPlan, error)
	// MoveLedger has the group use another one, which was empty; CodeBusy while a task has begun.
	MoveLedger(ctx context.Context, to string) (api.MovedLedger, error)
	CopyLedger(ctx context.Context, to string) (api.MovedLedger, error)
}

func (h *handler) ofLedger() []Route {
	decide := func(do string) func(*http.Request, struct{}) (api.LedgerPlan, error) {
		return func(r *http.Request, _ struct{}) (api.LedgerPlan, error) {
			return h.Ledgers.DecideLedger(r.Context(), do)
		}
	}
	decision := func(do, summary string) Route {
		r := post(h, api.RoleAdmin, api.PathLedger+"/"+do, "ledger."+do, summary, decide(do)).taking(storageWork).over(h.wasLedger)
		return weighed(r, h.weighLedger(do), api.ApproveLedger)
	}
	return []Route{
		get(h, api.PathLedger, "ledger.read", "The group's ledger, as the node that answers reaches it.", func(r *http.Request) (api.Ledger, error) { return h.Ledgers.Ledger(r.Context()) }),
		ask(h, api.RoleAdmin, api.PathLedger+"/plan", "ledger.plan", "What a decision about the ledger would change.", h.planLedger).taking(storageWork),
		decision(api.LedgerReconcile, "Have a frozen ledger say what the storages hold, and open it."),
		decision(api.LedgerAdopt, "Have the group use a ledger that is not its own."),
		decision(api.LedgerInit, "Begin a ledger with what the storages hold."),
		weighed(post(h, api.RoleAdmin, api.PathLedger+"/move", "ledger.move", "Have the group keep its ledger elsewhere.", func(r *http.Request, want api.MoveLedger) (api.MovedLedger, error) {
			if err := missing("to", want.To); err != nil {
				return api.MovedLedger{}, err
			}
			return h.Ledgers.MoveLedger(r.Context(), want.To)
		}).taking(storageWork).over(h.wasLedger), h.weighMove, api.ApproveLedger),
		post(h, api.RoleAdmin, api.PathLedger+"/copy", "ledger.copy", "Copy the ledger into an empty database.", func(r *http.Request, want api.MoveLedger) (api.MovedLedger, error) {
			if err := missing("to", want.To); err != nil {
				return api.MovedLedger{}, err
			}
			return h.Ledgers.CopyLedger(r.Context(), want.To)
		}).taking(storageWork),
	}
}

func (h *handler) planLedger(r *http.Request, want api.PlanLedger) (api.LedgerPlan, error) {
	switch want.Do {
	case api.LedgerReconcile, api.LedgerAdopt, api.LedgerInit:
		return h.Ledgers.PlanLedger(r.Context(), want.Do)
	}
	return api.LedgerPlan{}, &api.Error{Code: api.CodeUsage, Message: "do: want reconcile, adopt or init"}
}
