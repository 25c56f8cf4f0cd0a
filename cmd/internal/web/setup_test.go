package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestSettingsByForm: a form says of a setting what its fields say, numbers as numbers and lists as lists, and keeps the keys
// that have no field; one that is refused is shown again as it was filled.
func TestSettingsByForm(t *testing.T) {
	s := serve(t, fullSample())
	is(t, "a storage", s.post(t, "/setup/storage", api.RoleAdmin, url.Values{"name": {"near"}, "kind": {"local"}, "path": {"/srv/near"}, "append_only": {"yes"}}), http.StatusSeeOther)
	is(t, "a retention", s.post(t, "/setup/retention", api.RoleAdmin, url.Values{"name": {"shop"}, "last": {"3"}, "daily": {" 7 "}}), http.StatusSeeOther)
	is(t, "a database", s.post(t, "/setup/database/shop", api.RoleAdmin, url.Values{"dsn": {"env:SHOP"}, "needs": {"eu, big"}, "more": {`{"yield":"never"}`}}), http.StatusSeeOther)
	want := []string{
		`setting.set storage near {"append_only":true,"kind":"local","name":"near","path":"/srv/near"}`,
		`setting.set retention shop {"daily":7,"database":"shop","last":3}`,
		`setting.set database shop {"dsn":"env:SHOP","name":"shop","needs":["eu","big"],"yield":"never"}`,
	}
	if got := s.sample.changes(); !slices.Equal(got, want) {
		t.Errorf("what was set:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	form := s.get(t, "/setup/database/shop", api.RoleAdmin).body
	for _, part := range []string{`value="file:/etc/fencepost/shop.dsn"`, `value="eu, big"`, `&#34;yield&#34;: &#34;never&#34;`} {
		if !strings.Contains(form, part) {
			t.Errorf("the form lacks %s: %s", part, form)
		}
	}
	for what, f := range map[string]url.Values{
		"holds a password":        {"dsn": {"postgres://ann:hush@db/shop"}},
		"last: want a number":     {"last": {"many"}},
		"want a JSON object":      {"more": {"[1]"}},
		"name: is missing":        {"name": {""}},
		"there are no settings o": {"name": {"x"}},
	} {
		path := "/setup/database"
		switch {
		case f.Has("last"):
			path = "/setup/retention"
		case strings.HasPrefix(what, "there are no"):
			path = "/setup/nonsense"
		}
		if !f.Has("name") {
			f.Set("name", "mine")
		}
		got := s.post(t, path, api.RoleAdmin, f)
		if got.status < 400 || got.status > 499 || !strings.Contains(got.body, what) || path != "/setup/nonsense" && f.Get("name") != "" && !strings.Contains(got.body, `value="mine"`) {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
}
