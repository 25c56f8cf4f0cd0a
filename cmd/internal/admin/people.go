package admin

import (
	"errors"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ofAccounts are the routes of users, tokens and sessions.
func (h *handler) ofAccounts() []Route {
	user, token := api.PathUsers+"/{name}", api.PathTokens+"/{id}"
	return []Route{
		get(h, api.PathSession, "session.read", "Who asks.", h.session),
		{
			Method: http.MethodPost, Path: api.PathSession, Action: "session.begin", Summary: "Log in: the answer sets a cookie.",
			In: reflect.TypeFor[api.LogIn](), Out: reflect.TypeFor[api.Session](), Answers: jsonType, Audited: true, Within: usualWithin, serve: h.logIn,
		},
		{
			Method: http.MethodDelete, Path: api.PathSession, Action: "session.end", Summary: "Log out.", Role: api.RoleViewer,
			In: reflect.TypeFor[struct{}](), Out: reflect.TypeFor[api.Ended](), Answers: jsonType, Audited: true, Within: usualWithin, serve: h.logOut,
		},
		get(h, api.PathUsers, "users.read", "Who may log in.", func(r *http.Request) ([]api.User, error) { return h.Accounts.Users(r.Context()) }).by(api.RoleAdmin),
		post(h, api.RoleAdmin, api.PathUsers, "user.add", "Make a user.", h.addUser),
		post(h, api.RoleAdmin, user, "user.set", "Change a user; what makes them another one ends their sessions.", h.setUser),
		remove(h, api.RoleAdmin, user, "user.remove", "Remove a user with their sessions and tokens.", h.removeUser),
		get(h, api.PathTokens, "tokens.read", "The tokens of who asks; for admins, all.", h.tokens),
		post(h, api.RoleViewer, api.PathTokens, "token.add", "Make a token; its secret is shown this once.", h.addToken),
		remove(h, api.RoleViewer, token, "token.remove", "End a token.", h.removeToken),
	}
}

// cookieNames are the names of the session's cookie, with TLS and without: a name with __Host- is believed by browsers only
// when it came over TLS and from this very host.
const (
	cookieSecure = "__Host-fencepost"
	cookiePlain  = "fencepost"
)

// cookieOf is the session's cookie in a request; empty when there is none.
func cookieOf(r *http.Request) string {
	name := cookiePlain
	if r.TLS != nil {
		name = cookieSecure
	}
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// cookie is the session's cookie in an answer; the empty one ends it.
func cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: cookiePlain, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if r.TLS != nil {
		c.Name, c.Secure = cookieSecure, true
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (h *handler) session(r *http.Request) (api.Session, error) {
	actor, _ := accounts.Of(r.Context())
	return sessionOf(actor, cookieOf(r)), nil
}

func sessionOf(a accounts.Actor, cookie string) api.Session {
	out := api.Session{Name: a.Name, Role: a.Role, Via: a.Via}
	if a.Via == accounts.ViaSession {
		out.FormToken = accounts.FormToken(cookie)
	}
	if !a.Ends.IsZero() {
		out.Ends = &a.Ends
	}
	return out
}

// logIn is the only route that needs nobody to be known, and so the only one that is limited.
func (h *handler) logIn(w http.ResponseWriter, r *http.Request) {
	var want api.LogIn
	if err := readBody(w, r, &want); err != nil {
		h.fail(w, r, err)
		return
	}
	s, err := h.begin(w, r, want.Name, string(want.Password))
	answer(h, w, r, http.StatusAccepted, sessionOf(s.Actor, s.Cookie), err)
}

// LogIn opens a session for who knows the password, and sets its cookie. A session that the browser had is ended. Log-ins
// are in the log, good ones in the audit trail, too.
func (a *API) LogIn(w http.ResponseWriter, r *http.Request, name, password string) error {
	_, err := a.h.begin(w, r, name, password)
	return err
}

func (h *handler) begin(w http.ResponseWriter, r *http.Request, name, password string) (accounts.Session, error) {
	address := remote(r)
	if wait := h.limiter.Take(address, time.Now()); wait > 0 {
		return accounts.Session{}, &api.Error{Code: api.CodeTooMany, Message: "there were too many log-ins", Hint: "try again in " + max(time.Second, wait.Round(time.Second)).String()}
	}
	s, err := h.Accounts.LogIn(r.Context(), name, password, address)
	if err != nil {
		h.Logger.WarnContext(r.Context(), "admin: a log-in was refused", "name", shortened(name), "address", address)
		return s, err
	}
	within := r.WithContext(accounts.With(r.Context(), s.Actor))
	_, err = recorded(h, within, "session.begin", nil, func(*http.Request) (struct{}, error) { return struct{}{}, nil })
	if err != nil {
		return s, errors.Join(err, h.Accounts.LogOut(r.Context(), s.Cookie))
	}
	if old := cookieOf(r); old != "" {
		if err := h.Accounts.LogOut(r.Context(), old); err != nil {
			h.Logger.WarnContext(r.Context(), "admin: the session before a log-in is not ended", "error", err)
		}
	}
	http.SetCookie(w, cookie(r, s.Cookie))
	return s, nil
}

// shortened is a name that may be anything, for the log.
func shortened(name string) string { return name[:min(len(name), 64)] }

// remote is the address that a request came from.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

func (h *handler) logOut(w http.ResponseWriter, r *http.Request) {
	var nothing struct{}
	if err := readBody(w, r, &nothing); err != nil {
		h.fail(w, r, err)
		return
	}
	actor, _ := accounts.Of(r.Context())
	err := h.end(w, r)
	answer(h, w, r, http.StatusAccepted, api.Ended{Name: actor.Name}, err)
}

// LogOut ends the session of a request.
func (a *API) LogOut(w http.ResponseWriter, r *http.Request) error { return a.h.end(w, r) }

func (h *handler) end(w http.ResponseWriter, r *http.Request) error {
	actor, _ := accounts.Of(r.Context())
	if actor.Via != accounts.ViaSession {
		return &api.Error{Code: api.CodeUsage, Message: "there is no session: who asks came with a token or over the socket"}
	}
	_, err := recorded(h, r, "session.end", nil, func(r *http.Request) (struct{}, error) {
		return struct{}{}, h.Accounts.LogOut(r.Context(), cookieOf(r))
	})
	http.SetCookie(w, cookie(r, ""))
	return err
}

func (h *handler) addUser(r *http.Request, want api.AddUser) (api.User, error) {
	actor, _ := accounts.Of(r.Context())
	return h.Accounts.AddUser(r.Context(), accounts.NewUser{Name: want.Name, Role: want.Role, Password: string(want.Password)}, actor.Name)
}

func (h *handler) setUser(r *http.Request, want api.SetUser) (api.User, error) {
	was, err := h.Accounts.User(r.Context(), r.PathValue("name"))
	if err != nil {
		return api.User{}, err
	}
	found(r.Context(), was)
	return h.Accounts.SetUser(r.Context(), was.Name, want)
}

func (h *handler) removeUser(r *http.Request) (api.Ended, error) {
	was, err := h.Accounts.User(r.Context(), r.PathValue("name"))
	if err != nil {
		return api.Ended{}, err
	}
	found(r.Context(), was)
	return api.Ended{Name: was.Name}, h.Accounts.RemoveUser(r.Context(), was.Name)
}

// ownerOf is whose tokens somebody may see and end: "" = everybody's.
func ownerOf(a accounts.Actor) string {
	if a.Role.May(api.RoleAdmin) {
		return ""
	}
	return a.Name
}

func (h *handler) tokens(r *http.Request) ([]api.Token, error) {
	actor, _ := accounts.Of(r.Context())
	return h.Accounts.Tokens(r.Context(), ownerOf(actor))
}

func (h *handler) addToken(r *http.Request, want api.AddToken) (api.NewToken, error) {
	actor, _ := accounts.Of(r.Context())
	if want.User == "" {
		want.User = actor.Name
	}
	switch owner := ownerOf(actor); {
	case actor.Via == accounts.ViaSocket && want.User == actor.Name:
		return api.NewToken{}, &api.Error{Code: api.CodeUsage, Message: "the request names no user whose token it is", Hint: "fencepost token create --user NAME"}
	case owner != "" && want.User != owner:
		return api.NewToken{}, &api.Error{Code: api.CodeForbidden, Message: "only admins make tokens of others"}
	case !actor.Role.May(want.Role) && !(want.Role == api.RoleOperator && want.User == actor.Name && actor.Most == "" && h.boundTo(actor.Name)):
		return api.NewToken{}, &api.Error{Code: api.CodeForbidden, Message: string("who is " + actor.Role + " makes no token that is " + want.Role)}
	}
	if want.Approves && !(want.User == actor.Name && actor.Approves) {
		return api.NewToken{}, &api.Error{Code: api.CodeForbidden, Message: "a token that approves is made by who will approve with it, and by nobody else",
			Hint: "log in on the page as " + want.User + ", or use a token of theirs that approves"}
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	life := time.Duration(max(-longest, min(longest, want.ExpiresMS))) * time.Millisecond
	secret, made, err := h.Accounts.AddToken(r.Context(), accounts.NewToken{Name: want.Name, User: want.User, Role: want.Role, For: life, Approves: want.Approves}, actor.Name)
	return api.NewToken{Token: made, Secret: secret}, err
}

func (h *handler) removeToken(r *http.Request) (api.Ended, error) {
	actor, _ := accounts.Of(r.Context())
	was, err := h.Accounts.Token(r.Context(), r.PathValue("id"))
	if err != nil {
		return api.Ended{}, err
	}
	if owner := ownerOf(actor); owner != "" && was.User != owner {
		return api.Ended{}, &api.Error{Code: api.CodeNotFound, Message: "there is no token \"" + was.ID + "\" of " + owner}
	}
	found(r.Context(), was)
	return api.Ended{Name: was.ID}, h.Accounts.RemoveToken(r.Context(), was.ID)
}

// ofAudit are the routes of the audit trail.
func (h *handler) ofAudit() []Route {
	filter := append([]Param{{"actor", "string", "only what this one did"}, {"action", "string", "only this, or what begins with it: backup selects backup.create"},
		{"target", "string", "only what is about this"}}, pages("record's number, towards older ones")...)
	return []Route{
		list(h, api.PathAudit, "audit.read", "Who changed what, newest first.", h.audit, func(r api.AuditRecord) string { return strconv.FormatUint(r.Seq, 10) }, filter...).by(api.RoleAdmin),
		get(h, api.PathAuditCheck, "audit.check", "Whether the group's records are whole.", func(r *http.Request) (api.AuditCheck, error) { return h.Trail.Check(r.Context()) }).by(api.RoleAdmin),
	}
}

func (h *handler) audit(r *http.Request) ([]api.AuditRecord, error) {
	f, err := api.ParseAuditFilter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.Trail.List(r.Context(), f)
}
