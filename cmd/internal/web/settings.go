package web

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// settingsData is the node, the accounts and the tokens.
type settingsData struct {
	Session api.Session
	Status  api.Status
	Users   []api.User // for admins
	Tokens  []api.Token
	Roles   []api.Role // that who asks may give
	Admin   bool
	Asked   url.Values    // the form of a new user or token, when it is shown again
	Reload  *api.Reload   // what became of a reload
	New     *api.NewToken // shown this once
}

func settings(v *visit) (any, error) { return v.settings() }

func (v *visit) settings() (d settingsData, err error) {
	d = settingsData{Admin: v.may(api.RoleAdmin), Asked: v.form}
	for _, r := range api.Roles() {
		if v.may(r) {
			d.Roles = append(d.Roles, r)
		}
	}
	if d.Session, err = ask[api.Session](v, api.PathSession); err != nil {
		return d, err
	}
	if d.Status, err = ask[api.Status](v, api.PathStatus); err != nil {
		return d, err
	}
	if d.Tokens, err = ask[[]api.Token](v, api.PathTokens); err != nil {
		return d, err
	}
	if d.Admin {
		d.Users, err = ask[[]api.User](v, api.PathUsers)
	}
	return d, err
}

// settingsWith shows the settings with something that is shown this once.
func (v *visit) settingsWith(show func(*settingsData)) (string, error) {
	d, err := v.settings()
	if err != nil {
		return "", err
	}
	d.Asked = nil // the form was taken
	show(&d)
	i := slices.IndexFunc(v.Views(), func(page View) bool { return page.Path == pathSettings })
	return v.answers(v.Views()[i], d)
}

const pathSettings = "/settings"

func ofSettings() []Deed {
	user := "/settings/users/{name}"
	set := func(verb string, change api.SetUser) Deed {
		return Deed{Path: user + "/" + verb, Action: "user.set", again: pathSettings, do: func(v *visit) (string, error) {
			_, err := tell[api.User](v, api.UserPath(v.r.PathValue("name")), change)
			return pathSettings + "?done=user", err
		}}
	}
	yes, no := true, false
	return []Deed{
		{Path: "/settings/users", Action: "user.add", Fields: []string{"name", "role", "password"}, again: pathSettings, do: func(v *visit) (string, error) {
			_, err := tell[api.User](v, api.PathUsers, api.AddUser{Name: v.form.Get("name"), Role: api.Role(v.form.Get("role")), Password: api.Secret(v.form.Get("password"))})
			return pathSettings + "?done=adduser", err
		}},
		set("disable", api.SetUser{Disabled: &yes}), set("enable", api.SetUser{Disabled: &no}), set("unlock", api.SetUser{Unlock: true}), set("log-out", api.SetUser{LogOut: true}),
		{Path: user + "/role", Action: "user.set", Fields: []string{"role"}, again: pathSettings, do: func(v *visit) (string, error) {
			role := api.Role(v.form.Get("role"))
			_, err := tell[api.User](v, api.UserPath(v.r.PathValue("name")), api.SetUser{Role: &role})
			return pathSettings + "?done=user", err
		}},
		{Path: user + "/remove", Action: "user.remove", again: pathSettings, do: func(v *visit) (string, error) {
			_, err := call[api.Ended](v, http.MethodDelete, api.UserPath(v.r.PathValue("name")), struct{}{})
			return pathSettings + "?done=removeuser", err
		}},
		{Path: "/settings/tokens", Action: "token.add", Fields: []string{"title", "role", "days", "approves"}, again: pathSettings, do: addToken},
		{Path: "/settings/tokens/{id}/remove", Action: "token.remove", again: pathSettings, do: func(v *visit) (string, error) {
			_, err := call[api.Ended](v, http.MethodDelete, api.TokenPath(v.r.PathValue("id")), struct{}{})
			return pathSettings + "?done=removetoken", err
		}},
		{Path: "/settings/reload", Action: "config.reload", again: pathSettings, do: func(v *visit) (string, error) {
			got, err := tell[api.Reload](v, api.PathReload, struct{}{})
			if err != nil {
				return "", err
			}
			return v.settingsWith(func(d *settingsData) { d.Reload = &got })
		}},
	}
}

// addToken shows the secret of a new token, this once: it is in no address and no history.
func addToken(v *visit) (string, error) {
	days, err := v.whole("days")
	if err != nil {
		return "", err
	}
	got, err := tell[api.NewToken](v, api.PathTokens, api.AddToken{Name: v.form.Get("title"), Role: api.Role(v.form.Get("role")), ExpiresMS: int64(days) * (24 * time.Hour).Milliseconds(), Approves: v.checked("approves")})
	if err != nil {
		return "", err
	}
	return v.settingsWith(func(d *settingsData) { d.New = &got })
}
