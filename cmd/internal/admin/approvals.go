package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
)

// ofApprovals are the routes of what waits for a second person. Whoever looks may ask: who may decide about a request are
// those who may make it.
func (h *handler) ofApprovals() []Route {
	one := api.PathApprovals + "/{id}"
	return []Route{
		get(h, api.PathApprovals, "approvals.read", "Requests that wait for a second person, and what was decided lately, newest first; without requests and answers, which each one has by itself.", func(r *http.Request) ([]api.Approval, error) { return h.waitingNow(r.Context()) }),
		get(h, one, "approval.read", "One of them, with what will be carried out, and whether who asks may approve it.", h.approval),
		post(h, api.RoleViewer, one+"/approve", "approval.approve", "Have a request of somebody else carried out, as it was asked.", h.approve).taking(storageWork),
		post(h, api.RoleViewer, one+"/refuse", "approval.refuse", "End a request without carrying it out; one's own is withdrawn.", h.refuse),
	}
}

// brief is a request without its bodies.
func brief(a approvals.Request) api.Approval {
	a.Request, a.Answer = nil, nil
	return a.Approval
}

func (h *handler) waitingNow(ctx context.Context) ([]api.Approval, error) {
	all, err := h.desk.List(ctx)
	list := []api.Approval{}
	for _, a := range all {
		list = append(list, brief(a))
	}
	return list, err
}

func (h *handler) approval(r *http.Request) (api.Approval, error) {
	a, err := h.desk.Get(r.Context(), r.PathValue("id"))
	if err != nil || !a.Waits() {
		return a.Approval, err
	}
	actor, _ := accounts.Of(r.Context())
	a.Mine = approvals.SameAccount(a.By, actor.Name)
	var refused *api.Error
	switch err := h.mayApprove(r.Context(), actor, a); {
	case errors.As(err, &refused):
		a.WhyNot = refused.Message
	case err != nil:
		return a.Approval, err
	}
	return a.Approval, nil
}

// mayApprove says why an actor may not approve a request: they may when they could make it themselves, and are somebody else.
func (h *handler) mayApprove(ctx context.Context, actor accounts.Actor, a approvals.Request) error {
	var account api.User
	if actor.Via != accounts.ViaSocket {
		var err error
		if account, err = h.Accounts.User(ctx, actor.Name); err != nil {
			return err
		}
	}
	if err := approvals.May(a, actor, account); err != nil {
		return err
	}
	return h.mayMake(ctx, actor, a)
}

// mayMake says why an actor may not make a kept request; nothing is done.
func (h *handler) mayMake(ctx context.Context, actor accounts.Actor, a approvals.Request) error {
	_, err := h.dispatch(ctx, actor, pass{probe: true}, a)
	return err
}

// asker is who has asked, with what they may do now, and no more than they could then.
func (h *handler) asker(ctx context.Context, a approvals.Request) (accounts.Actor, error) {
	actor := accounts.Actor{Name: a.By, Role: a.Role, Most: a.Most, Via: a.Via, Address: a.Address}
	if a.Via == accounts.ViaSocket {
		return actor, nil
	}
	account, err := h.Accounts.User(ctx, a.By)
	if err != nil {
		return actor, err
	}
	if account.Disabled {
		return actor, &api.Error{Code: api.CodeConflict, Message: "who has asked for it is disabled: " + a.By, Hint: "fencepost approval refuse " + a.ID}
	}
	actor.Role = api.Least(account.Role, a.Role)
	return actor, nil
}

// approve carries a request out, in the name of who has asked. It goes on when the approver's connection breaks: it cannot be
// approved again.
func (h *handler) approve(r *http.Request, _ struct{}) (api.Approval, error) {
	ctx := r.Context()
	actor, _ := accounts.Of(ctx)
	a, err := h.desk.Get(ctx, r.PathValue("id"))
	if err != nil {
		return api.Approval{}, err
	}
	found(ctx, brief(a))
	if err := h.mayApprove(ctx, actor, a); err != nil {
		return api.Approval{}, err
	}
	asker, err := h.asker(ctx, a)
	if err != nil {
		return api.Approval{}, err
	}
	if err := h.mayMake(ctx, asker, a); err != nil {
		return api.Approval{}, err
	}
	if a, err = h.desk.Approve(ctx, a.ID, actor); err != nil {
		return api.Approval{}, err
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeFor(a.Action))
	defer cancel()
	answer, err := h.dispatch(within, asker, pass{approver: actor.Name}, a)
	return h.ended(within, a, answer, err), nil
}

// ended notes what became of an approved request. What cannot be noted is in the log, and answered as it came about.
func (h *handler) ended(ctx context.Context, a approvals.Request, answer json.RawMessage, failed error) api.Approval {
	o := approvals.Outcome{Answer: answer}
	if failed != nil {
		o.Problem = h.translate(failed)
	} else if route, ok := h.routeOf(a.Action); ok && route.Out == reflect.TypeFor[api.Task]() {
		var t api.Task
		if json.Unmarshal(answer, &t) == nil {
			o.Task = t.ID
		}
	}
	out, err := h.desk.End(ctx, a.ID, o)
	if err != nil {
		h.Logger.ErrorContext(ctx, "admin: what became of an approved request is not noted", "approval", a.ID, "error", err)
	}
	return out.Approval
}

func (h *handler) routeOf(action string) (Route, bool) {
	for _, r := range h.routes {
		if r.Action == action {
			return r, true
		}
	}
	return Route{}, false
}

// timeFor bounds how long carrying an action out may take.
func (h *handler) timeFor(action string) time.Duration {
	if route, ok := h.routeOf(action); ok {
		return route.Within
	}
	return usualWithin
}

func (h *handler) refuse(r *http.Request, want api.RefuseApproval) (api.Approval, error) {
	ctx := r.Context()
	actor, _ := accounts.Of(ctx)
	if len(want.Why) > maxNote {
		return api.Approval{}, &api.Error{Code: api.CodeUsage, Message: "why: it is too long: at most 1024 bytes"}
	}
	a, err := h.desk.Get(ctx, r.PathValue("id"))
	if err != nil {
		return api.Approval{}, err
	}
	found(ctx, brief(a))
	if !approvals.SameAccount(a.By, actor.Name) {
		if err := h.mayMake(ctx, actor, a); err != nil {
			return api.Approval{}, err
		}
	}
	a, err = h.desk.Refuse(ctx, a.ID, actor, want.Why)
	return a.Approval, err
}
