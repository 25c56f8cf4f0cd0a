package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
)

// secondPersons are what the group's settings say of approvals.
type secondPersons struct{ a *App }

// ApprovalsNeeded implements admin.Approvals. It asks the group, not this node's memory: what was set a moment ago on another
// node counts. A setting of a later version that this one does not understand may be one that it must not pass over.
func (s secondPersons) ApprovalsNeeded(ctx context.Context) (map[string]time.Duration, error) {
	state, err := s.a.settings.State(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range state.Problems {
		if strings.Contains(p.Path, "approval") {
			return nil, &api.Error{Code: api.CodeConflict, Message: "this node does not understand what the group has set of approvals: " + p.String(), Hint: "ask a node of the newer version"}
		}
	}
	needed := map[string]time.Duration{}
	for _, x := range state.Settings.Approvals {
		needed[x.Name] = x.Within
	}
	return needed, nil
}

// approvalAlarms are about requests that wait for a second person, the same on every node.
func (a *App) approvalAlarms() (list []api.Alarm) {
	for _, r := range approvals.Read(groupStore{a}.localBelow(approvals.Prefix), a.clock.Now()) {
		if !r.Waits() {
			continue
		}
		list = append(list, api.Alarm{Kind: "approval", About: r.ID, Severity: api.Warning, Since: &r.Created,
			Text: fmt.Sprintf("%s asks to %s: that waits for a second person, until %s", r.By, r.Text, r.Expires.UTC().Format(time.DateTime+"Z")),
			Hint: "fencepost approval show " + r.ID + ", then approve or refuse it; who has asked can withdraw it"})
	}
	return list
}
