package web

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// fieldsOf are the hidden fields of the form on a page that goes to a path.
func fieldsOf(t *testing.T, body, action string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(body, `<form method="post" action="`+html.EscapeString(action)+`">`)
	if !found {
		t.Fatalf("there is no form to %s: %s", action, body)
	}
	form, _, _ = strings.Cut(form, "</form>")
	out := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(form, -1) {
		out.Add(m[1], html.UnescapeString(m[2]))
	}
	return out
}

// TestPressedTwice: whatever button is pressed twice, at once or a moment later, does its work once, and both presses lead to
// the same place.
func TestPressedTwice(t *testing.T) {
	for _, d := range (&Site{}).Deeds() {
		if d.Action == actionLogIn || d.Action == "session.end" { // who does either twice is logged in, or is not
			continue
		}
		t.Run(d.Path, func(t *testing.T) {
			t.Parallel()
			s := serve(t, fullSample())
			press := func() page {
				f := form(d)
				f.Set(fieldKey, "drawn")
				return s.post(t, s.fill(d.Path), api.RoleAdmin, f)
			}
			var got [3]page
			var both sync.WaitGroup
			for i := range 2 {
				both.Go(func() { got[i] = press() })
			}
			both.Wait()
			got[2] = press()
			for _, p := range got[1:] {
				if p.status != got[0].status || p.status >= 400 || p.header.Get("Location") != got[0].header.Get("Location") || p.body != got[0].body {
					t.Errorf("pressed again: %d to %q\n%s\nthe first time: %d to %q\n%s", p.status, p.header.Get("Location"), p.body, got[0].status, got[0].header.Get("Location"), got[0].body)
				}
			}
			want := 2
			if d.Action == "approval.approve" {
				want = 4
			}
			if n := s.records(t); n != want {
				t.Errorf("%d records in the audit trail, want %d", n, want)
			}
		})
	}
}

// TestAnotherPress: what did not work is tried again, another key is another wish, and so is another person's.
func TestAnotherPress(t *testing.T) {
	s := serve(t, fullSample())
	send := func(role api.Role, key, repeat string) int {
		return s.post(t, "/backups/b1/delete", role, url.Values{"repeat": {repeat}, fieldKey: {key}}).status
	}
	for i, x := range []struct {
		role         api.Role
		key, repeat  string
		status, done int
	}{
		{api.RoleAdmin, "one", "shopp", http.StatusBadRequest, 0}, {api.RoleAdmin, "one", "shop", http.StatusSeeOther, 1}, {api.RoleAdmin, "one", "shop", http.StatusSeeOther, 1},
		{api.RoleAdmin, "one", "shopp", http.StatusBadRequest, 1}, {api.RoleAdmin, "two", "shop", http.StatusSeeOther, 2}, {api.RoleOperator, "two", "shop", http.StatusSeeOther, 3},
	} {
		if got := send(x.role, x.key, x.repeat); got != x.status || len(s.sample.changes()) != x.done {
			t.Errorf("press %d: %d, and %v was done", i, got, s.sample.changes())
		}
	}
}

// unshown are fields whose values are not shown again: they are typed again, or name what the page shows by itself.
var unshown = []string{"password", "repeat", "role", "component", "item", "token", "fix"}

