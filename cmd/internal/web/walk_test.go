package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// good are forms that make sense, of the deeds that need one.
var good = map[string]url.Values{
	actionLogIn:        {"name": {"the-viewer"}, "password": {password}},
	"backup.create":    {"database": {"shop"}},
	"restore.create":   {"target": {"shop_copy"}, "repeat": {"shop_copy"}},
	"backup.delete":    {"repeat": {"shop"}},
	"backup.mark":      {"note": {"keep"}, "was_note": {"before the release"}},
	"recovery.drop":    {"why": {"gone"}},
	"claim.free":       {"component": {"backup"}, "item": {"t1"}, "token": {"7"}},
	"claim.quarantine": {"component": {"backup"}, "item": {"t1"}, "token": {"7"}},
	"user.add":         {"name": {"new"}, "role": {"viewer"}, "password": {password}},
	"upgrade.finalize": {"repeat": {"production"}, "without": {"n4"}},
	"token.add":        {"title": {"ci"}, "role": {"viewer"}, "days": {"3"}},
}

// form is a good one for a deed.
func form(d Deed) url.Values {
	out := url.Values{}
	for name, value := range good[d.Action] {
		out[name] = value
	}
	if d.Path == "/setup/{kind}" {
		out.Set("name", "books")
	}
	if strings.HasSuffix(d.Path, "/role") {
		out.Set("role", "viewer")
	}
	return out
}

// route is the one of the API that carries a deed out.
func (s *served) route(t testing.TB, action string) admin.Route {
	t.Helper()
	i := slices.IndexFunc(s.api.Routes(), func(r admin.Route) bool { return r.Action == action })
	if i < 0 {
		t.Fatalf("the API has no route %q", action)
	}
	return s.api.Routes()[i]
}

// records counts what the audit trail holds.
func (s *served) records(t testing.TB) int {
	t.Helper()
	list, err := s.trail.List(t.Context(), api.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// is wants an answer of that status, hardened, and without a stack.
func is(t *testing.T, what string, got page, want int) {
	t.Helper()
	if got.status != want {
		t.Errorf("%s: status %d, want %d: %.2000s", what, got.status, want, got.body)
	}
	policy := got.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || got.header.Get("X-Frame-Options") != "DENY" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: it is not hardened: %v", what, got.header)
	}
	if got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: it may be kept: %s", what, got.header.Get("Cache-Control"))
	}
	if strings.Contains(got.body, "goroutine ") || strings.Contains(got.body, ".go:") {
		t.Errorf("%s: it shows a stack: %s", what, got.body)
	}
}

// TestEveryViewRefuses walks the pages: whatever page there is, and will be, shows nobody but those who may see it anything,
// and sends who is not logged in to the log-in and back.
func TestEveryViewRefuses(t *testing.T) {
	s := serve(t, fullSample())
	if len(s.Views()) < 15 {
		t.Fatalf("there are %d views", len(s.Views()))
	}
	for _, v := range s.Views() {
		path := s.fill(v.Path)
		if v.Least == "" {
			if v.Path != pathLogIn {
				t.Errorf("%s is for everybody", v.Path)
			}
			continue
		}
		nobody := s.get(t, path, "")
		is(t, path+" to nobody", nobody, http.StatusSeeOther)
		if to := nobody.header.Get("Location"); to != logInPath(path) {
			t.Errorf("%s leads nobody to %s", path, to)
		}
		for _, role := range api.Roles() {
			want := http.StatusForbidden
			if role.May(v.Least) {
				want = http.StatusOK
			}
			is(t, path+" to a "+string(role), s.get(t, path, role), want)
		}
		q := s.request(t, http.MethodGet, path, api.RoleAdmin, nil)
		q.Host = "evil.example"
		is(t, path+" by another name", send(t, q), http.StatusBadRequest)
		for _, method := range []string{http.MethodPut, http.MethodDelete, "NONSENSE"} {
			is(t, method+" "+path, send(t, s.request(t, method, path, api.RoleAdmin, nil)), http.StatusMethodNotAllowed)
		}
		q = s.request(t, http.MethodGet, path, api.RoleViewer, nil)
		q.Header.Set("Sec-Fetch-Site", "cross-site") // a link in a mail
		if v.Least == api.RoleViewer {
			is(t, path+" by a link", send(t, q), http.StatusOK)
		}
	}
}

// TestEveryDeedRefuses walks the forms: whatever form there is, and will be, changes nothing for whom and what it has to be
// refused to.
func TestEveryDeedRefuses(t *testing.T) {
	s := serve(t, fullSample())
	if len(s.Deeds()) < 25 {
		t.Fatalf("there are %d deeds", len(s.Deeds()))
	}
	for _, d := range s.Deeds() {
		t.Run(d.Path, func(t *testing.T) {
			before := s.records(t)
			least := s.route(t, d.Action).Role
			if d.Action != actionLogIn {
				s.refusesWho(t, d, least)
			}
			s.refusesForeign(t, d)
			s.refusesWhat(t, d)
			if after := s.records(t); after != before {
				t.Errorf("what was refused left %d records in the audit trail", after-before)
			}
			if did := s.sample.changes(); len(did) > 0 {
				t.Errorf("what was refused did %v", did)
			}
		})
	}
}

