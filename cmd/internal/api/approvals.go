package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// PathApprovals is what waits for a second person, and what became of it.
const PathApprovals = Base + "/approvals"

// Operations that can need a second person; a setting of the kind approval has the name of one of them.
const (
	ApproveDelete  = "delete"  // delete a backup, let retention remove more at once, change what retention keeps
	ApproveRestore = "restore" // restore over something: in place, or where a database may be replaced; swap it back
	ApproveStorage = "storage" // add, change or remove a storage of the settings; remove what a check finds that nothing counts
	ApproveLedger  = "ledger"  // reconcile, adopt, begin or move the group's ledger
	ApproveNode    = "node"    // take a node out of the group for good
	// ApproveRules is a change of the approvals themselves. It needs a second person whenever anything does, and cannot be
	// set.
	ApproveRules = "approval"
)

// States of an approval.
const (
	ApprovalWaiting   = "waiting"
	ApprovalApproved  = "approved" // it is being carried out, or the node died over it: it is not tried again
	ApprovalDone      = "done"
	ApprovalFailed    = "failed" // it was approved, and did not come about
	ApprovalRefused   = "refused"
	ApprovalWithdrawn = "withdrawn" // by who had asked
	ApprovalExpired   = "expired"
)

// Approval is a request that needs a second person. What is carried out when it is approved is Method, Path and Request, as
// they are here.
type Approval struct {
	ID      string          `json:"id"`
	For     []string        `json:"for"` // operations for which it is needed
	Text    string          `json:"text"`
	Action  string          `json:"action"` // of the route, such as backup.delete
	Target  string          `json:"target,omitempty"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Request json.RawMessage `json:"request,omitempty"`

	By      string    `json:"by"` // who asked
	Role    Role      `json:"role"`
	Via     string    `json:"via"` // socket, session, token
	Address string    `json:"address,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"` // it is worth nothing when nobody has decided by then

	State      string          `json:"state"`
	Decided    *time.Time      `json:"decided,omitempty"`
	DecidedBy  string          `json:"decided_by,omitempty"`
	DecidedVia string          `json:"decided_via,omitempty"`
	Why        string          `json:"why,omitempty"`    // of a refusal
	Task       string          `json:"task,omitempty"`   // that was planned
	Answer     json.RawMessage `json:"answer,omitempty"` // what the request was answered when it was done, when it is short
	Problem    string          `json:"problem,omitempty"`
	Hint       string          `json:"hint,omitempty"`

	// Mine and WhyNot are about who looks, when they look at one: whether it is their own account that asked, and why they
	// cannot approve it; empty when they can, or when nothing waits any more.
	Mine   bool   `json:"mine,omitempty"`
	WhyNot string `json:"why_not,omitempty"`
}

// Waits tells whether somebody can still decide.
func (a Approval) Waits() bool { return a.State == ApprovalWaiting }

// RefuseApproval refuses a request, or takes one's own back.
type RefuseApproval struct {
	Why string `json:"why,omitempty"` // one sentence for who asked, at most 1024 bytes
}

// ApprovalPath is the path of one approval.
func ApprovalPath(id string) string { return PathApprovals + "/" + url.PathEscape(id) }

// Approvals lists what waits for a second person, and what was decided within the last days, newest first.
func (c *Client) Approvals(ctx context.Context) ([]Approval, error) {
	return Get[[]Approval](ctx, c, PathApprovals)
}

// Approval is one of them.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	return Get[Approval](ctx, c, ApprovalPath(id))
}

// Approve has a request of somebody else carried out. What became of it is in the answer.
func (c *Client) Approve(ctx context.Context, id string) (Approval, error) {
	return post[Approval](ctx, c, ApprovalPath(id)+"/approve", struct{}{})
}

// Refuse ends a request without carrying it out.
func (c *Client) Refuse(ctx context.Context, id string, r RefuseApproval) (Approval, error) {
	return post[Approval](ctx, c, ApprovalPath(id)+"/refuse", r)
}