// TestASessionEndsInAForm: whatever form is sent when its session has ended, nothing is done and nothing that was typed is
// lost: behind the log-in it is there again, and goes nowhere before the button is pressed once more.
func TestASessionEndsInAForm(t *testing.T) {
	for _, d := range (&Site{}).Deeds() {
		if d.again == "" || d.Action == actionLogIn {
			continue
		}
		t.Run(d.Path, func(t *testing.T) {
			t.Parallel()
			s := serve(t, fullSample())
			path := strings.Replace(s.fill(d.Path), "/recoveries/backup/", "/recoveries/restore/", 1) // one that has not ended
			typed := form(d)
			for _, name := range d.Fields {
				if !typed.Has(name) && slices.Contains([]string{"note", "why", "more", "dsn", "title", "target"}, name) {
					typed.Set(name, `"typed" <at> length`)
				}
			}
			ended := send(t, s.request(t, http.MethodPost, path, "", typed))
			is(t, "the form", ended, http.StatusUnauthorized)
			if !strings.Contains(ended.body, "Your session has ended: nothing was done.") || strings.Contains(ended.body, password) {
				t.Errorf("it is answered with %s", ended.body)
			}
			in := fieldsOf(t, ended.body, pathLogIn)
			in.Set("name", "the-admin")
			in.Set("password", password)
			back := send(t, s.request(t, http.MethodPost, pathLogIn, "", in))
			cookie := strings.Split(back.header.Get("Set-Cookie"), ";")[0]
			_, s.sessions[api.RoleAdmin], _ = strings.Cut(cookie, "=")
			if strings.Join(slices.Concat(slices.Collect(maps.Values(typed))...), "") == "" {
				is(t, "the log-in", back, http.StatusSeeOther)
				is(t, "where it leads", s.get(t, back.header.Get("Location"), api.RoleAdmin), http.StatusOK)
				return
			}
			is(t, "the log-in", back, http.StatusOK)
			on := fieldsOf(t, back.body, path)
			shown := send(t, s.request(t, http.MethodPost, path, api.RoleAdmin, on))
			is(t, "the form again", shown, http.StatusOK)
			if !strings.Contains(shown.body, noteResumed) {
				t.Errorf("it does not say that nothing was done: %s", shown.body)
			}
			for name, values := range typed {
				if slices.Contains(unshown, name) {
					continue
				}
				for _, value := range values {
					if !strings.Contains(shown.body, html.EscapeString(value)) {
						t.Errorf("%s %q is lost: %s", name, value, shown.body)
					}
				}
			}
			if did := s.sample.changes(); len(did) > 0 {
				t.Errorf("it did %v", did)
			}
		})
	}
}

// TestAFormOfAnotherSession is shown again with what was typed, and works then.
func TestAFormOfAnotherSession(t *testing.T) {
	s := serve(t, fullSample())
	f := url.Values{"why": {"it is gone"}, fieldToken: {"of an older session"}}
	path := "/recoveries/backup/" + deadRun
	got := send(t, s.request(t, http.MethodPost, path+"/drop", api.RoleAdmin, f))
	is(t, "the old form", got, http.StatusForbidden)
	if !strings.Contains(got.body, "this form was made before you logged in") || !strings.Contains(got.body, `data-self="`+path+`"`) {
		t.Errorf("it is answered with %s", got.body)
	}
	if did := s.sample.changes(); len(did) > 0 {
		t.Fatalf("it did %v", did)
	}
	is(t, "the address of a form", s.get(t, path+"/drop", api.RoleAdmin), http.StatusSeeOther)
}

// TestTwoPeopleAtOneSetting: who has opened a setting before somebody else changed it is told so, sees what is there now and
// what they have typed, and can then decide; whoever adds what there is already changes nothing.
func TestTwoPeopleAtOneSetting(t *testing.T) {
	s := serve(t, fullSample())
	const path = "/setup/database/shop"
	mine := fieldsOf(t, s.get(t, path, api.RoleAdmin).body, path)
	mine.Del(fieldKey)
	s.sample.settings[0].Spec = []byte(`{"name":"shop","dsn":"file:/etc/fencepost/shop.dsn","rpo":"1h"}`) // hers
	mine.Set("dsn", "env:MINE")
	got := s.post(t, path, api.RoleAdmin, mine)
	is(t, "mine", got, http.StatusConflict)
	for _, part := range []string{"somebody has changed database shop meanwhile", "What is there now:", "rpo 1h", `value="env:MINE"`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("the page lacks %q: %s", part, got.body)
		}
	}
	mine.Set("seen", fieldsOf(t, got.body, path).Get("seen"))
	is(t, "mine, all the same", s.post(t, path, api.RoleAdmin, mine), http.StatusSeeOther)
	is(t, "one that there is", s.post(t, "/setup/database", api.RoleAdmin, url.Values{"name": {"shop"}, "dsn": {"env:X"}, "seen": {api.NoSetting}}), http.StatusConflict)
	if did := s.sample.changes(); len(did) != 1 || !strings.Contains(did[0], "env:MINE") {
		t.Errorf("what was done: %v", did)
	}
}

