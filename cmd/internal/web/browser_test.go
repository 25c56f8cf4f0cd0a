package web

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/web/webtest"
)

// shotName is a path as the name of a picture.
func shotName(path string) string {
	name := strings.Trim(strings.NewReplacer("/{$}", "overview", "/", "-", "{", "", "}", "").Replace(path), "-")
	return name
}

// looks checks a page on a wide screen and on a phone, with light and dark colours, and keeps pictures of it: of views, and with
// FENCEPOST_LONG of all there is.
func looks(b *webtest.Browser, path, name string) {
	shot := func(name string) {
		if !strings.Contains(name, "+") || os.Getenv("FENCEPOST_LONG") != "" {
			b.Shot(name)
		}
	}
	b.Wide(1280)
	b.Dark(false)
	b.Check(path + " wide, light")
	shot(name)
	b.Dark(true)
	b.Check(path + " wide, dark")
	b.Wide(360)
	b.Check(path + " narrow, dark")
	shot(name + "-phone")
}

// written has there be something in the audit trail.
func (s *served) written(t *testing.T) {
	t.Helper()
	e := audit.Entry{Actor: "the-operator", Role: api.RoleOperator, Via: "session", Address: "192.0.2.7", Action: "restore.create", Target: "b1", Phase: audit.Asked, Request: []byte(`{"target":"shop_copy","no_owner":true}`)}
	asked, err := s.trail.Append(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	e.Phase, e.Of, e.Request, e.Before, e.After = audit.Done, asked.Seq, nil, []byte(`{"state":"completed"}`), []byte(`{"id":"t2","type":"restore","target":"a_database_with_a_name_as_long_as_names_may_be_in_postgresql_0063"}`)
	if _, err := s.trail.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Phase, e.Approver, e.Problem, e.After = audit.Failed, "the-admin", "there is a database \"shop_copy\" already", nil
	if _, err := s.trail.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// TestPagesInABrowser looks at each page as an admin sees it, and walks through it with the keyboard.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, fullSample())
	s.written(t)
	b := webtest.Open(t)
	for i, v := range s.Views() {
		path := s.fill(v.Path)
		switch {
		case i == 1: // the first one is for who is not logged in
			b.Cookie(s.base, "fencepost", s.sessions[api.RoleAdmin])
		case v.Path == "/backups/{id}/restore":
			path += "?target=shop_copy"
		}
		b.Go(s.base + path)
		if i > 0 { // there the focus is in a field from the beginning
			b.Wide(1280)
			b.Walk(path)
		}
		looks(b, path, shotName(v.Path))
	}
	for _, d := range s.Deeds() { // pages that are no views
		f := form(d)
		if d.Action == actionLogIn || d.Action == "session.end" || s.post(t, s.fill(d.Path), api.RoleAdmin, f).status != http.StatusOK {
			continue
		}
		b.Go(s.base + "/settings")
		press(b, s.fill(d.Path), f)
		looks(b, d.Path, "after+"+shotName(d.Path))
	}
	b.Go(s.base + "/backups/gone")
	looks(b, "what is gone", "problem")
	endsWhileTyping(t, s, b)
}

// endsWhileTyping: a session that ends while somebody types takes nothing away, neither when the page looks again nor when
// the form is sent: behind the log-in it is there, and done when the button is pressed again.
func endsWhileTyping(t *testing.T, s *served, b *webtest.Browser) {
	t.Helper()
	const button, why = "form[action$='/drop'] button", "it is gone for good"
	s.sample.done("the beginning")
	b.Go(s.base + "/recoveries/restore/" + deadRun)
	b.Type("#why", why)
	s.late.Add(int64(13 * time.Hour))
	webtest.Eval[bool](b, `document.dispatchEvent(new Event("visibilitychange"))`)
	b.AwaitText("your session has ended")
	b.Await(`document.querySelector("#why").value === "` + why + `"`)
	b.Click(button)
	b.AwaitText("Your session has ended: nothing was done.")
	looks(b, "an ended session", "session+ended")
	b.Type("#name", "the-admin")
	b.Type("#password", password)
	b.Click("main form button")
	b.AwaitText("You are logged in again")
	looks(b, "logged in again", "session+again")
	b.Click("main form button")
	b.AwaitText("Nothing was done yet")
	b.Await(`document.querySelector("#why").value === "` + why + `"`)
	b.Click(button)
	b.AwaitText("The recovery has ended.")
	if did := s.sample.changes(); did[len(did)-1] != "recovery.drop "+why || did[len(did)-2] != "the beginning" {
		t.Errorf("what was done: %v", did)
	}
}

// press sends a form from the page that is open, with the session's token.
func press(b *webtest.Browser, path string, fields map[string][]string) {
	text := `(() => { const f = document.createElement("form"); f.method = "post"; f.action = ` + strconv.Quote(path) + `;
		const add = (n, v) => { const i = document.createElement("input"); i.type = "hidden"; i.name = n; i.value = v; f.append(i); };
		add("form_token", document.querySelector("[name=form_token]").value);`
	for name, values := range fields {
		for _, value := range values {
			if name != fieldToken {
				text += "add(" + strconv.Quote(name) + "," + strconv.Quote(value) + ");"
			}
		}
	}
	webtest.Eval[bool](b, text+`document.body.append(f); f.submit(); return true; })()`)
	b.Await("location.pathname === " + strconv.Quote(path) + ` && document.readyState === "complete"`)
}

// TestEmptyGroupInABrowser: where there is nothing yet each page says what to do first, on a phone, too.
func TestEmptyGroupInABrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, &sample{})
	b := webtest.Open(t)
	b.Cookie(s.base, "fencepost", s.sessions[api.RoleAdmin])
	for _, v := range s.Views() {
		if strings.Contains(strings.TrimSuffix(v.Path, "{$}"), "{") || v.Path == pathLogIn {
			continue
		}
		b.Go(s.base + s.fill(v.Path))
		looks(b, "empty "+v.Path, "empty+"+shotName(v.Path))
	}
}

