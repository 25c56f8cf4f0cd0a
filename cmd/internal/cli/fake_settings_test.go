package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/cmd/internal/settings"
)

// keeper is a real one, over the fake's own store, with a server on which databases were found.
func (f *fake) keeper(ctx context.Context) (*settings.Keeper, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settings != nil {
		return f.settings, nil
	}
	at := now().Add(-26 * time.Hour)
	k := settings.New(settings.Config{Store: &kept.Memory{}, Now: func() time.Time { return at }})
	spec := func(text string) json.RawMessage { return json.RawMessage(text) }
	_, err := k.Apply(ctx, api.ApplySettings{Settings: []api.Setting{
		{Kind: "storage", Name: "disk", Spec: spec(`{"name":"disk","kind":"local","path":"/srv/backups"}`)},
		{Kind: "server", Name: "pg1", Spec: spec(`{"name":"pg1","dsn":"file:/etc/fencepost/pg1.dsn","labels":["team-a"],"schedule":{"cron":"0 22 * * *","storages":["disk"]}}`)},
		{Kind: "server", Name: "pg2", Spec: spec(`{"name":"pg2","dsn":"env:PG2"}`)},
	}})
	if err == nil {
		err = k.Note(ctx, "pg1", "n1", []string{"shop", "Old books"}, nil)
	}
	at = now().Add(-3 * time.Minute)
	if err == nil {
		err = k.Note(ctx, "pg1", "n3", []string{"shop"}, nil)
	}
	if err == nil {
		err = k.Note(ctx, "pg2", "n1", nil, context.DeadlineExceeded)
	}
	f.settings = k
	return k, err
}

func (f *fake) Settings(ctx context.Context) (api.Settings, error) {
	k, err := f.keeper(ctx)
	if err != nil {
		return api.Settings{}, err
	}
	return k.Settings(ctx)
}

func (f *fake) PlanSettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	k, err := f.keeper(ctx)
	if err != nil {
		return api.AppliedSettings{}, err
	}
	return k.Plan(ctx, r)
}

func (f *fake) ApplySettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	k, err := f.keeper(ctx)
	if err != nil {
		return api.AppliedSettings{}, err
	}
	return k.Apply(ctx, r)
}

func (f *fake) RemoveSetting(ctx context.Context, kind, name string) (api.AppliedSettings, error) {
	k, err := f.keeper(ctx)
	if err != nil {
		return api.AppliedSettings{}, err
	}
	return k.Remove(ctx, kind, name)
}

func (f *fake) Servers(ctx context.Context) ([]api.Server, error) {
	k, err := f.keeper(ctx)
	if err != nil {
		return nil, err
	}
	s, err := k.State(ctx)
	return s.Servers(), err
}

func (f *fake) LookAtServer(ctx context.Context, name string) (api.Server, error) {
	all, err := f.Servers(ctx)
	for _, s := range all {
		if s.Name == name {
			return s, err
		}
	}
	return api.Server{}, &api.Error{Code: api.CodeNotFound, Message: "there is no server \"" + name + "\" in the group's settings", Hint: "fencepost server ls"}
}

func (f *fake) ForgetDatabase(ctx context.Context, name string) error {
	k, err := f.keeper(ctx)
	if err != nil {
		return err
	}
	return k.Forget(ctx, name)
}

func (f *fake) Databases(context.Context) ([]api.Database, error) {
	day := (26 * time.Hour).Milliseconds()
	return []api.Database{
		{Name: "here", From: api.FromFile, Labels: []string{}, Needs: []string{}, RPOMS: day, Schedules: []string{"nightly", "weekly"}, Retained: true},
		{Name: "lab", From: api.FromSettings, Labels: []string{}, Needs: []string{}, Scratch: true, Schedules: []string{}},
		{Name: "pg1.old_books.3f2a", From: api.FromServer, Server: "pg1", DBName: "Old books", Labels: []string{"team-a"}, Needs: []string{}, Schedules: []string{}, Gone: before(3 * time.Minute)},
		{Name: "pg1.shop", From: api.FromServer, Server: "pg1", DBName: "shop", Labels: []string{"team-a"}, Needs: []string{"eu"}, MaxDumps: 2, RPOMS: day, Schedules: []string{"pg1.shop"}},
	}, nil
}
