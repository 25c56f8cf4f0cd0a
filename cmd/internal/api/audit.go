package api

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// Paths of the audit trail.
const (
	PathAudit      = Base + "/audit"
	PathAuditCheck = Base + "/audit/check"
)

// AuditRecord is one record of the audit trail. Hash is of the record as JSON without it.
type AuditRecord struct {
	Seq     uint64    `json:"seq"` // from 1 on, without gaps
	At      time.Time `json:"at"`  // by the clock of Node
	Node    string    `json:"node"`
	Actor   string    `json:"actor"`
	Role    Role      `json:"role,omitempty"`
	Via     string    `json:"via,omitempty"`     // socket, session, token
	Address string    `json:"address,omitempty"` // that they came from
	Action  string    `json:"action"`            // such as backup.delete
	Target  string    `json:"target,omitempty"`  // what it is about
	Phase   string    `json:"phase"`             // asked, done, failed, refused
	Of      uint64    `json:"of,omitempty"`      // number of the record that asked
	Problem string    `json:"problem,omitempty"`
	// Approver is the second person, who has approved what Actor had asked for.
	Approver string          `json:"approver,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"` // without secrets
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
	Prev     string          `json:"prev"` // hash of the record before; empty in the first
	Hash     string          `json:"hash"`
}

// AuditFilter selects records, newest first; zero fields select all.
type AuditFilter struct {
	Actor  string
	Action string // or what it begins with: backup selects backup.create
	Target string
	Limit  int    // at most so many; 0: all
	After  uint64 // a page: what comes after the record of this number, that is, older ones
}

// Query is the filter as it stands in a path.
func (f AuditFilter) Query() url.Values {
	q := url.Values{}
	setText(q, "actor", f.Actor)
	setText(q, "action", f.Action)
	setText(q, "target", f.Target)
	setInt(q, "limit", f.Limit)
	if f.After != 0 {
		q.Set("after", strconv.FormatUint(f.After, 10))
	}
	return q
}

// ParseAuditFilter is the inverse of Query.
func ParseAuditFilter(q url.Values) (AuditFilter, error) {
	p := parser{q: q}
	f := AuditFilter{Actor: q.Get("actor"), Action: q.Get("action"), Target: q.Get("target"), Limit: p.int("limit")}
	if text := q.Get("after"); text != "" {
		var err error
		f.After, err = strconv.ParseUint(text, 10, 53)
		p.fail(err, "after", "the number of a record")
	}
	return f, p.err
}

// AuditCheck says whether the group's records are whole.
type AuditCheck struct {
	Whole   bool   `json:"whole"`
	Records int    `json:"records"` // that the group keeps
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	Hash    string `json:"hash"` // of the last one: compare it with the copies of the nodes
	Problem string `json:"problem,omitempty"`
}

// AuditPath is the path of a list of records.
func AuditPath(f AuditFilter) string { return withQuery(PathAudit, f.Query()) }

// Audit lists records of the audit trail.
func (c *Client) Audit(ctx context.Context, f AuditFilter) ([]AuditRecord, error) {
	return Get[[]AuditRecord](ctx, c, AuditPath(f))
}

// CheckAudit has the daemon look whether the records are whole.
func (c *Client) CheckAudit(ctx context.Context) (AuditCheck, error) {
	return Get[AuditCheck](ctx, c, PathAuditCheck)
}
