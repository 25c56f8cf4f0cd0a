package web

import "github.com/fencepost/fencepost/cmd/internal/api"

// approvalPage is the page of a request, and the sentence that it begins with.
func approvalPage(id, done string) string { return "/approvals/" + segment(id) + "?done=" + done }

// waitingData are the requests that wait for a second person, and those that were decided lately.
type waitingData struct{ Waiting, Decided []api.Approval }

func waiting(v *visit) (any, error) {
	all, err := ask[[]api.Approval](v, api.PathApprovals)
	var d waitingData
	for _, a := range all {
		if a.Waits() {
			d.Waiting = append(d.Waiting, a)
		} else {
			d.Decided = append(d.Decided, a)
		}
	}
	return d, err
}

// approvalData is one of them, and what who looks may do with it.
type approvalData struct {
	api.Approval
	Why string // in the form, when it is shown again
}

// MayRefuse: who may approve it, and who has asked.
func (d approvalData) MayRefuse() bool { return d.Waits() && (d.Mine || d.WhyNot == "") }

func approval(v *visit) (any, error) {
	a, err := ask[api.Approval](v, api.ApprovalPath(v.r.PathValue("id")))
	return approvalData{a, v.form.Get("why")}, err
}

func ofApprovals() []Deed {
	const one = "/approvals/{id}"
	return []Deed{
		{Path: one + "/approve", Action: "approval.approve", again: one, do: func(v *visit) (string, error) {
			a, err := tell[api.Approval](v, api.ApprovalPath(v.r.PathValue("id"))+"/approve", struct{}{})
			return approvalPage(a.ID, "approve"), err
		}},
		{Path: one + "/refuse", Action: "approval.refuse", Fields: []string{"why"}, again: one, do: func(v *visit) (string, error) {
			a, err := tell[api.Approval](v, api.ApprovalPath(v.r.PathValue("id"))+"/refuse", api.RefuseApproval{Why: v.form.Get("why")})
			return approvalPage(a.ID, "refuse"), err
		}},
	}
}
