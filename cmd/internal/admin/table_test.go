package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

const password = "correct horse battery"

// site is the API behind a Front on a port, with one user of each role.
type site struct {
	*API
	fake     *fake
	accounts *accounts.Accounts
	trail    *audit.Trail
	base     string
	tokens   map[api.Role]string
	sessions map[api.Role]accounts.Session
	extra    string // id of a token that may go, or of a request that waits for approval
}

// newSite serves it, with TLS when secure is set.
func newSite(t *testing.T, secure *tls.Config) *site {
	t.Helper()
	s := &site{fake: newFake(), tokens: map[api.Role]string{}, sessions: map[api.Role]accounts.Session{}}
	store := &kept.Memory{}
	s.accounts = accounts.New(accounts.Config{Store: store, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}})
	s.trail = audit.New(store, "n1", time.Now)
	s.fake.set(api.Task{ID: "x", Database: "shop"})
	s.fake.fences = []api.Fence{{Component: "backup", Node: "n2", Token: 7}}
	b := s.fake.backend()
	b.Kept, b.Accounts, b.Trail = store, s.accounts, s.trail
	s.API = NewHandler(b)
	log := slog.New(slog.DiscardHandler)
	front := Front{Handler: s.API, Accounts: s.accounts, Hosts: []string{"127.0.0.1", "localhost"}, Logger: log}
	server := NewNetServer("127.0.0.1:0", secure, front, log)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	s.base = "http://" + server.Address()
	if secure != nil {
		s.base = "https://" + server.Address()
	}
	for _, role := range api.Roles() {
		name := "the-" + string(role)
		if _, err := s.accounts.AddUser(t.Context(), accounts.NewUser{Name: name, Role: role, Password: password}, "test"); err != nil {
			t.Fatal(err)
		}
		var err error
		if s.tokens[role], _, err = s.accounts.AddToken(t.Context(), accounts.NewToken{Name: "test", User: name, Role: role, Approves: true}, name); err != nil {
			t.Fatal(err)
		}
		s.logIn(t, role)
	}
	return s
}

func (s *site) logIn(t *testing.T, role api.Role) {
	t.Helper()
	var err error
	if s.sessions[role], err = s.accounts.LogIn(t.Context(), "the-"+string(role), password, "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
}

// bodies are requests that make sense, of the routes that need one.
var bodies = map[string]string{
	"recovery.retry":   `{"component":"backup","run":"ab"}`,
	"recovery.drop":    `{"component":"backup","run":"ab","why":"gone"}`,
	"fence.raise":      `{"component":"backup","node":"n2"}`,
	"fence.lower":      `{"component":"backup","node":"n2","token":7}`,
	"node.drain":       `{"node":"n3"}`,
	"node.undrain":     `{"node":"n3"}`,
	"node.remove":      `{"node":"n3"}`,
	"node.forget":      `{"node":"n2"}`,
	"node.replace":     `{"node":"n2"}`,
	"group.rebase":     `{"why":"rolled back"}`,
	"backup.create":    `{"database":"shop"}`,
	"restore.create":   `{"target":"copy"}`,
	"restore.preview":  `{"database":"shop"}`,
	"backup.mark":      `{"pinned":true}`,
	"item.put":         `{"id":"i1","type":"file"}`,
	"item.event":       `{"type":"made"}`,
	"item.forget":      `{"type":"made"}`,
	"claim.free":       `{"component":"backup","item":"t1","token":7}`,
	"claim.quarantine": `{"component":"backup","item":"t1","token":7}`,
	"keyring.add":      `{"generate":true}`,
	"keyring.use":      `{"fingerprint":"ab"}`,
	"keyring.remove":   `{"fingerprint":"ab"}`,
	"ledger.plan":      `{"do":"adopt"}`,
	"ledger.move":      `{"to":"embedded"}`,
	"ledger.copy":      `{"to":"env:DSN"}`,
	"kit.note":         `{"id":"ab","places":{"disk":"cd"},"signers":["ef"]}`,
	"group.plan":       `{"from":"disk","object":"_fencepost/group/7","cluster":"c0","secrets":"eA=="}`,
	"group.restore":    `{"from":"disk","object":"_fencepost/group/7","cluster":"c0","over":true,"secrets":"eA=="}`,
	"settings.plan":    `{"settings":[]}`,
	"settings.apply":   `{"settings":[],"prune":true}`,
	"setting.set":      `{"spec":{"name":"x"}}`,
	"session.begin":    `{"name":"the-viewer","password":"` + password + `"}`,
	"user.add":         `{"name":"new","role":"viewer","password":"` + password + `"}`,
	"user.set":         `{"unlock":true}`,
	"token.add":        `{"name":"more","role":"viewer"}`,
}

// request is a good one for a route, by nobody.
func (s *site) request(t *testing.T, r Route, body string) *http.Request {
	t.Helper()
	path := r.Path
	for _, name := range r.names() {
		path = strings.Replace(path, "{"+name+"}", "x", 1)
	}
	switch {
	case r.Action == "user.set":
		path = api.UserPath("the-viewer")
	case r.Action == "token.remove" && s.extra != "":
		path = api.TokenPath(s.extra)
	case strings.HasPrefix(r.Action, "approval.") && s.extra != "":
		path = strings.Replace(r.Path, "{id}", s.extra, 1)
	}
	q, err := http.NewRequestWithContext(t.Context(), r.Method, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", jsonType)
	}
	return q
}

// send gives the status, the header and the body of an answer; of a stream only its beginning.
func send(t *testing.T, c *http.Client, q *http.Request) (int, http.Header, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	a, err := c.Do(q.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.Header.Get("Content-Type") == "text/event-stream" && q.Method != http.MethodHead {
		first := make([]byte, 1)
		if _, err := io.ReadFull(a.Body, first); err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, a.Header, nil
	}
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, text
}

// is wants an answer of that status: a problem when it is an error, and hardened in any case.
func is(t *testing.T, what string, want, status int, header http.Header, body []byte) {
	t.Helper()
	if status != want {
		t.Errorf("%s: status %d, want %d: %s", what, status, want, body)
	}
	if status >= 400 {
		var p api.Problem
		if header.Get("Content-Type") != api.ProblemType || json.Unmarshal(body, &p) != nil || p.Status != status || p.Code == "" || p.Detail == "" {
			t.Errorf("%s: %s is no problem: %s", what, header.Get("Content-Type"), body)
		}
		if problem := describedProblem(t, body); problem != "" {
			t.Errorf("%s: a problem is not as described: %s", what, problem)
		}
		if bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(".go:")) {
			t.Errorf("%s: the answer shows a stack: %s", what, body)
		}
	}
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
		if got := header.Get(name); got != value {
			t.Errorf("%s: %s is %q", what, name, got)
		}
	}
}

