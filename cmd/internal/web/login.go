package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const (
	pathLogIn   = "/log-in"
	actionLogIn = "session.begin"
)

// logInPath is the log-in that leads to a page afterwards.
func logInPath(to string) string {
	if to == "/" || !ownPage(to) {
		return pathLogIn
	}
	return pathLogIn + "?" + url.Values{"to": {to}}.Encode()
}

// ownPage tells whether a text is a path of ours, which a browser cannot read as another site's address.
func ownPage(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") &&
		!strings.ContainsAny(to, "\\\r\n\t") && !strings.HasPrefix(to, pathLogIn)
}

// logInForm is what the log-in shows.
type logInForm struct{ Name, To string }

// errShown says that a page has been answered already.
var errShown = errors.New("it is answered already")

func (s *Site) logInPage() View {
	return View{Path: pathLogIn, Title: "Log in", sheet: "login", data: func(v *visit) (any, error) {
		if v.form == nil && v.who.Name != "" {
			v.lead("/")
			return nil, errShown
		}
		f := logInForm{Name: v.form.Get("name"), To: v.r.URL.Query().Get("to")}
		if v.form != nil {
			f.To = v.form.Get("to")
		}
		return f, nil
	}}
}

func (s *Site) ofSession() []Deed {
	return []Deed{
		{Path: pathLogIn, Action: actionLogIn, Fields: []string{"name", "password", "to"}, again: pathLogIn, do: func(v *visit) (string, error) {
			_, err := tell[api.Session](v, api.PathSession, api.LogIn{Name: v.form.Get("name"), Password: api.Secret(v.form.Get("password"))})
			to := v.form.Get("to")
			if !ownPage(to) {
				to = "/"
			}
			return to, err
		}},
		{Path: "/log-out", Action: "session.end", do: func(v *visit) (string, error) {
			_, err := call[api.Ended](v, http.MethodDelete, api.PathSession, struct{}{})
			return pathLogIn, err
		}},
	}
}