// TestWithoutScript: each page is whole without script, on a phone, too; and what is live without script loads itself again.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := serve(t, fullSample())
	s.written(t)
	b := webtest.Open(t)
	b.Script(false)
	b.Wide(360)
	for i, v := range s.Views() {
		if i == 1 { // the first one is for who is not logged in
			b.Cookie(s.base, "fencepost", s.sessions[api.RoleAdmin])
		}
		path := s.fill(v.Path)
		b.Go(s.base + path)
		b.Check(path + " without script")
		if again := webtest.Eval[bool](b, `!!document.querySelector("noscript meta[http-equiv=refresh]")`); again != v.live {
			t.Errorf("%s: it loads itself again: %t", path, again)
		}
		if webtest.Eval[bool](b, `document.querySelector("#pulse")?.checkVisibility() ?? false`) {
			t.Errorf("%s: it says that it is live", path)
		}
	}
	b.Cookie(s.base, "fencepost", s.sessions[api.RoleOperator])
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
	backAfterLogOut(t, s, b)
}

// backAfterLogOut: the browser's way back shows nothing of what was looked at before; and what is typed when the session has
// ended is there again behind the log-in.
func backAfterLogOut(t *testing.T, s *served, b *webtest.Browser) {
	t.Helper()
	b.Go(s.base + "/backups/b1")
	b.Go(s.base + "/recoveries/backup/" + deadRun)
	b.Click("form[action='/log-out'] button")
	b.AwaitText("There is no first password")
	webtest.Eval[bool](b, "history.back(), true")
	b.Await(`location.pathname === "/log-in" && document.body.innerText.includes("Log in to see the page that you asked for.")`)
	if webtest.Eval[bool](b, `document.body.innerText.includes("obituary")`) {
		t.Error("the way back shows what was looked at before the log-out")
	}
}
