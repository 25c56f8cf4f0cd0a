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
	noteResumed = "Nothing was done yet: look at what you had typed, and press the button again."
	mostCarried = 16 << 10 // of a form through the log-in, as it is sent
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

// logInForm is what the log-in shows. Path and Form are a form that was sent when its session had ended: it goes through the
// log-in, and is shown again behind it.
type logInForm struct {
	Name, To   string
	Path, Form string
	Ended      bool // the session
	Lost       bool // what was typed is too long to be carried
}

// errShown says that a page has been answered already.
var errShown = errors.New("it is answered already")

func (s *Site) logInPage() View {
	return View{Path: pathLogIn, Title: "Log in", sheet: "login", data: func(v *visit) (any, error) {
		if v.form == nil && v.who.Name != "" {
			v.lead("/")
			return nil, errShown
		}
		if v.form == nil {
			return logInForm{To: v.r.URL.Query().Get("to")}, nil
		}
		return logInForm{Name: v.form.Get("name"), To: v.form.Get("to"), Path: v.form.Get("path"), Form: v.form.Get("form")}, nil
	}}
}

// logInFirst answers a form whose session has ended, or that never had one: nothing is done, and what was typed is not lost.
// Passwords are typed again.
func (v *visit) logInFirst(d Deed) {
	f := logInForm{Ended: true}
	if d.again != "" {
		f.To = filled(d.again, v.r)
	}
	typed, all := url.Values{}, ""
	for _, name := range d.Fields {
		if name != "password" && v.form.Has(name) {
			typed[name] = v.form[name]
			all += strings.Join(typed[name], "")
		}
	}
	switch text := typed.Encode(); {
	case all == "" || d.again == "":
	case len(text) > mostCarried:
		f.Lost = true
	default:
		f.Path, f.Form = v.r.URL.EscapedPath(), text
	}
	v.send(http.StatusUnauthorized, v.logInPage(), f)
}

// resumed shows who is logged in again the way back to the form that came without a session.
func (v *visit) resumed(token string) (string, error) {
	form, err := url.ParseQuery(v.form.Get("form"))
	if err != nil || !ownPage(v.form.Get("path")) {
		return "", &api.Error{Code: api.CodeUsage, Message: "what was typed before the log-in is not understood", Hint: "go to the page again, by the menu"}
	}
	return v.answers(View{Title: "Logged in", sheet: "resume"}, resumeData{v.form.Get("path"), token, form})
}

// resumeData is a form that is to be shown again.
type resumeData struct {
	Path, Token string
	Form        url.Values
}

func (s *Site) ofSession() []Deed {
	return []Deed{
		{Path: pathLogIn, Action: actionLogIn, Fields: []string{"name", "password", "to", "path", "form"}, again: pathLogIn, do: func(v *visit) (string, error) {
			session, err := tell[api.Session](v, api.PathSession, api.LogIn{Name: v.form.Get("name"), Password: api.Secret(v.form.Get("password"))})
			if err == nil && v.form.Get("path") != "" {
				return v.resumed(session.FormToken)
			}
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
