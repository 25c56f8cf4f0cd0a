package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Settings keeps what belongs to the whole group, and tells what is made of it. Errors are *api.Error, or unavailable ones.
type Settings interface {
	Settings(ctx context.Context) (api.Settings, error)
	// PlanSettings tells what ApplySettings would do; nothing is changed.
	PlanSettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error)
	// ApplySettings changes all or nothing. Settings that are there already as they are asked for are no change.
	ApplySettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error)
	// RemoveSetting removes one; CodeNotFound without one, CodeConflict when another names it.
	RemoveSetting(ctx context.Context, kind, name string) (api.AppliedSettings, error)
	Servers(ctx context.Context) ([]api.Server, error)
	// LookAtServer has a server be asked soon; it does not wait for the answer.
	LookAtServer(ctx context.Context, name string) (api.Server, error)
	Databases(ctx context.Context) ([]api.Database, error)
	// ForgetDatabase is for one that is gone from its server; CodeConflict for one that is not.
	ForgetDatabase(ctx context.Context, name string) error
	// TryDatabase begins a dump and ends it again. What is wrong is in the answer, and no error.
	TryDatabase(ctx context.Context, name string) (api.Tried, error)
}

// ofSettings are the routes of the group's settings.
func (h *handler) ofSettings() []Route {
	one := api.PathSettings + "/{kind}/{name}"
	return []Route{
		get(h, api.PathSettings, "settings.read", "What belongs to the whole group: storages, servers, databases, schedules, retention, bindings.", func(r *http.Request) (api.Settings, error) {
			return h.Settings.Settings(r.Context())
		}),
		ask(h, api.RoleAdmin, api.PathSettings+"/plan", "settings.plan", "What applying settings would change; nothing is.", func(r *http.Request, want api.ApplySettings) (api.AppliedSettings, error) {
			return h.Settings.PlanSettings(r.Context(), want)
		}),
		weighed(post(h, api.RoleAdmin, api.PathSettings, "settings.apply", "Have the group have these settings: all of them, or nothing is changed. Backups stay.", func(r *http.Request, want api.ApplySettings) (api.AppliedSettings, error) {
			return h.Settings.ApplySettings(r.Context(), want)
		}), h.weighApply, ofSettingsNeeding...),
		weighed(post(h, api.RoleAdmin, one, "setting.set", "Make or replace one setting.", h.setSetting), h.weighSetting, ofSettingsNeeding...),
		weighed(remove(h, api.RoleAdmin, one, "setting.remove", "Remove one setting; backups stay.", h.removeSetting), h.weighRemoval, ofSettingsNeeding...),
		get(h, api.PathServers, "servers.read", "The servers of the settings, with the databases that were found on them.", func(r *http.Request) ([]api.Server, error) {
			return h.Settings.Servers(r.Context())
		}),
		post(h, api.RoleOperator, api.PathServers+"/{name}/look", "server.look", "Ask a server for its databases now, and not within the hour.", func(r *http.Request, _ struct{}) (api.Server, error) {
			return h.Settings.LookAtServer(r.Context(), r.PathValue("name"))
		}),
		get(h, api.PathDatabases, "databases.read", "The databases that the node which answers knows, and where they are from.", func(r *http.Request) ([]api.Database, error) {
			return h.Settings.Databases(r.Context())
		}),
		post(h, api.RoleOperator, api.PathDatabases+"/{name}/test", "database.test", "Try a database as a backup would use it, from the node that answers; nothing is read.", func(r *http.Request, _ struct{}) (api.Tried, error) {
			return h.Settings.TryDatabase(r.Context(), r.PathValue("name"))
		}).touching(h.ofNamed),
		remove(h, api.RoleAdmin, api.PathDatabases+"/{name}", "database.forget", "Expect nothing more of a database that is gone from its server; its backups stay.", func(r *http.Request) (api.Ended, error) {
			name := r.PathValue("name")
			return api.Ended{Name: name}, h.Settings.ForgetDatabase(r.Context(), name)
		}).over(h.wasDatabase),
	}
}

func (h *handler) setSetting(r *http.Request, want api.SetSetting) (api.AppliedSettings, error) {
	kind, name := r.PathValue("kind"), r.PathValue("name")
	if was, ok, err := h.setting(r.Context(), kind, name); err != nil {
		return api.AppliedSettings{}, err
	} else if ok {
		found(r.Context(), was)
	}
	return h.Settings.ApplySettings(r.Context(), settingOf(r, want))
}

// settingOf is the wish for one setting as a wish for settings.
func settingOf(r *http.Request, want api.SetSetting) api.ApplySettings {
	kind, name := r.PathValue("kind"), r.PathValue("name")
	out := api.ApplySettings{Settings: []api.Setting{{Kind: kind, Name: name, Spec: want.Spec}}}
	if want.Seen != "" {
		out.Seen = []api.SeenSetting{{Kind: kind, Name: name, Tag: want.Seen}}
	}
	return out
}

func (h *handler) removeSetting(r *http.Request) (api.Ended, error) {
	kind, name := r.PathValue("kind"), r.PathValue("name")
	was, ok, err := h.setting(r.Context(), kind, name)
	if err != nil {
		return api.Ended{}, err
	}
	if ok {
		found(r.Context(), was)
	}
	_, err = h.Settings.RemoveSetting(r.Context(), kind, name)
	return api.Ended{Name: name}, err
}

// setting is one as it is now.
func (h *handler) setting(ctx context.Context, kind, name string) (api.Setting, bool, error) {
	all, err := h.Settings.Settings(ctx)
	i := slices.IndexFunc(all.Settings, func(s api.Setting) bool { return s.Kind == kind && s.Name == name })
	if i < 0 {
		return api.Setting{}, false, err
	}
	return all.Settings[i], true, err
}