func (s *served) refusesWho(t *testing.T, d Deed, least api.Role) {
	path := s.fill(d.Path)
	is(t, "nobody", send(t, s.request(t, http.MethodPost, path, "", form(d))), http.StatusUnauthorized)
	for _, role := range api.Roles() {
		if !role.May(least) {
			is(t, string(role), s.post(t, path, role, form(d)), http.StatusForbidden)
		}
	}
	for what, token := range map[string]string{"no form token": "", "a token of somebody else": accounts.FormToken("the-admin." + strings.Repeat("a", 43))} {
		f := form(d)
		f.Set(fieldToken, token)
		is(t, what, send(t, s.request(t, http.MethodPost, path, api.RoleAdmin, f)), http.StatusForbidden)
	}
	q := s.request(t, http.MethodPost, path, "", form(d))
	q.AddCookie(&http.Cookie{Name: "fencepost", Value: "the-admin." + strings.Repeat("a", 43)})
	is(t, "a cookie of nobody", send(t, q), http.StatusUnauthorized)
}

// refusesForeign: another site's page gets nothing done, although the browser sends the cookie along.
func (s *served) refusesForeign(t *testing.T, d Deed) {
	for what, header := range map[string][2]string{
		"cross-site": {"Sec-Fetch-Site", "cross-site"}, "same site, other": {"Sec-Fetch-Site", "same-site"},
		"an origin": {"Origin", "https://evil.example"}, "the origin null": {"Origin", "null"}, "another port of us": {"Origin", "http://127.0.0.1:1"},
	} {
		f := form(d)
		f.Set(fieldToken, accounts.FormToken(s.sessions[api.RoleAdmin]))
		q := s.request(t, http.MethodPost, s.fill(d.Path), api.RoleAdmin, f)
		q.Header.Set(header[0], header[1])
		is(t, what, send(t, q), http.StatusForbidden)
	}
	q := s.request(t, http.MethodPost, s.fill(d.Path), api.RoleAdmin, form(d))
	q.Host = "evil.example"
	is(t, "another name", send(t, q), http.StatusBadRequest)
}

// refusesWhat: forms that make no sense.
func (s *served) refusesWhat(t *testing.T, d Deed) {
	token := fieldToken + "=" + accounts.FormToken(s.sessions[api.RoleAdmin])
	for _, x := range []struct {
		what, kind, body string
		status           int
	}{
		{"oversized", "application/x-www-form-urlencoded", token + "&x=" + strings.Repeat("x", maxForm), http.StatusRequestEntityTooLarge},
		{"malformed", "application/x-www-form-urlencoded", token + "&%zz", http.StatusBadRequest},
		{"a field that nobody knows", "application/x-www-form-urlencoded", token + "&nobody_knows=1", http.StatusBadRequest},
		{"JSON", "application/json", `{"form_token":"x"}`, http.StatusUnsupportedMediaType},
		{"a text", "text/plain", token, http.StatusUnsupportedMediaType},
		{"no kind", "", token, http.StatusUnsupportedMediaType},
		{"parts", "multipart/form-data; boundary=x", "--x--", http.StatusUnsupportedMediaType},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+s.fill(d.Path), strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		q.AddCookie(&http.Cookie{Name: "fencepost", Value: s.sessions[api.RoleAdmin]})
		if x.kind != "" {
			q.Header.Set("Content-Type", x.kind)
		}
		is(t, x.what, send(t, q), x.status)
	}
}

// TestEveryDeedIsDone: the good form of each deed does what its route of the API does, once, under the same name in the audit
// trail, and leads on to a page that there is.
func TestEveryDeedIsDone(t *testing.T) {
	for _, d := range (&Site{}).Deeds() {
		t.Run(d.Path, func(t *testing.T) {
			s := serve(t, fullSample())
			path := s.fill(d.Path)
			got := s.post(t, path, api.RoleAdmin, form(d))
			if got.status != http.StatusSeeOther && got.status != http.StatusOK {
				t.Fatalf("%d %s", got.status, got.body)
			}
			list, err := s.trail.List(t.Context(), api.AuditFilter{})
			records := 2
			if d.Action == "approval.approve" { // and what was approved
				records = 4
			}
			if err != nil || len(list) != records || list[0].Action != d.Action || list[0].Phase != audit.Done || list[0].Actor == "" {
				t.Errorf("in the audit trail: %+v, %v", list, err)
			}
			to := got.header.Get("Location")
			if got.status == http.StatusOK || strings.HasPrefix(d.Path, "/log") {
				return
			}
			next := s.get(t, to, api.RoleAdmin)
			done, _ := url.Parse(to)
			if sentence := said[done.Query().Get("done")]; next.status != http.StatusOK || sentence == "" || !strings.Contains(next.body, sentence) {
				t.Errorf("it leads to %s: %d, which does not say %q", to, next.status, sentence)
			}
		})
	}
}

