package web

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestSecondPersonOnThePage: a form for what takes a second person leads to the request that waits; who has asked can withdraw
// it, and nobody but somebody else finds the button that has it done.
func TestSecondPersonOnThePage(t *testing.T) {
	sample := fullSample()
	sample.second = map[string]time.Duration{api.ApproveDelete: time.Hour}
	s := serve(t, sample)
	got := s.post(t, "/backups/b1/delete", api.RoleOperator, url.Values{"repeat": {"shop"}, fieldKey: {"drawn"}})
	is(t, "the deletion", got, http.StatusSeeOther)
	to, err := url.Parse(got.header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.Path, "/approvals/") {
		t.Fatalf("it leads to %s", to)
	}
	const approve, withdraw, refuse = "Approve, and have it done", "Withdraw it", "Refuse it"
	for role, want := range map[api.Role][]string{api.RoleViewer: nil, api.RoleOperator: {withdraw}, api.RoleAdmin: {approve, refuse}} {
		shown := s.get(t, to.String(), role).body
		if !strings.Contains(shown, "it waits, and nothing was done yet") || !strings.Contains(shown, "delete backup b1 of shop") {
			t.Errorf("a %s is shown %s", role, shown)
		}
		for _, button := range []string{approve, withdraw, refuse} {
			if strings.Contains(shown, button) != slices.Contains(want, button) {
				t.Errorf("a %s is offered %q: %v", role, button, !slices.Contains(want, button))
			}
		}
	}
	if list := s.get(t, "/approvals", api.RoleViewer).body; !strings.Contains(list, "/approvals/"+path.Base(to.Path)) {
		t.Errorf("the list does not show it: %s", list)
	}
	is(t, "who has asked", s.post(t, to.Path+"/approve", api.RoleOperator, nil), http.StatusForbidden)
	if done := s.sample.changes(); len(done) != 0 {
		t.Fatalf("what was done: %v", done)
	}
	is(t, "somebody else", s.post(t, to.Path+"/approve", api.RoleAdmin, nil), http.StatusSeeOther)
	if done := s.sample.changes(); !slices.Equal(done, []string{"backup.delete b1"}) {
		t.Errorf("what was done: %v", done)
	}
}

// TestButtonsOfABoundUser: a viewer who is bound to a team's databases is offered what is done with these, and with no other.
func TestButtonsOfABoundUser(t *testing.T) {
	sample := fullSample()
	sample.bound = map[string][]admin.Bound{"the-viewer": {{Labels: []string{"team-a"}, Source: true}}}
	sample.tasks[0].Database = "warehouse" // of the other team
	s := serve(t, sample)
	for path, want := range map[string]map[string]bool{
		"/backups":             {`<option>shop</option></select>`: true, `action="/backups"><input`: true},
		"/backups/b1":          {"/backups/b1/delete": true, "/backups/b1/mark": true, "/backups/b1/restore": true},
		"/backups/b2":          {"/backups/b2/delete": false, "/backups/b2/mark": false},
		"/backups/b1/delete":   {"Delete the backup": true},
		"/backups/b2/delete":   {"Delete the backup": false, "That takes an operator": true},
		"/backups/b2/restore":  {"That takes an operator": true},
		"/databases/shop":      {"Back up now": true, "Test the connection": true},
		"/databases/warehouse": {"Back up now": false, "Test the connection": false},
		"/schedules":           {"/schedules/nightly/run": true, "/schedules/weekly-check/run": false},
		"/tasks/t1":            {"/tasks/t1/cancel": false},
		"/tasks/t4":            {"/tasks/t4/cancel": true},
		"/tasks/t2":            {"/tasks/t2/undo": false},
		"/components":          {"/components/backup/pause": false},
		"/storages":            {"/storages/near/test": false},
	} {
		shown := s.get(t, path, api.RoleViewer)
		is(t, path, shown, http.StatusOK)
		for text, there := range want {
			if strings.Contains(shown.body, text) != there {
				t.Errorf("%s shows %q: %v", path, text, !there)
			}
		}
	}
	sample.bound = nil
	for _, path := range []string{"/backups/b1", "/databases/shop", "/schedules", "/tasks/t4"} {
		if shown := s.get(t, path, api.RoleViewer).body; strings.Contains(shown, `method="post"`) && strings.Count(shown, `method="post"`) > 1 {
			t.Errorf("%s offers a viewer something to do: %s", path, shown)
		}
	}
}