// TestTwoPeopleAtOneMark: a form changes what was changed in it: somebody else's pin stays, and so does their note, unless
// who writes over it has seen it.
func TestTwoPeopleAtOneMark(t *testing.T) {
	s := serve(t, fullSample())
	mine := url.Values{"was_note": {""}, "note": {""}, "accepted": {"yes"}} // made before it was pinned and noted
	is(t, "accepted", s.post(t, "/backups/b1/mark", api.RoleOperator, mine), http.StatusSeeOther)
	mine.Set("note", "mine")
	got := s.post(t, "/backups/b1/mark", api.RoleOperator, mine)
	is(t, "another note", got, http.StatusConflict)
	if !strings.Contains(got.body, "before the release") || !strings.Contains(got.body, `value="mine"`) {
		t.Errorf("it is answered with %s", got.body)
	}
	mine.Set("was_note", fieldsOf(t, got.body, "/backups/b1/mark").Get("was_note"))
	is(t, "another note, all the same", s.post(t, "/backups/b1/mark", api.RoleOperator, mine), http.StatusSeeOther)
	if did := s.sample.changes(); !slices.Equal(did, []string{"backup.mark b1", "backup.mark b1 mine"}) {
		t.Errorf("what was done: %v", did)
	}
}

// TestWhatIsGone: whatever there is not, or not any more, is a page that says so and leads back to where it was listed.
func TestWhatIsGone(t *testing.T) {
	s := serve(t, fullSample())
	for _, v := range s.Views() {
		if !strings.Contains(v.Path, "{") || v.Path == "/{$}" {
			continue
		}
		path := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(v.Path, "gone")
		got := s.get(t, path, api.RoleViewer)
		is(t, path, got, http.StatusNotFound)
		list := strings.Split(path, "/")[1]
		_, middle, _ := strings.Cut(got.body, "<main")
		if !strings.Contains(middle, `<a href="/`+list+`">`) || !strings.Contains(middle, `role="alert"`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	long := s.get(t, "/backups/"+strings.Repeat("x", 5000), api.RoleViewer)
	is(t, "a long id", long, http.StatusBadRequest)
	is(t, "a long search", s.get(t, "/backups?text="+strings.Repeat("x", 20000), api.RoleViewer), http.StatusOK)
	is(t, "a filter that makes no sense", s.get(t, "/tasks?active=perhaps", api.RoleViewer), http.StatusBadRequest)
}

// TestEveryLinkLeadsSomewhere follows all links from the overview on, in a group as it is usual and in one whose names and
// texts are of the worst kind: each leads to a page, and no text becomes a part of one.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	const evil = `../a b"><img src=x onerror=alert(1)>'é%2f?#&;` + "\u202e\x00/ü"
	for name, sample := range map[string]*sample{"usual": fullSample(), "hostile": hostile(fullSample(), evil)} {
		s := serve(t, sample)
		link := regexp.MustCompile(`(?:href|action)="([^"]*)"`)
		seen, next := map[string]bool{"/": true}, []string{"/"}
		for len(next) > 0 {
			path := next[0]
			next = next[1:]
			got := s.get(t, path, api.RoleAdmin)
			if got.status != http.StatusOK && (got.status != http.StatusSeeOther || path == "/") {
				t.Errorf("%s: %s: %d", name, path, got.status)
				continue
			}
			if strings.Contains(got.body, "<img") || strings.Contains(got.body, "\x00") || strings.Contains(got.body, "ZgotmplZ") {
				t.Errorf("%s: %s: a text has become a part of the page: %s", name, path, got.body)
			}
			for _, m := range link.FindAllStringSubmatch(got.body, -1) {
				to := html.UnescapeString(m[1])
				if strings.HasPrefix(to, "#") || strings.HasPrefix(to, "/log-out") {
					continue
				}
				if !ownPage(to) {
					t.Errorf("%s: %s leads to %q", name, path, to)
				}
				if !seen[to] {
					seen[to], next = true, append(next, to)
				}
			}
		}
		if len(seen) < 50 {
			t.Errorf("%s: %d links", name, len(seen))
		}
	}
}

// hostile is a sample in which whatever is a name or a text has something bad in it.
func hostile(s *sample, evil string) *sample {
	for i := range s.overview.Databases {
		s.overview.Databases[i].Name += evil
		s.overview.Databases[i].Error = evil
		s.overview.Databases[i].Storages = []string{evil}
	}
	for i := range s.overview.Storages {
		s.overview.Storages[i].Name += evil
		s.overview.Storages[i].Problem, s.overview.Storages[i].Hint = evil, evil
	}
	for i := range s.overview.Alarms {
		s.overview.Alarms[i].Text, s.overview.Alarms[i].Hint, s.overview.Alarms[i].From = evil, evil, evil
	}
	for i := range s.members {
		s.members[i].Components, s.members[i].Version, s.members[i].Problem = []string{evil}, evil, evil
	}
	for i := range s.recovered {
		s.recovered[i].Component += evil
		s.recovered[i].Problem, s.recovered[i].Evidence = evil, evil
		for k := range s.recovered[i].Steps {
			s.recovered[i].Steps[k].Why = evil
		}
	}
	for i := range s.fences {
		s.fences[i].Component += evil
		s.fences[i].WaitingFor, s.fences[i].Problem = evil, evil
	}
	for i := range s.tasks {
		s.tasks[i].Database += evil
		s.tasks[i].Target, s.tasks[i].Error, s.tasks[i].Hint, s.tasks[i].Waits = evil, evil, evil, []string{evil}
	}
	for i := range s.logs["t1"] {
		s.logs["t1"][i].Text += evil
	}
	for i := range s.backups {
		s.backups[i].Database += evil
		s.backups[i].Note, s.backups[i].Suspect, s.backups[i].MarkedBy = evil, []string{evil}, evil
		for k := range s.backups[i].Storages {
			s.backups[i].Storages[k].Storage += evil
			s.backups[i].Storages[k].Error = evil
		}
	}
	for i := range s.schedules {
		s.schedules[i].Name += evil
		s.schedules[i].Database += evil
		s.schedules[i].Cron, s.schedules[i].Zone, s.schedules[i].By, s.schedules[i].Skipped = evil, evil, evil, evil
	}
	for i := range s.claims {
		s.claims[i].Component, s.claims[i].Item = evil, evil
	}
	for i := range s.parts {
		s.parts[i].Name += evil
	}
	for i := range s.settings {
		s.settings[i].Name += evil
	}
	for i := range s.servers {
		s.servers[i].Name += evil
		s.servers[i].Problem = evil
	}
	for i := range s.databases {
		s.databases[i].Name += evil
		s.databases[i].Schedules = []string{evil}
	}
	for i := range s.prune.Decisions {
		s.prune.Decisions[i].Reason, s.prune.Decisions[i].Rules = evil, []string{evil}
	}
	s.prune.Stops = []string{evil}
	return s
}

// TestMethods: a page is asked for with GET, and HEAD is answered as GET is, without the page; what else is tried is told what
// there is.
func TestMethods(t *testing.T) {
	s := serve(t, fullSample())
	posts := map[string]bool{}
	for _, d := range s.Deeds() {
		posts[d.Path] = true
	}
	for _, v := range s.Views() {
		path := s.fill(v.Path)
		role := api.RoleAdmin
		if v.Path == pathLogIn {
			role = ""
		}
		head := send(t, s.request(t, http.MethodHead, path, role, nil))
		is(t, "HEAD "+path, head, http.StatusOK)
		if head.body != "" {
			t.Errorf("HEAD %s has a body", path)
		}
		methods := []string{http.MethodOptions, http.MethodTrace, http.MethodPut}
		allow := "GET, HEAD"
		if posts[v.Path] {
			allow += ", POST"
		} else {
			methods = append(methods, http.MethodPost)
		}
		for _, method := range methods {
			got := send(t, s.request(t, method, path, role, nil))
			is(t, method+" "+path, got, http.StatusMethodNotAllowed)
			if is := got.header.Get("Allow"); is != allow {
				t.Errorf("%s %s: allowed are %s, want %s", method, path, is, allow)
			}
		}
	}
	is(t, "HEAD by nobody", send(t, s.request(t, http.MethodHead, "/tasks", "", nil)), http.StatusSeeOther)
}
