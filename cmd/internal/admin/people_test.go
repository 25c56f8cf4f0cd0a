package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// ask sends a request with headers (name, value, ...) and wants that status; the answer is decoded into into.
func (s *site) ask(t *testing.T, method, path, body string, want int, into any, headers ...string) http.Header {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	status, header, text := send(t, http.DefaultClient, q)
	is(t, method+" "+path, want, status, header, text)
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return header
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// TestLogInAndOut: a browser's way through: log in, look, change something with the form token, log out, and be nobody.
func TestLogInAndOut(t *testing.T) {
	s := newSite(t, nil)
	var me api.Session
	header := s.ask(t, "POST", api.PathSession, `{"name":"the-operator","password":"`+password+`"}`, 202, &me)
	set := header.Get("Set-Cookie")
	for _, part := range []string{"fencepost=the-operator.", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(set, part) {
			t.Errorf("cookie %q lacks %s", set, part)
		}
	}
	cookie := []string{"Cookie", strings.Split(set, ";")[0]}
	var again api.Session
	s.ask(t, "GET", api.PathSession, "", 200, &again, cookie...)
	if again.Name != "the-operator" || again.Role != api.RoleOperator || again.Via != accounts.ViaSession || again.FormToken != me.FormToken || again.Ends == nil {
		t.Fatalf("%+v, and at the log-in %+v", again, me)
	}
	var task api.Task
	form := append(cookie, api.HeaderFormToken, me.FormToken)
	s.ask(t, "POST", api.PathBackups, `{"database":"shop"}`, 202, &task, form...)
	header = s.ask(t, "DELETE", api.PathSession, "", 202, nil, form...)
	if !strings.Contains(header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("cookie after the log-out: %q", header.Get("Set-Cookie"))
	}
	s.ask(t, "GET", api.PathSession, "", 401, nil, cookie...)
	list, err := s.trail.List(t.Context(), api.AuditFilter{Actor: "the-operator"})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, r := range list {
		told += r.Action + " " + r.Phase + " " + r.Via + " " + r.Address + "\n"
	}
	if want := strings.Repeat("session.end done session 127.0.0.1\nsession.end asked session 127.0.0.1\n", 1) +
		"backup.create done session 127.0.0.1\nbackup.create asked session 127.0.0.1\nsession.begin done session 127.0.0.1\nsession.begin asked session 127.0.0.1\n"; told != want {
		t.Errorf("the trail says\n%s", told)
	}
	s.ask(t, "DELETE", api.PathSession, "", 400, nil, bearer(s.tokens[api.RoleViewer])...)
}

// TestLogInsAreLimited: whatever is tried from one address, after ten at once it has to wait; another one need not.
func TestLogInsAreLimited(t *testing.T) {
	s := newSite(t, nil)
	statuses := map[int]int{}
	for i := range 15 {
		q := s.request(t, s.route(t, "session.begin"), fmt.Sprintf(`{"name":"nobody%d","password":"x"}`, i))
		status, header, body := send(t, http.DefaultClient, q)
		is(t, "a log-in", status, status, header, body)
		statuses[status]++
	}
	if statuses[401] != 10 || statuses[429] != 5 {
		t.Errorf("answers by status: %v", statuses)
	}
}

// TestOwnTokens: who is no admin sees, makes and ends only tokens of their own, and none above themselves.
func TestOwnTokens(t *testing.T) {
	s := newSite(t, nil)
	viewer, admin := bearer(s.tokens[api.RoleViewer]), bearer(s.tokens[api.RoleAdmin])
	var made api.NewToken
	s.ask(t, "POST", api.PathTokens, `{"name":"mine","role":"viewer"}`, 202, &made, viewer...)
	if made.User != "the-viewer" || !strings.HasPrefix(made.Secret, accounts.TokenPrefix) {
		t.Fatalf("%+v", made)
	}
	s.ask(t, "GET", api.PathView, "", 200, nil, bearer(made.Secret)...)
	s.ask(t, "POST", api.PathTokens, `{"name":"more","role":"operator"}`, 403, nil, viewer...)
	s.ask(t, "POST", api.PathTokens, `{"name":"his","role":"viewer","user":"the-admin"}`, 403, nil, viewer...)
	var own, all []api.Token
	s.ask(t, "GET", api.PathTokens, "", 200, &own, viewer...)
	s.ask(t, "GET", api.PathTokens, "", 200, &all, admin...)
	if len(own) != 2 || len(all) != 4 {
		t.Errorf("%d own tokens, %d in all", len(own), len(all))
	}
	for _, token := range all {
		if token.User == "the-admin" {
			s.ask(t, "DELETE", api.TokenPath(token.ID), "", 404, nil, viewer...)
		}
	}
	s.ask(t, "DELETE", api.TokenPath(made.ID), "", 202, nil, viewer...)
	s.ask(t, "GET", api.PathView, "", 401, nil, bearer(made.Secret)...)
}

// TestTrailTells what somebody did, with before and after, and without what they may not tell.
func TestTrailTells(t *testing.T) {
	s := newSite(t, nil)
	admin := bearer(s.tokens[api.RoleAdmin])
	const secret = "an entirely other secret"
	s.ask(t, "POST", api.PathUsers, `{"name":"ann","role":"viewer","password":"`+secret+`"}`, 202, nil, admin...)
	s.ask(t, "POST", api.UserPath("ann"), `{"role":"operator","password":"`+secret+` 2"}`, 202, nil, admin...)
	s.ask(t, "POST", api.UserPath("bob"), `{"role":"operator"}`, 404, nil, admin...)
	var list []api.AuditRecord
	header := s.ask(t, "GET", api.AuditPath(api.AuditFilter{Action: "user", Limit: 3}), "", 200, &list, admin...)
	text, err := json.Marshal(list)
	if err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the trail holds a password: %s, %v", text, err)
	}
	failed, asked, changed := list[0], list[1], list[2]
	if failed.Phase != "failed" || failed.Of != asked.Seq || failed.Target != "bob" || !strings.Contains(failed.Problem, "bob") {
		t.Errorf("%+v", failed)
	}
	if !strings.Contains(string(changed.Before), `"role":"viewer"`) || !strings.Contains(string(changed.After), `"role":"operator"`) || changed.Actor != "the-admin" || changed.Via != accounts.ViaToken {
		t.Errorf("%+v: before %s, after %s", changed, changed.Before, changed.After)
	}
	var rest []api.AuditRecord
	next := strings.TrimPrefix(strings.Split(header.Get("Link"), ">")[0], "<")
	s.ask(t, "GET", next, "", 200, &rest, admin...)
	if len(rest) != 3 || rest[0].Seq != changed.Seq-1 {
		t.Errorf("the next page, %s: %+v", next, rest)
	}
	var check api.AuditCheck
	s.ask(t, "GET", api.PathAuditCheck, "", 200, &check, admin...)
	if !check.Whole || check.Records != 6 {
		t.Errorf("%+v", check)
	}
}

// TestNothingWithoutRecord: what cannot be written down is not done.
func TestNothingWithoutRecord(t *testing.T) {
	b := newFake()
	back := b.backend()
	store := &brokenStore{}
	back.Trail = audit.New(store, "n1", time.Now)
	_, c, _ := serve(t, back)
	store.fail.Store(true)
	if _, err := c.Restore(t.Context(), api.RestoreBackup{Backup: "b1"}); err == nil {
		t.Error("a restore without a record")
	}
	if len(b.restores) != 0 {
		t.Error("it was done all the same")
	}
}
