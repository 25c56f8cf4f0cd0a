package web

import "github.com/fencepost/fencepost/cmd/internal/api"

// auditData is a page of the audit trail.
type auditData struct {
	Filter  api.AuditFilter
	Records []api.AuditRecord
	Check   api.AuditCheck
	More    string
	Newest  string
}

func auditTrail(v *visit) (any, error) {
	f, err := api.ParseAuditFilter(v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	f.Limit = pageSize
	d := auditData{Filter: f, Newest: "/audit?" + api.AuditFilter{Actor: f.Actor, Action: f.Action, Target: f.Target}.Query().Encode()}
	if d.Records, err = ask[[]api.AuditRecord](v, api.AuditPath(f)); err != nil {
		return nil, err
	}
	if n := len(d.Records); n == pageSize {
		f.After, f.Limit = d.Records[n-1].Seq, 0
		d.More = "/audit?" + f.Query().Encode()
	}
	d.Check, err = ask[api.AuditCheck](v, api.PathAuditCheck)
	return d, err
}
