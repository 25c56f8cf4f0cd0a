package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// FuzzBodies: whatever an admin sends to whichever route that changes something, it is done or refused: nothing panics, and
// no fault of the request is called one of the daemon.
func FuzzBodies(f *testing.F) {
	b := newFake().backend()
	b.Accounts = accounts.New(accounts.Config{Store: b.Kept, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}})
	server := NewHandler(b)
	routes := map[string]Route{}
	for _, r := range server.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		routes[r.Action] = r
		f.Add(r.Action, bodies[r.Action], "x")
		f.Add(r.Action, `{"unheard-of":[{}]}`, "%2e%2e%2fx")
	}
	for _, text := range []string{"", "null", "[]", "{}{}", `{"node":null}`, `{"ttl":-1}`, `{"database":"` + strings.Repeat("[", 1000) + `"}`, "\xff\xfe", `{"token":1e400}`} {
		for _, action := range []string{"backup.create", "restore.create", "fence.lower", "settings.apply", "user.add", "token.add", "item.put"} {
			f.Add(action, text, "x")
		}
	}
	f.Fuzz(func(t *testing.T, action, body, name string) {
		r, known := routes[action]
		if !known {
			return
		}
		ctx, cancel := context.WithTimeout(accounts.With(t.Context(), accounts.Actor{Name: "eve", Role: api.RoleAdmin, Via: accounts.ViaSocket}), time.Second)
		defer cancel()
		q := httptest.NewRequest(r.Method, "/", strings.NewReader(body)).WithContext(ctx)
		path := r.Path
		for _, parameter := range r.names() {
			path = strings.Replace(path, "{"+parameter+"}", url.PathEscape(name), 1)
		}
		var err error
		if q.URL, err = q.URL.Parse(path); err != nil {
			return
		}
		q.Header.Set("Content-Type", jsonType)
		a := httptest.NewRecorder()
		server.ServeHTTP(a, q)
		if a.Code >= 500 && a.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s with %q: status %d: %s", r.Method, path, body, a.Code, a.Body)
		}
		if a.Code >= 400 {
			var p api.Problem
			if json.Unmarshal(a.Body.Bytes(), &p) != nil || p.Status != a.Code || p.Code == "" || p.Detail == "" || strings.Contains(p.Detail, "goroutine ") {
				t.Errorf("%s %s with %q: %s is no problem", r.Method, path, body, a.Body)
			}
		}
	})
}
