package approvals

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Prefix begins the keys of requests.
const Prefix = "approval/"

// Bounds of what is kept.
const (
	MaxRequest  = 40 << 10 // bytes of a request's body
	maxAnswer   = 8 << 10  // bytes of an answer; a longer one is left out
	mostWaiting = 50
	keepEnded   = 7 * 24 * time.Hour
	mostEnded   = 200
)

// Request is what is kept of one.
type Request struct {
	api.Approval
	Most api.Role `json:"most,omitempty"` // of the token that asked; see accounts.Actor

	record kept.Record
}

// Desk is where requests wait. Safe for concurrent use, on any number of nodes.
type Desk struct {
	store kept.Store
	now   func() time.Time
}

// New makes a desk over what is kept in store.
func New(store kept.Store, now func() time.Time) *Desk { return &Desk{store: store, now: now} }

// Read are the requests of records at a time, newest first; what cannot be read is left out: it is of a later version. Pure.
func Read(records []kept.Record, now time.Time) []Request {
	list := []Request{}
	for _, r := range records {
		if a, err := requestOf(r, now); err == nil {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(x, y Request) int { return y.Created.Compare(x.Created) })
	return list
}

func requestOf(r kept.Record, now time.Time) (a Request, err error) {
	if err = json.Unmarshal(r.Value, &a); err != nil {
		return a, fmt.Errorf("read what is kept of a request that waits for approval: %w", err)
	}
	if a.record = r; a.State == api.ApprovalWaiting && !now.Before(a.Expires) {
		a.State = api.ApprovalExpired
	}
	return a, nil
}

// List are those that wait, and those that ended lately, newest first.
func (d *Desk) List(ctx context.Context) ([]Request, error) {
	records, err := d.store.List(ctx, Prefix)
	return Read(records, d.now()), err
}

// Get is one of them.
func (d *Desk) Get(ctx context.Context, id string) (Request, error) {
	r, err := d.store.Get(ctx, Prefix+id)
	if err == nil && r.Version == 0 {
		err = &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no request %q that waits for approval, or was decided lately", id), Hint: "fencepost approval ls lists them"}
	}
	if err != nil {
		return Request{}, err
	}
	return requestOf(r, d.now())
}

// Ask has a request wait for so long. One that the same account asks for again, word for word, is the one that waits already.
func (d *Desk) Ask(ctx context.Context, a Request, within time.Duration) (Request, error) {
	if len(a.Request) > MaxRequest {
		return a, &api.Error{Code: api.CodeTooLarge, Message: fmt.Sprintf("a request that waits for approval has at most %d bytes, and this one %d", MaxRequest, len(a.Request)), Hint: "ask for less at a time: the change that needs approval by itself"}
	}
	all, err := d.List(ctx)
	if err != nil {
		return a, err
	}
	waiting := 0
	for _, x := range all {
		if !x.Waits() {
			continue
		}
		if waiting++; sameRequest(x, a) {
			return x, nil
		}
	}
	if waiting >= mostWaiting {
		return a, &api.Error{Code: api.CodeTooMany, Message: fmt.Sprintf("%d requests wait for approval", waiting), Hint: "fencepost approval ls lists them; approve or refuse some"}
	}
	a.ID, a.State, a.Created = drawn(), api.ApprovalWaiting, d.now().UTC()
	a.Expires = a.Created.Add(within)
	changes := append([]kept.Change{put(a, 0)}, old(all, d.now())...)
	if err = d.store.Commit(ctx, changes...); errors.Is(err, kept.ErrConflict) { // somebody has just removed the old ones
		err = d.store.Commit(ctx, changes[0])
	}
	return a, err
}

func sameRequest(a, b Request) bool {
	return SameAccount(a.By, b.By) && a.Method == b.Method && a.Path == b.Path && bytes.Equal(a.Request, b.Request)
}

// old are requests that ended long ago, or are too many; all are newest first.
func old(all []Request, now time.Time) (gone []kept.Change) {
	ended := 0
	for _, a := range all {
		if a.Waits() {
			continue
		}
		if ended++; now.Sub(a.ended()) >= keepEnded || ended > mostEnded {
			gone = append(gone, kept.Delete(a.record))
		}
	}
	return gone[:min(len(gone), 50)]
}

// ended is when a request that does not wait any more was decided, or expired.
func (a Request) ended() time.Time {
	if a.Decided != nil {
		return *a.Decided
	}
	return a.Expires
}

// Approve notes who has approved a request. From then on it must be carried out, by the caller, and nobody else does.
func (d *Desk) Approve(ctx context.Context, id string, by accounts.Actor) (Request, error) {
	return d.decide(ctx, id, by, api.ApprovalApproved, "")
}

// Refuse ends a request that waits; its own account withdraws it so.
func (d *Desk) Refuse(ctx context.Context, id string, by accounts.Actor, why string) (Request, error) {
	return d.decide(ctx, id, by, api.ApprovalRefused, why)
}

func (d *Desk) decide(ctx context.Context, id string, by accounts.Actor, state, why string) (Request, error) {
	return d.change(ctx, id, func(a *Request) error {
		if err := a.open(); err != nil {
			return err
		}
		if state == api.ApprovalRefused && SameAccount(a.By, by.Name) {
			state = api.ApprovalWithdrawn
		}
		at := d.now().UTC()
		a.State, a.Decided, a.DecidedBy, a.DecidedVia, a.Why = state, &at, by.Name, by.Via, why
		return nil
	})
}

// Outcome is what became of a request that was carried out.
type Outcome struct {
	Problem *api.Error // nil: it was done
	Task    string     // that was planned
	Answer  json.RawMessage
}

// End notes what became of an approved request.
func (d *Desk) End(ctx context.Context, id string, o Outcome) (Request, error) {
	return d.change(ctx, id, func(a *Request) error {
		if a.State, a.Task = api.ApprovalDone, o.Task; len(o.Answer) <= maxAnswer {
			a.Answer = o.Answer
		}
		if o.Problem != nil {
			a.State, a.Problem, a.Hint, a.Answer = api.ApprovalFailed, o.Problem.Message, o.Problem.Hint, nil
		}
		return nil
	})
}

func (d *Desk) change(ctx context.Context, id string, change func(*Request) error) (out Request, err error) {
	err = kept.Update(ctx, d.store, Prefix+id, func(r kept.Record) ([]kept.Change, error) {
		if r.Version == 0 {
			_, err := d.Get(ctx, id)
			return nil, err
		}
		if out, err = requestOf(r, d.now()); err != nil {
			return nil, err
		}
		if err := change(&out); err != nil {
			return nil, err
		}
		return []kept.Change{put(out, r.Version)}, nil
	})
	return out, err
}

func drawn() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// put is a request as it is kept.
func put(a Request, version uint64) kept.Change {
	a.Mine, a.WhyNot = false, "" // about who looks
	return kept.Put(Prefix+a.ID, a, version)
}
