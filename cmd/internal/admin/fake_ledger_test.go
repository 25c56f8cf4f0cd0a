package admin

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) Ledger(context.Context) (api.Ledger, error) {
	return api.Ledger{Kind: api.LedgerPostgres, ID: "L1", Node: "n1", Configured: api.LedgerPostgres, Found: "L1", Owner: "c1", Generation: 1, Mark: 7, GroupMark: 7}, f.err
}

func (f *fake) PlanLedger(ctx context.Context, do string) (api.LedgerPlan, error) {
	is, err := f.Ledger(ctx)
	return api.LedgerPlan{
		Do: do, Ledger: is,
		Backups: []api.LedgerBackup{{ID: "b1", Database: "shop", Is: "completed", Storages: []string{"nas"}, Why: "it lies whole in nas"}},
		Tasks:   []api.LedgerTask{{ID: "t1", Type: "restore", Database: "shop", Was: "planned", Is: "interrupted", Why: "it is in doubt"}},
		Away:    []api.LedgerStorage{{Storage: "s3", Problem: "no answer"}},
	}, err
}

func (f *fake) DecideLedger(ctx context.Context, do string) (api.LedgerPlan, error) {
	p, err := f.PlanLedger(ctx, do)
	p.Done = true
	return p, err
}

func (f *fake) MoveLedger(context.Context, string) (api.MovedLedger, error) {
	return api.MovedLedger{From: api.LedgerEmbedded, To: api.LedgerPostgres, ID: "L1", Tasks: 1, InUse: true}, f.err
}

func (f *fake) CopyLedger(context.Context, string) (api.MovedLedger, error) {
	return api.MovedLedger{From: api.LedgerEmbedded, To: api.LedgerPostgres, ID: "L2"}, f.err
}
