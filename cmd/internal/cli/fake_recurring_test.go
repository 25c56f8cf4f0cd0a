package cli

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) Schedules(context.Context) ([]api.Schedule, error) {
	next := now().Add(14 * time.Hour)
	return []api.Schedule{
		{Name: "nightly", Kind: "backup", Database: "shop", Cron: "30 2 * * *", Zone: "Europe/Berlin", Next: []api.Occurrence{{Due: next, Start: next.Add(5 * time.Minute)}}, Last: &f.tasks[0]},
		{Name: "weekly", Kind: "verify", Database: "shop", Cron: "@weekly", Zone: "UTC", Disabled: true, By: "ann", Next: []api.Occurrence{}},
	}, nil
}

func (f *fake) RunSchedule(context.Context, string) (api.Task, error) {
	return f.plan(api.Task{Type: "create", Database: "shop"}), nil
}

func (f *fake) EnableSchedule(ctx context.Context, name string, on bool) (api.Schedule, error) {
	all, err := f.Schedules(ctx)
	for _, s := range all {
		if s.Name == name {
			s.Disabled, s.By = !on, "ann"
			return s, err
		}
	}
	return api.Schedule{}, &api.Error{Code: api.CodeNotFound, Message: "there is no schedule " + name, Hint: "fencepost schedule ls lists them"}
}

func (f *fake) Prune(_ context.Context, database string) (api.Prune, error) {
	return api.Prune{Database: database, Decisions: []api.PruneDecision{
		{Backup: "b4", AsOf: before(time.Hour), Action: "keep", Reason: "the newest of its day", Rules: []string{"daily"}},
		{Backup: "b1", AsOf: before(73 * time.Hour), Action: "held", Reason: "no rule holds it; nothing goes now"},
	}, Stops: []string{"share: half of the backups would go at once"}}, nil
}

func (f *fake) ConfirmPrune(ctx context.Context, database string) (api.Prune, error) {
	p, err := f.Prune(ctx, database)
	p.Stops, p.Decisions[1].Action = []string{}, "remove"
	return p, err
}
