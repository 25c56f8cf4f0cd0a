package admin

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) Schedules(context.Context) ([]api.Schedule, error) {
	return []api.Schedule{{Name: "nightly", Kind: "backup", Database: "shop", Cron: "0 2 * * *", Zone: "UTC"}, {Name: "x", Next: []api.Occurrence{{}}, Last: &api.Task{ID: "t1", Storages: []string{}}}}, f.err
}

func (f *fake) RunSchedule(_ context.Context, name string) (api.Task, error) {
	return api.Task{ID: "t11", Type: "create", Database: name}, f.err
}

func (f *fake) EnableSchedule(_ context.Context, name string, on bool) (api.Schedule, error) {
	return api.Schedule{Name: name, Disabled: !on}, f.err
}

func (f *fake) Prune(_ context.Context, database string) (api.Prune, error) {
	return api.Prune{Database: database, Decisions: []api.PruneDecision{{Backup: "b1", Action: "keep"}}}, f.err
}

func (f *fake) ConfirmPrune(ctx context.Context, database string) (api.Prune, error) {
	return f.Prune(ctx, database)
}

func (f *fake) Components(context.Context) ([]api.Component, error) {
	return []api.Component{{Name: "backup"}, {Name: "x"}}, f.err
}

func (f *fake) RunComponent(_ context.Context, name string) (api.Tick, error) {
	return api.Tick{Component: name}, f.err
}

func (f *fake) Tick(_ context.Context, name, id string) (api.Tick, error) {
	return api.Tick{ID: id, Component: name, Failures: []api.Failure{{Text: "no"}}}, f.err
}

func (f *fake) PauseComponent(_ context.Context, name string, on bool) (api.Component, error) {
	return api.Component{Name: name, Paused: on}, f.err
}

func (f *fake) Items(context.Context, api.ItemQuery) ([]api.Item, error) {
	return []api.Item{{ID: "i1", Type: "file"}}, f.err
}

func (f *fake) Item(_ context.Context, _ api.ItemQuery, id string) (api.Item, error) {
	return api.Item{ID: id, Events: []api.Event{{Type: "made"}}}, f.err
}

func (f *fake) PutItem(_ context.Context, r api.PutItem) (api.Item, error) {
	return api.Item{ID: r.ID, Type: r.Type, Data: r.Data}, f.err
}

func (f *fake) AppendEvent(_ context.Context, id string, r api.AppendEvent) (api.Item, error) {
	return api.Item{ID: id, Events: []api.Event{{Type: r.Type}}}, f.err
}

func (f *fake) ForgetEvents(context.Context, string, api.ForgetEvents) (api.Forgotten, error) {
	return api.Forgotten{Events: 1}, f.err
}

func (f *fake) Claims(context.Context) ([]api.Claim, error) {
	return []api.Claim{{Component: "backup", Item: "t1", Token: 7}}, f.err
}

func (f *fake) EndClaim(_ context.Context, r api.ClaimName, quarantine bool) (api.Claim, error) {
	c := api.Claim{Component: r.Component, Item: r.Item, Token: r.Token, State: "free"}
	if quarantine {
		c.State = "quarantined"
	}
	return c, f.err
}

func (f *fake) TestNotify(_ context.Context, r api.TestNotify) ([]api.NotifyResult, error) {
	return []api.NotifyResult{{Receiver: r.Receiver}}, f.err
}

func (f *fake) Reload(context.Context) (api.Reload, error) {
	return api.Reload{File: "/etc/fencepost/node.yaml"}, f.err
}

func (f *fake) Usage(context.Context) (api.Usage, error) {
	return api.Usage{Storages: []api.StorageUsage{{Storage: "a", Bytes: 1}}}, f.err
}
