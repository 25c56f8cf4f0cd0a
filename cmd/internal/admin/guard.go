package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// guard lets nobody at a route who may not use it.
func (h *handler) guard(route Route) http.HandlerFunc {
	serve := route.serve
	if route.weigh != nil {
		serve = h.held(route, serve)
	}
	if route.Creates {
		serve = h.once(serve)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(route.Within)) // as in wholeBody
		err := admit(r, route)
		if forbidden(err) {
			err = h.bound(w, r, route, err)
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		if p := passOf(r.Context()); p != nil && p.probe {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if route.was != nil {
			r = r.WithContext(context.WithValue(r.Context(), wasKey{}, route.was))
		}
		w.Header().Set("Cache-Control", "no-store")
		serve(w, r)
	}
}

// forbidden tells whether somebody is known, and may not.
func forbidden(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.CodeForbidden
}

// admit says why a request is not let in.
func admit(r *http.Request, route Route) error {
	for _, name := range route.names() {
		if len(r.PathValue(name)) > longestParam {
			return &api.Error{Code: api.CodeUsage, Message: "the path's " + name + " is too long"}
		}
	}
	if route.Role == "" {
		return nil
	}
	return Allow(r, route.Role, route.Method != http.MethodGet)
}

// Allow says why who sends r may not do what needs the role least. What changes something needs the session's form token,
// unless who asks came with a token or over the socket, which no foreign page can make a browser do, or it is the daemon
// itself that carries out what was approved.
func Allow(r *http.Request, least api.Role, changes bool) error {
	actor, known := accounts.Of(r.Context())
	if !known {
		return &api.Error{Code: api.CodeUnauthorized, Message: "nobody is logged in", Hint: "send a token (Authorization: Bearer), or log in; fencepost user add makes the first user, over the socket"}
	}
	if !actor.Role.May(least) {
		return &api.Error{Code: api.CodeForbidden, Message: fmt.Sprintf("%s is %s, and this needs %s", actor.Name, actor.Role, least), Hint: "an admin can change the role: fencepost user set"}
	}
	if changes && actor.Via == accounts.ViaSession && passOf(r.Context()) == nil && !accounts.ValidFormToken(cookieOf(r), r.Header.Get(api.HeaderFormToken)) {
		return &api.Error{Code: api.CodeForbidden, Message: "the request does not bring the session's form token", Hint: "GET " + api.PathSession + " gives it; send it as the header " + api.HeaderFormToken}
	}
	return nil
}

// FormToken is what the forms of the session bring with which r came; empty when who asks came otherwise.
func FormToken(r *http.Request) string {
	if actor, _ := accounts.Of(r.Context()); actor.Via != accounts.ViaSession {
		return ""
	}
	return accounts.FormToken(cookieOf(r))
}