// TestTwice: a form that makes something and is sent twice makes it once.
func TestTwice(t *testing.T) {
	s := serve(t, fullSample())
	f := url.Values{"database": {"shop"}, fieldKey: {"drawn"}}
	for range 2 {
		is(t, "a backup", s.post(t, "/backups", api.RoleOperator, f), http.StatusSeeOther)
	}
	if got := s.sample.changes(); !slices.Equal(got, []string{"backup.create shop"}) {
		t.Errorf("what was done: %v", got)
	}
}

// TestWhereTheLogInLeads: to pages of ours, and nowhere else.
func TestWhereTheLogInLeads(t *testing.T) {
	for _, to := range []string{"", "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "/log-in", "javascript:alert(1)", "/\t/evil.example", "tasks", "/a\r\nSet-Cookie: x=y", "/%zz"} {
		if ownPage(to) {
			t.Errorf("%q is taken for a page of ours", to)
		}
	}
	s := serve(t, fullSample())
	for to, want := range map[string]string{"/tasks?internal=true": "/tasks?internal=true", "//evil.example/": "/"} {
		got := send(t, s.request(t, http.MethodPost, pathLogIn, "", url.Values{"name": {"the-viewer"}, "password": {password}, "to": {to}}))
		if where := got.header.Get("Location"); got.status != http.StatusSeeOther || where != want {
			t.Errorf("%q leads to %q, %d", to, where, got.status)
		}
		if cookie := got.header.Get("Set-Cookie"); !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
			t.Errorf("the cookie is %s", cookie)
		}
	}
	is(t, "the log-in of who is logged in", s.get(t, pathLogIn, api.RoleViewer), http.StatusSeeOther)
}

// TestWrongPasswords: a wrong one is told as the API does, five lock the user also for the right one, and too many are refused
// before anybody looks.
func TestWrongPasswords(t *testing.T) {
	s := serve(t, fullSample())
	try := func(word string) page {
		return send(t, s.request(t, http.MethodPost, pathLogIn, "", url.Values{"name": {"the-viewer"}, "password": {word}}))
	}
	for range 5 {
		got := try("wrong horse battery")
		is(t, "a wrong password", got, http.StatusUnauthorized)
		if !strings.Contains(got.body, "the name or the password is wrong") || !strings.Contains(got.body, `value="the-viewer"`) || strings.Contains(got.body, "wrong horse") {
			t.Errorf("the page: %s", got.body)
		}
	}
	is(t, "the right one, locked", try(password), http.StatusUnauthorized)
	for range 4 {
		try("wrong horse battery")
	}
	is(t, "the eleventh", try(password), http.StatusTooManyRequests)
}

// TestOverviewOnceASecond: however many ask, it is made and rendered once.
func TestOverviewOnceASecond(t *testing.T) {
	s := serve(t, fullSample())
	began := time.Now()
	for range 50 {
		is(t, "the overview", s.get(t, "/", api.RoleViewer), http.StatusOK)
		is(t, "the overview", s.get(t, "/", api.RoleAdmin), http.StatusOK)
	}
	s.sample.mu.Lock()
	defer s.sample.mu.Unlock()
	s.first.turn.Lock()
	defer s.first.turn.Unlock()
	if most := uint64(time.Since(began)/overviewEvery) + 1; s.first.now > most || uint64(s.sample.looked) != s.first.now {
		t.Errorf("100 requests rendered it %d times, and made it %d times", s.first.now, s.sample.looked)
	}
}

// TestAnOpenPageIsNoUse: a page that is left open keeps itself up to date, and its session ends for all that, while one that
// is used goes on until its day is over.
func TestAnOpenPageIsNoUse(t *testing.T) {
	s := serve(t, fullSample())
	look := func(role api.Role, on bool) int {
		q := s.request(t, http.MethodGet, "/tasks", role, nil)
		if on {
			q.Header.Set(api.HeaderLookingOn, "1")
		}
		return send(t, q).status
	}
	for range 5 {
		s.late.Add(int64(10 * time.Minute))
		if got := look(api.RoleAdmin, false); got != http.StatusOK {
			t.Fatalf("one that is used: %d", got)
		}
		if got, open := look(api.RoleViewer, true), s.late.Load() < int64(30*time.Minute); (got == http.StatusOK) != open {
			t.Fatalf("one that is left open, after %s: %d", time.Duration(s.late.Load()), got)
		}
	}
	s.late.Add(int64(12 * time.Hour))
	if got := look(api.RoleAdmin, false); got != http.StatusSeeOther {
		t.Errorf("after its day: %d", got)
	}
}
