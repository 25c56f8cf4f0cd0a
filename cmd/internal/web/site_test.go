package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

const (
	password = "correct horse battery"
	patience = 60 * time.Second
)

// served is a site behind a Front on a port, as a node serves it, with one user of each role.
type served struct {
	*Site
	sample   *sample
	api      *admin.API
	accounts *accounts.Accounts
	trail    *audit.Trail
	base     string
	late     atomic.Int64        // by how much the accounts' clock is ahead
	sessions map[api.Role]string // cookies
	token    string              // id of a token that may go
	waiting  string              // id of a request of the operator's that waits for approval
}

func serve(t testing.TB, s *sample) *served {
	t.Helper()
	store := &kept.Memory{}
	out := &served{sample: s, sessions: map[api.Role]string{}}
	out.accounts = accounts.New(accounts.Config{Store: store, Now: func() time.Time { return time.Now().Add(time.Duration(out.late.Load())) }, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}})
	out.trail = audit.New(store, "n1", time.Now)
	b := s.backend()
	b.Kept, b.Accounts, b.Trail = store, out.accounts, out.trail
	out.api = admin.NewHandler(b)
	out.Site = New(Config{API: out.api, Group: "production", Node: "n1"})
	mux := http.NewServeMux()
	mux.Handle("/api/", out.api)
	mux.Handle("/", out.Site)
	log := slog.New(slog.DiscardHandler)
	server := admin.NewNetServer("127.0.0.1:0", nil, admin.Front{Handler: mux, Accounts: out.accounts, Hosts: []string{"127.0.0.1"}, Logger: log, Refuse: out.Refuse}, log)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		server.Stop(ctx)
	})
	out.base = "http://" + server.Address()
	for _, role := range api.Roles() {
		name := "the-" + string(role)
		if _, err := out.accounts.AddUser(t.Context(), accounts.NewUser{Name: name, Role: role, Password: password}, "test"); err != nil {
			t.Fatal(err)
		}
		in, err := out.accounts.LogIn(t.Context(), name, password, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		out.sessions[role] = in.Cookie
	}
	_, made, err := out.accounts.AddToken(t.Context(), accounts.NewToken{Name: "monitor", User: "the-viewer", Role: api.RoleViewer}, "test")
	if err != nil {
		t.Fatal(err)
	}
	out.token = made.ID
	asked, err := approvals.New(store, time.Now).Ask(t.Context(), approvals.Request{Approval: api.Approval{
		For: []string{api.ApproveDelete}, Text: "delete backup b1 of shop at once, so that it cannot be taken back", Action: "backup.delete", Target: "b1",
		Method: http.MethodPost, Path: api.BackupPath("b1") + "/delete", Request: []byte(`{"now":true}`), By: "the-operator", Role: api.RoleOperator, Via: accounts.ViaSession, Address: "192.0.2.7",
	}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	out.waiting = asked.ID
	return out
}

// fill gives a path with its parts filled in by what the sample has.
func (s *served) fill(path string) string {
	part := map[string]string{"{$}": "", "{component}": "backup", "{run}": deadRun, "{node}": "n2"}
	part["{id}"], part["{name}"] = "t1", "shop"
	part["{kind}"] = "database"
	switch {
	case strings.HasPrefix(path, "/servers/"):
		part["{name}"] = "pg1"
	case strings.HasPrefix(path, "/backups/"):
		part["{id}"] = "b1"
	case strings.HasPrefix(path, "/approvals/"):
		part["{id}"] = s.waiting
	case strings.HasPrefix(path, "/settings/tokens/"):
		part["{id}"] = s.token
	case strings.HasPrefix(path, "/settings/users/"):
		part["{name}"] = "the-viewer"
	case strings.HasPrefix(path, "/schedules/"):
		part["{name}"] = "nightly"
	case strings.HasPrefix(path, "/storages/"):
		part["{name}"] = "near"
	}
	for name, value := range part {
		path = strings.ReplaceAll(path, name, value)
	}
	return path
}

// request is one of a role, or of nobody.
func (s *served) request(t testing.TB, method, path string, role api.Role, form url.Values) *http.Request {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if role != "" {
		q.AddCookie(&http.Cookie{Name: "fencepost", Value: s.sessions[role]})
	}
	return q
}

// page is an answer; redirections are not followed.
type page struct {
	status int
	header http.Header
	body   string
}

func send(t testing.TB, q *http.Request) page {
	t.Helper()
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{a.StatusCode, a.Header, string(text)}
}

// get is a page as a role sees it.
func (s *served) get(t testing.TB, path string, role api.Role) page {
	t.Helper()
	return send(t, s.request(t, http.MethodGet, path, role, nil))
}

// post sends a form with the session's token.
func (s *served) post(t testing.TB, path string, role api.Role, form url.Values) page {
	t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set(fieldToken, accounts.FormToken(s.sessions[role]))
	return send(t, s.request(t, http.MethodPost, path, role, form))
}

// TestEveryPage: each view is shown, whole, to those who may see it, in a group where much has happened and in one where
// nothing has.
func TestEveryPage(t *testing.T) {
	for name, sample := range map[string]*sample{"full": fullSample(), "empty": {}} {
		s := serve(t, sample)
		for _, v := range s.Views() {
			path := s.fill(v.Path)
			if name == "empty" && strings.Contains(v.Path, "{") && v.Path != "/{$}" {
				continue // there is no such thing
			}
			role := api.RoleAdmin
			if v.Path == pathLogIn {
				role = ""
			}
			got := s.get(t, path, role)
			if watch := `data-watch="` + strings.Join(s.api.Watched(), " ") + `"`; role != "" && !strings.Contains(got.body, watch) {
				t.Errorf("%s: %s does not follow %s", name, path, watch)
			}
			if got.status != http.StatusOK || !strings.HasSuffix(got.body, "</html>\n") || strings.Contains(got.body, "%!") {
				t.Errorf("%s: %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
}
