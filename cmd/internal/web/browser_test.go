package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/web/webtest"
)

// shotName is a path as the name of a picture.
func shotName(path string) string {
	name := strings.Trim(strings.NewReplacer("/{$}", "overview", "/", "-", "{", "", "}", "").Replace(path), "-")
	return name
}

// TestPagesInABrowser looks at each page as an admin sees it: with light and dark colours, on a wide screen and on a phone,
// with script and without.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, fullSample())
	b := webtest.Open(t)
	for i, v := range s.Views() {
		path := s.fill(v.Path)
		switch {
		case i == 1: // the first one is for who is not logged in
			b.Cookie(s.base, "fencepost", s.sessions[api.RoleAdmin])
		case v.Path == "/backups/{id}/restore":
			path += "?target=shop_copy"
		}
		b.Wide(1280)
		b.Dark(false)
		b.Go(s.base + path)
		b.Check(path + " wide, light")
		b.Shot(shotName(v.Path))
		if i > 0 { // there the focus is in a field from the beginning
			b.Walk(path)
		}
		b.Wide(360)
		b.Dark(true)
		b.Check(path + " narrow, dark")
		b.Shot(shotName(v.Path) + "-phone")
	}
}

// TestWithoutScript: each page is whole without script, on a phone, too; and what is live without script loads itself again.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := serve(t, fullSample())
	b := webtest.Open(t)
	b.Script(false)
	b.Wide(360)
	b.Cookie(s.base, "fencepost", s.sessions[api.RoleOperator])
	for _, v := range s.Views() {
		if v.Least == api.RoleAdmin || v.Path == pathLogIn {
			continue
		}
		path := s.fill(v.Path)
		b.Go(s.base + path)
		b.Check(path + " without script")
		if again := webtest.Eval[bool](b, `!!document.querySelector("noscript meta[http-equiv=refresh]")`); again != v.live {
			t.Errorf("%s: it loads itself again: %t", path, again)
		}
		if webtest.Eval[bool](b, `document.querySelector("#pulse").checkVisibility()`) {
			t.Errorf("%s: it says that it is live", path)
		}
	}
	b.Go(s.base + "/tasks/t1")
	b.Click("form[action='/tasks/t1/cancel'] button")
	b.AwaitText("The task is asked to end.")
	b.Go(s.base + "/backups/b1/restore?target=shop_copy")
	b.Type("#repeat", "shop_copyy")
	b.Click("form[method=post][action$='/restore'] button")
	b.AwaitText("is not repeated")
	b.Type("#repeat", "shop_copy")
	b.Click("form[method=post][action$='/restore'] button")
	b.AwaitText("The restore is planned.")
	if got := s.sample.changes(); !slices.Equal(got, []string{"task.cancel t1", "restore.create shop_copy"}) {
		t.Errorf("what was done: %v", got)
	}
	b.Click("[popovertarget=menu]") // the menu of a phone needs none either
	b.Click("#menu a[href='/schedules']")
	b.AwaitText("Europe/Paris")
}
