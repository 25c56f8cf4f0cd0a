package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// teams bind viewers to labels of databases that the fake knows.
type teams struct {
	bound  map[string][]Bound
	labels map[string][]string
}

func (t teams) Bound(user string) []Bound         { return t.bound[user] }
func (t teams) LabelsOf(database string) []string { return t.labels[database] }

// backupsOf are backups whose id begins with their database's name.
type backupsOf struct{ backends }

// backends is Backups under a name that is no method of it.
type backends = Backups

func (backupsOf) Backup(_ context.Context, id string) (api.Backup, error) {
	database, _, _ := strings.Cut(id, "-")
	return api.Backup{ID: id, Database: database}, nil
}

// TestBoundToLabels: who is bound to a team's databases, as source or as target, is operator of these and of nothing else;
// what is about no database, or about a team's and another's, is refused.
func TestBoundToLabels(t *testing.T) {
	s := newSite(t, nil)
	all := teams{
		bound: map[string][]Bound{
			"the-viewer":   {{Labels: []string{"team-a"}, Source: true, Target: true}, {Labels: []string{"reports"}, Source: true}, {Labels: []string{"lab"}, Target: true}},
			"the-operator": {{Labels: []string{"team-a"}, Source: true, Target: true}},
		},
		labels: map[string][]string{"shop": {"team-a", "x"}, "sales": {"reports"}, "lab": {"lab"}, "payroll": {"team-b"}},
	}
	s.h.Bindings, s.h.Backups = all, backupsOf{backends: s.h.Backups}
	for id, task := range map[string]api.Task{"make": {Type: "create", Database: "shop"}, "take": {Type: "create", Database: "payroll"}, "back": {Type: "restore", Database: "sales"}} {
		task.ID = id
		s.fake.set(task)
	}
	client := &http.Client{}
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/backups", `{"database":"shop"}`, 202},
		{"/backups", `{"database":"sales"}`, 202},
		{"/backups", `{"database":"payroll"}`, 403},
		{"/backups", `{"database":"lab"}`, 403}, // a target only
		{"/backups", `{"database":"unknown"}`, 403},
		{"/backups", `{}`, 403},
		{"/backups", `{"database":"shop"} {"database":"payroll"}`, 403},
		{"/backups", `{"database":"payroll","database":"shop"}`, 202}, // the last one counts, here and there
		{"/backups", `{"database":"shop","role_passwords":true}`, 403},
		{"/backups/shop-1/delete", `{}`, 202},
		{"/backups/payroll-1/delete", `{}`, 403},
		{"/backups/shop-1/mark", `{"pinned":true}`, 202},
		{"/backups/shop-1/verify", `{}`, 202},
		{"/backups/shop-1/verify", `{"scratch":"lab"}`, 202},
		{"/backups/shop-1/verify", `{"scratch":"payroll"}`, 403},
		{"/backups/shop-1/replicate", `{}`, 202},
		{"/backups/shop-1/undelete", ``, 202},
		{"/backups/shop-1/restore", `{}`, 202},
		{"/backups/shop-1/restore", `{"replace":true}`, 202},
		{"/backups/shop-1/restore", `{"in_place":true}`, 202},
		{"/backups/shop-1/restore", `{"target":"copy"}`, 202},
		{"/backups/shop-1/restore", `{"target":"payroll","replace":true}`, 403}, // another's database on the team's server
		{"/backups/shop-1/restore", `{"target":"payroll","in_place":true}`, 403},
		{"/backups/shop-1/restore", `{"database":"lab"}`, 202},
		{"/backups/shop-1/restore", `{"database":"lab","replace":true}`, 403},
		{"/backups/shop-1/restore", `{"database":"payroll"}`, 403},
		{"/backups/shop-1/restore", `{"database":"sales"}`, 403}, // a source only
		{"/backups/sales-1/restore", `{}`, 403},
		{"/backups/sales-1/restore", `{"database":"lab"}`, 202},
		{"/backups/payroll-1/restore", `{"database":"shop"}`, 403},
		{"/backups/shop-1/restore", `{"accept_foreign":true}`, 403},
		{"/tasks/make/cancel", ``, 202},
		{"/tasks/take/cancel", ``, 403},
		{"/tasks/back/cancel", ``, 403}, // into a source
		{"/tasks/make/undo", ``, 403},
		{"/schedules/nightly/disable", ``, 202}, // of shop
		{"/schedules/other/disable", ``, 403},
		{"/retention/shop/confirm", ``, 202},
		{"/retention/payroll/confirm", ``, 403},
		{"/components/backup/pause", ``, 403}, // about everything
		{"/users", `{"name":"new","role":"viewer","password":"` + password + `"}`, 403},
	} {
		for _, via := range []string{"session", "token"} {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+api.Base+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.body != "" {
				q.Header.Set("Content-Type", jsonType)
			}
			want := c.want
			if via == "token" { // of the role viewer: no more than that
				q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleViewer])
				want = 403
			} else {
				session := s.sessions[api.RoleViewer]
				q.AddCookie(&http.Cookie{Name: cookiePlain, Value: session.Cookie})
				q.Header.Set(api.HeaderFormToken, accounts.FormToken(session.Cookie))
			}
			status, header, body := send(t, client, q)
			is(t, via+" "+c.path+" "+c.body, want, status, header, body)
		}
	}

	// A session's form token is asked for here as everywhere.
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+api.PathBackups, strings.NewReader(`{"database":"shop"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", jsonType)
	q.AddCookie(&http.Cookie{Name: cookiePlain, Value: s.sessions[api.RoleViewer].Cookie})
	status, header, body := send(t, client, q)
	is(t, "without a form token", 403, status, header, body)
}

// TestTokenOfABoundUser may be operator, and is that of the same databases only.
func TestTokenOfABoundUser(t *testing.T) {
	s := newSite(t, nil)
	s.h.Bindings = teams{map[string][]Bound{"ann": {{Labels: []string{"team-a"}, Source: true}}}, map[string][]string{"shop": {"team-a"}}}
	who := accounts.New(accounts.Config{Store: s.h.Kept, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}, Bound: func(user string) bool { return user == "ann" }})
	for _, name := range []string{"ann", "eve"} {
		if _, err := who.AddUser(t.Context(), accounts.NewUser{Name: name, Role: api.RoleViewer, Password: password}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "x", User: "eve", Role: api.RoleOperator}, "test"); err == nil {
		t.Error("a viewer who is bound to nothing has an operator's token")
	}
	if _, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "x", User: "ann", Role: api.RoleAdmin}, "test"); err == nil {
		t.Error("a viewer who is bound has an admin's token")
	}
	secret, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "x", User: "ann", Role: api.RoleOperator}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{`{"database":"shop"}`: 202, `{"database":"payroll"}`: 403} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+api.PathBackups, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", jsonType)
		q.Header.Set("Authorization", "Bearer "+secret)
		status, header, text := send(t, &http.Client{}, q)
		is(t, body, want, status, header, text)
	}
}

// TestOperatorsRoutesAreAboutDatabases: each route of operators says what it is about, or is listed here as one that is about
// everything, so that no new one is forgotten.
func TestOperatorsRoutesAreAboutDatabases(t *testing.T) {
	everything := []string{"recovery.", "component.", "item.", "event.", "claim.", "server.", "notify.", "restore.undo", "node."}
	for _, r := range newSite(t, nil).Routes() {
		listed := slices.ContainsFunc(everything, func(prefix string) bool { return strings.HasPrefix(r.Action, prefix) })
		if r.Role == api.RoleOperator && (r.about == nil) != listed {
			t.Errorf("%s: about databases %v, listed as about everything %v", r.Action, r.about != nil, listed)
		}
		if r.Role != api.RoleOperator && r.about != nil {
			t.Errorf("%s: needs %s, and nobody is bound as that", r.Action, r.Role)
		}
	}
}
