package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Front is what stands between a network and a handler: it says in each answer what browsers may do with it, refuses what
// was meant for somebody else or made by another site's page, finds out who asks, and shows nobody a stack.
type Front struct {
	Handler  http.Handler
	Accounts *accounts.Accounts
	// Hosts are the names and addresses by which this daemon may be called, without port. What calls it otherwise is
	// refused: a name of somebody else that leads here would make a browser take their pages for ours.
	Hosts  []string
	Logger *slog.Logger
	// Refuse answers what is not let in, or was stumbled over, for those who read pages; nil: as the API does.
	Refuse func(w http.ResponseWriter, r *http.Request, e *api.Error)
}

// policy is what pages may load: their own, nothing in line, nothing of others.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler.
func (f Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		problem := recover()
		if problem == nil {
			return
		}
		if problem == http.ErrAbortHandler {
			panic(problem)
		}
		f.Logger.ErrorContext(r.Context(), "admin: a request made the daemon stumble", "method", r.Method, "path", r.URL.Path, "problem", problem, "stack", string(debug.Stack()))
		f.refuse(w, r, &api.Error{Code: api.CodeFailed, Message: "the daemon stumbled over this request", Hint: "its log says how"})
	}()
	harden(w.Header(), r.TLS != nil)
	actor, err := f.check(r)
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	if actor.Name != "" {
		r = r.WithContext(accounts.With(r.Context(), actor))
	}
	f.Handler.ServeHTTP(w, r)
}

// refuse answers programs with a problem, and people with a page.
func (f Front) refuse(w http.ResponseWriter, r *http.Request, e *api.Error) {
	if f.Refuse == nil || strings.HasPrefix(r.URL.Path, "/api/") {
		SendProblem(w, e)
		return
	}
	f.Refuse(w, r, e)
}

// harden sets the headers of every answer.
func harden(h http.Header, secure bool) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// check finds who asks; nobody when they do not say.
func (f Front) check(r *http.Request) (accounts.Actor, *api.Error) {
	if !f.called(r.Host) {
		return accounts.Actor{}, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("this daemon is not called %.100q", r.Host), Hint: "call it by its address, or add the name to admin.hosts"}
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return accounts.Actor{}, &api.Error{Code: api.CodeForbidden, Message: "the request was made by the page of another site"}
	}
	actor, err := f.identify(r)
	var e *api.Error
	if errors.As(err, &e) {
		return actor, e
	}
	if err != nil {
		return actor, &api.Error{Code: api.CodeUnavailable, Message: "who asks cannot be found out now: " + err.Error(), Hint: "the group may have no quorum: at the node itself the socket works"}
	}
	actor.Address = remote(r)
	return actor, nil
}

// called tells whether a header Host names this daemon.
func (f Front) called(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return slices.ContainsFunc(f.Hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

// identify reads a token or a cookie. A cookie that is worth nothing is nobody: who has one logs in again. A token that is
// worth nothing is an error: who sends one wants to be somebody.
func (f Front) identify(r *http.Request) (accounts.Actor, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return accounts.Actor{}, &api.Error{Code: api.CodeUnauthorized, Message: "the header Authorization is not a bearer's"}
		}
		return f.Accounts.OfToken(r.Context(), strings.TrimSpace(token))
	}
	c := cookieOf(r)
	if c == "" {
		return accounts.Actor{}, nil
	}
	find := f.Accounts.OfSession
	if r.Header.Get(api.HeaderLookingOn) != "" || r.URL.Path == api.PathChanges { // a browser says nothing of itself when it follows a stream
		find = f.Accounts.LookOn
	}
	actor, err := find(r.Context(), c)
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeUnauthorized {
		return accounts.Actor{}, nil
	}
	return actor, err
}
