package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// recordWithin bounds how long a change waits to be written down.
const recordWithin = 10 * time.Second

// before is what a change found, for the audit trail.
type before struct{ text json.RawMessage }

type beforeKey struct{}

// found notes what there was before a change, for the record of it.
func found(ctx context.Context, v any) {
	if b, ok := ctx.Value(beforeKey{}).(*before); ok {
		b.text = audit.Value(inShort(v))
	}
}

// recorded makes a change between two records of it. It is not made when the first cannot be written; when the second
// cannot, that is in the log, and the change is answered as it was made.
func recorded[A any](h *handler, r *http.Request, action string, want any, do func(*http.Request) (A, error)) (A, error) {
	ctx := r.Context()
	actor, _ := accounts.Of(ctx)
	e := audit.Entry{
		Actor: actor.Name, Role: actor.Role, Via: actor.Via, Address: actor.Address, Action: action, Target: target(r),
		Phase: audit.Asked, Request: audit.Value(want),
	}
	if p := passOf(ctx); p != nil {
		e.Approver = p.approver
	}
	within, cancel := context.WithTimeout(ctx, recordWithin)
	asked, err := h.Trail.Append(within, e)
	cancel()
	if err != nil {
		return *new(A), err
	}
	var was before
	r = r.WithContext(context.WithValue(ctx, beforeKey{}, &was))
	lookBefore(r.Context(), r, want)
	got, err := do(r)
	e.Phase, e.Of, e.Request, e.Before = audit.Done, asked.Seq, nil, was.text
	if err != nil {
		e.Phase, e.Problem = audit.Failed, h.translate(err).Message
	} else {
		e.After = audit.Value(inShort(got))
	}
	within, cancel = context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	if _, failed := h.Trail.Append(within, e); failed != nil {
		h.Logger.ErrorContext(ctx, "admin: what became of a change is not in the audit trail", "action", action, "record", asked.Seq, "error", failed)
	}
	return got, err
}

// target is what a request's path says it is about.
func target(r *http.Request) string {
	var parts []string
	for _, name := range []string{"kind", "id", "name", "database"} {
		if value := r.PathValue(name); value != "" {
			parts = append(parts, value)
		}
	}
	return strings.Join(parts, "/")
}
