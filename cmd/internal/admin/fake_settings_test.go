package admin

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) Settings(context.Context) (api.Settings, error) {
	return api.Settings{Version: 1, Settings: []api.Setting{{Kind: "database", Name: "shop", Spec: []byte(`{"name":"shop"}`)}, {Kind: "x", Name: "x", Spec: []byte(`{"name":"x"}`)}}}, f.err
}

func (f *fake) PlanSettings(context.Context, api.ApplySettings) (api.AppliedSettings, error) {
	return api.AppliedSettings{Version: 1, Changes: []api.SettingChange{{Kind: "database", Name: "shop", Change: api.SettingChanged, Keys: []string{"dsn"}}}}, f.err
}

func (f *fake) ApplySettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	return f.PlanSettings(ctx, r)
}

func (f *fake) RemoveSetting(ctx context.Context, _, _ string) (api.AppliedSettings, error) {
	return f.PlanSettings(ctx, api.ApplySettings{})
}

func (f *fake) Servers(context.Context) ([]api.Server, error) {
	return []api.Server{{Name: "pg1", Databases: []api.FoundDatabase{{Name: "pg1.shop", DBName: "shop"}}}}, f.err
}

func (f *fake) LookAtServer(_ context.Context, name string) (api.Server, error) {
	return api.Server{Name: name, Databases: []api.FoundDatabase{}}, f.err
}

func (f *fake) Databases(context.Context) ([]api.Database, error) {
	return []api.Database{{Name: "shop", From: api.FromFile, Labels: []string{}, Needs: []string{}, Schedules: []string{}}, {Name: "x", From: api.FromServer}}, f.err
}

func (f *fake) ForgetDatabase(context.Context, string) error { return f.err }