// described is the API's description, as it is served.
var described = sync.OnceValues(func() (d document, err error) {
	return d, json.Unmarshal(NewHandler(newFake().backend()).h.description, &d)
})

// describedProblem says how a problem is not as the description says; empty when it is.
func describedProblem(t *testing.T, body []byte) string {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err.Error()
	}
	return d.check("problem", schema{Ref: "#/components/schemas/Problem"}, v)
}

// TestEveryRouteRefuses walks the table: whatever route there is, and will be, refuses whom and what it has to.
func TestEveryRouteRefuses(t *testing.T) {
	s := newSite(t, nil)
	if len(s.Routes()) < 50 {
		t.Fatalf("the table has %d routes", len(s.Routes()))
	}
	for _, r := range s.Routes() {
		t.Run(r.Action, func(t *testing.T) {
			before := s.records(t)
			if r.Role != "" {
				s.refusesWho(t, r)
			}
			if r.Method != http.MethodGet {
				s.refusesForeign(t, r)
				s.refusesWhat(t, r)
			}
			s.refusesOtherNames(t, r)
			s.refusesMethods(t, r)
			if after := s.records(t); after != before {
				t.Errorf("what was refused left %d records in the audit trail", after-before)
			}
		})
	}
}

func (s *site) records(t *testing.T) int {
	t.Helper()
	list, err := s.trail.List(t.Context(), api.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func (s *site) refusesWho(t *testing.T, r Route) {
	good := bodies[r.Action]
	q := s.request(t, r, good)
	status, header, body := send(t, http.DefaultClient, q)
	is(t, "nobody", http.StatusUnauthorized, status, header, body)
	for what, value := range map[string]string{"no token": "Bearer fp1_000000000000_x", "a password": "Basic YWRtaW46YWRtaW4=", "nothing": "Bearer "} {
		q := s.request(t, r, good)
		q.Header.Set("Authorization", value)
		status, header, body := send(t, http.DefaultClient, q)
		is(t, what, http.StatusUnauthorized, status, header, body)
	}
	q = s.request(t, r, good)
	q.AddCookie(&http.Cookie{Name: cookiePlain, Value: "the-admin." + strings.Repeat("a", 43)})
	status, header, body = send(t, http.DefaultClient, q)
	is(t, "a cookie of nobody", http.StatusUnauthorized, status, header, body)
	for _, role := range api.Roles() {
		if role.May(r.Role) {
			continue
		}
		q := s.request(t, r, good)
		q.Header.Set("Authorization", "Bearer "+s.tokens[role])
		status, header, body := send(t, http.DefaultClient, q)
		is(t, "a token of a "+string(role), http.StatusForbidden, status, header, body)
		status, header, body = send(t, http.DefaultClient, s.withSession(t, r, role, true))
		is(t, "a session of a "+string(role), http.StatusForbidden, status, header, body)
	}
	if r.Method == http.MethodGet {
		return
	}
	for what, token := range map[string]string{"no form token": "", "a form token of somebody else": accounts.FormToken("the-viewer." + strings.Repeat("a", 43))} {
		q := s.withSession(t, r, api.RoleAdmin, false)
		q.Header.Set(api.HeaderFormToken, token)
		status, header, body := send(t, http.DefaultClient, q)
		is(t, what, http.StatusForbidden, status, header, body)
	}
}

// withSession is a request of a logged-in user, with the form token or without.
func (s *site) withSession(t *testing.T, r Route, role api.Role, token bool) *http.Request {
	q := s.request(t, r, bodies[r.Action])
	value := s.sessions[role].Cookie
	q.AddCookie(&http.Cookie{Name: cookiePlain, Value: value})
	if token {
		q.Header.Set(api.HeaderFormToken, accounts.FormToken(value))
	}
	return q
}

// refusesForeign: another site's page gets nothing done, although the browser sends the cookie along.
func (s *site) refusesForeign(t *testing.T, r Route) {
	for what, headers := range map[string]map[string]string{
		"cross-site":         {"Sec-Fetch-Site": "cross-site"},
		"same site, other":   {"Sec-Fetch-Site": "same-site"},
		"an origin":          {"Origin": "https://evil.example"},
		"the origin null":    {"Origin": "null"},
		"another port of us": {"Origin": "http://127.0.0.1:1"},
	} {
		q := s.withSession(t, r, api.RoleAdmin, true)
		for name, value := range headers {
			q.Header.Set(name, value)
		}
		status, header, body := send(t, http.DefaultClient, q)
		is(t, what, http.StatusForbidden, status, header, body)
	}
}

// refusesWhat: bodies that make no sense.
func (s *site) refusesWhat(t *testing.T, r Route) {
	for _, x := range []struct {
		what, kind, body string
		status           int
	}{
		{"oversized", jsonType, `{"x":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusRequestEntityTooLarge},
		{"cut", jsonType, `{"database":`, http.StatusBadRequest},
		{"a list", jsonType, `[1]`, http.StatusBadRequest},
		{"two values", jsonType, `{} {}`, http.StatusBadRequest},
		{"an unknown wish", jsonType, `{"nobody_knows":1}`, http.StatusBadRequest},
		{"deep", jsonType, strings.Repeat(`{"a":`, 20000), http.StatusBadRequest},
		{"a form", "application/x-www-form-urlencoded", `database=shop`, http.StatusUnsupportedMediaType},
		{"a text", "text/plain", bodies[r.Action] + " ", http.StatusUnsupportedMediaType},
	} {
		if strings.TrimSpace(x.body) == "" { // there is nothing to be of another kind
			continue
		}
		q := s.request(t, r, x.body)
		q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
		q.Header.Set("Content-Type", x.kind)
		status, header, body := send(t, http.DefaultClient, q)
		is(t, x.what, x.status, status, header, body)
	}
}

// refusesOtherNames: a name of somebody else that leads here.
func (s *site) refusesOtherNames(t *testing.T, r Route) {
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example:80", "localhost.", ""} {
		q := s.request(t, r, bodies[r.Action])
		q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
		if q.Host = host; host == "" {
			q.Host = "[::]"
		}
		status, header, body := send(t, http.DefaultClient, q)
		is(t, "host "+host, http.StatusBadRequest, status, header, body)
	}
}

func (s *site) refusesMethods(t *testing.T, r Route) {
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodTrace, "NONSENSE"} {
		q := s.request(t, r, "")
		q.Method = method
		q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
		status, header, body := send(t, http.DefaultClient, q)
		is(t, method, http.StatusMethodNotAllowed, status, header, body)
		if !strings.Contains(header.Get("Allow"), r.Method) {
			t.Errorf("%s: allowed are %q", method, header.Get("Allow"))
		}
	}
}

// TestEveryRouteAnswers: the good request of each route is answered as the API's description says, by whoever may, with a
// token and with a session; and each that changes something is in the audit trail, twice.
func TestEveryRouteAnswers(t *testing.T) {
	s := newSite(t, nil)
	var d document
	_, _, text := send(t, http.DefaultClient, s.request(t, s.route(t, "openapi.read"), ""))
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	described := 0
	for _, methods := range d.Paths {
		described += len(methods)
	}
	if described != len(s.Routes()) {
		t.Errorf("%d operations are described, and there are %d routes", described, len(s.Routes()))
	}
	for _, r := range s.Routes() {
		if r.Action == "session.end" { // TestLogInAndOut: a token has no session
			continue
		}
		t.Run(r.Action, func(t *testing.T) {
			s.prepare(t, r)
			before := s.records(t)
			q := s.request(t, r, bodies[r.Action])
			q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
			status, header, body := send(t, http.DefaultClient, q)
			op, ok := d.Paths[r.Path][strings.ToLower(r.Method)]
			if !ok {
				t.Fatal("not described")
			}
			d.checkAnswer(t, op, status, header, body)
			want := 0
			switch {
			case r.Action == "approval.approve": // and what was approved
				want = 4
			case r.Audited:
				want = 2
			}
			if got := s.records(t) - before; got != want {
				t.Errorf("%d records in the audit trail, want %d", got, want)
			}
			if r.Method == http.MethodGet {
				q = s.request(t, r, "")
				q.Method = http.MethodHead
				q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
				if head, _, text := send(t, http.DefaultClient, q); head != status || len(text) > 0 {
					t.Errorf("HEAD is answered with %d and %d bytes", head, len(text))
				}
				return
			}
			if r.Audited {
				s.tellsBefore(t, r)
			}
			s.prepare(t, r)
			status, header, body = send(t, http.DefaultClient, s.withSession(t, r, api.RoleAdmin, true))
			d.checkAnswer(t, op, status, header, body)
			if r.Action == "session.begin" { // it has ended the session before it
				s.logIn(t, api.RoleAdmin)
			}
		})
	}
	if c, err := s.trail.Check(t.Context()); err != nil || !c.Whole {
		t.Errorf("the trail: %+v, %v", c, err)
	}
}

// nothingBefore are routes that change nothing that there was: they make something new, or begin something.
var nothingBefore = []string{
	"backup.create", "restore.create", "backup.verify", "backup.replicate", "schedule.run", "component.run", "fence.raise", "group.rebase", "user.add", "token.add",
	"storage.check", "storage.test", "catalog.rebuild", "database.test", "server.look", "notify.test", "config.reload", "ledger.copy", "session.begin", "settings.apply", "kit.note",
}

// tellsBefore: the record of a change that was just made tells what there was and what there is.
func (s *site) tellsBefore(t *testing.T, r Route) {
	t.Helper()
	list, err := s.trail.List(t.Context(), api.AuditFilter{Action: r.Action, Limit: 1})
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	done := list[0]
	if (len(done.Before) == 0) != slices.Contains(nothingBefore, r.Action) || len(done.After) == 0 && r.Action != "session.begin" || strings.Contains(string(done.Before)+string(done.After), "too long") {
		t.Errorf("what was before: %s, and after: %s", done.Before, done.After)
	}
}

// prepare has there be what a route needs.
func (s *site) prepare(t *testing.T, r Route) {
	t.Helper()
	switch r.Action {
	case "user.add":
		_ = s.accounts.RemoveUser(t.Context(), "new") // there may be none
	case "user.remove":
		_, err := s.accounts.AddUser(t.Context(), accounts.NewUser{Name: "x", Role: api.RoleViewer, Password: password}, "test")
		if err != nil {
			t.Fatal(err)
		}
	case "approval.read", "approval.approve", "approval.refuse":
		s.waiting(t)
	case "token.remove":
		_, made, err := s.accounts.AddToken(t.Context(), accounts.NewToken{Name: "gone", User: "the-viewer", Role: api.RoleViewer}, "test")
		if err != nil {
			t.Fatal(err)
		}
		s.extra = made.ID
	}
}

func (s *site) route(t *testing.T, action string) Route {
	t.Helper()
	for _, r := range s.Routes() {
		if r.Action == action {
			return r
		}
	}
	t.Fatal("no route " + action)
	return Route{}
}
