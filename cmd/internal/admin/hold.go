package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
)

// Approvals tell what needs a second person.
type Approvals interface {
	// ApprovalsNeeded are the operations that do (api.ApproveDelete and so on), each with how long a request waits for one,
	// as the group has set them now. With an error nothing that may need one is done.
	ApprovalsNeeded(ctx context.Context) (map[string]time.Duration, error)
}

// deed is what a request amounts to, for those who may have to approve it.
type deed struct {
	operations []string
	text       string // of a sentence that begins with who asks: "ann asks to " and this
	request    any    // what is kept of it in the place of its body, where that would mean something else later; nil: its body
}

// weigh finds out what a request amounts to; body is its whole body. It refuses what could not be done now.
type weigh func(r *http.Request, body []byte) (deed, error)

// weighed is r when it can be one of the operations for which a second person may be needed.
func weighed[Q any](r Route, w func(*http.Request, Q) (deed, error), operations ...string) Route {
	r.operations = operations
	r.weigh = func(q *http.Request, body []byte) (deed, error) {
		var want Q
		if err := understood(q, body, &want); err != nil {
			return deed{}, err
		}
		return w(q, want)
	}
	return r
}

// held is serve for what may need a second person: then it waits, and is served when it is approved.
func (h *handler) held(route Route, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if passOf(r.Context()) == nil {
			if err := h.hold(w, r, route); err != nil {
				h.fail(w, r, err)
				return
			}
		}
		serve(w, r)
	}
}

// hold has a request wait when it needs a second person. The error says that it waits, or why it can neither be done nor
// wait.
func (h *handler) hold(w http.ResponseWriter, r *http.Request, route Route) error {
	if h.Approvals == nil {
		return nil
	}
	set, err := h.Approvals.ApprovalsNeeded(r.Context())
	if err != nil {
		return err
	}
	if possible, _ := approvals.Needed(set, route.operations); len(possible) == 0 {
		return nil
	}
	body, err := wholeBody(w, r)
	if err != nil {
		return err
	}
	d, err := route.weigh(r, body)
	if err != nil {
		return err
	}
	needed, within := approvals.Needed(set, d.operations)
	if len(needed) == 0 {
		return nil
	}
	if d.request != nil {
		if body, err = json.Marshal(d.request); err != nil {
			return err
		}
	}
	return h.wait(r, route, needed, within, d.text, body)
}

// wait keeps a request until a second person has decided. The error says so.
func (h *handler) wait(r *http.Request, route Route, needed []string, within time.Duration, text string, body []byte) error {
	actor, _ := accounts.Of(r.Context())
	a := approvals.Request{Most: actor.Most, Approval: api.Approval{
		For: needed, Text: text, Action: route.Action, Target: target(r), Method: r.Method, Path: r.URL.EscapedPath(),
		By: actor.Name, Role: actor.Role, Via: actor.Via, Address: actor.Address,
	}}
	if body = bytes.TrimSpace(body); len(body) > 0 {
		var err error
		if a.Request, err = json.Marshal(json.RawMessage(body)); err != nil { // without spaces, so that the same is the same
			return err
		}
	}
	asked := map[string]any{"action": a.Action, "path": a.Path, "request": a.Request}
	waiting, err := recorded(h, r, "approval.ask", asked, func(r *http.Request) (api.Approval, error) {
		waiting, err := h.desk.Ask(r.Context(), a, within)
		return brief(waiting), err
	})
	if err != nil {
		return err
	}
	return &api.Error{
		Code: api.CodeNeedsApproval, Approval: waiting.ID, Message: fmt.Sprintf("it waits for a second person, until %s: nothing was done yet", waiting.Expires.UTC().Format(time.DateTime+"Z")),
		Hint: "somebody else who may do this approves it: fencepost approval approve " + waiting.ID + ", or on the page",
	}
}

// pass lets a request of a second person's in, in the name of somebody else.
type pass struct {
	approver string // who has approved it
	probe    bool   // nothing is done: what matters is whether whoever asks may do it
}

type passKey struct{}

// passOf is the pass of a request that the daemon makes itself; nil for all others.
func passOf(ctx context.Context) *pass {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p
}

// dispatch makes a kept request in the name of an actor, and gives its answer, or the error.
func (h *handler) dispatch(ctx context.Context, actor accounts.Actor, p pass, a approvals.Request) (json.RawMessage, error) {
	ctx = context.WithValue(accounts.With(ctx, actor), passKey{}, &p)
	q, err := http.NewRequestWithContext(ctx, a.Method, a.Path, bytes.NewReader(a.Request))
	if err != nil {
		return nil, fmt.Errorf("make the request that was kept: %w", err)
	}
	if len(a.Request) > 0 {
		q.Header.Set("Content-Type", jsonType)
	}
	_, answer, err := Inside(h.inner, q)
	return answer, err
}
