package app

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/notify"
	"github.com/fencepost/fencepost/configs"
)

// TestNotifications: a database without a backup is told to a web hook, though nothing is scheduled; a test reaches it; one
// that is away is an alarm itself; what was told survives in the state cache.
func TestNotifications(t *testing.T) {
	got := make(chan notify.Message, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m notify.Message
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil || r.Header.Get("Fencepost-Message") != m.ID {
			t.Errorf("%v: %s", err, body)
		}
		got <- m
	}))
	defer s.Close()
	c := config(t)
	c.Databases[0].RPO = time.Hour
	c.Notify.After = 0
	c.Notify.Hooks = []configs.Hook{{Name: "chat", URL: configs.NewSecret(s.URL)}, {Name: "away", URL: configs.NewSecret("http://127.0.0.1:1/hunter2")}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	a, _ := start(t, c)
	ready(t, a)
	next := func() notify.Message {
		t.Helper()
		select {
		case m := <-got:
			return m
		case <-time.After(time.Minute):
			t.Fatal("no message in a minute")
			panic("unreachable")
		}
	}
	m := next()
	for m.Alarms[0].Kind != "backup" { // what else there was at the start
		m = next()
	}
	if m.Kind != notify.KindAlarm || m.Alarms[0].About != "shop" || m.Alarms[0].Cause != "nothing is scheduled" || !strings.Contains(m.Title, "no good backup of shop") {
		t.Errorf("%+v", m)
	}
	o := awaitOverview(t, c, func(o api.Overview) string {
		if !alarmed(o, "notify", "away by n1") {
			return "alarm about the receiver that is away"
		}
		return ""
	})
	for _, x := range o.Alarms {
		if strings.Contains(x.Text, "hunter2") {
			t.Errorf("a secret is shown: %s", x.Text)
		}
	}
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	results, err := client.TestNotify(t.Context(), api.TestNotify{})
	if err != nil || len(results) != 2 || results[0].Problem == "" || results[1].Problem != "" {
		t.Errorf("%+v, %v", results, err)
	}
	if m := next(); m.Kind != notify.KindTest {
		t.Errorf("%+v", m)
	}
	if _, err := client.TestNotify(t.Context(), api.TestNotify{Receiver: "nobody"}); err == nil {
		t.Error("a receiver that is none was tested")
	}
	_, err = client.SetSetting(t.Context(), api.Setting{Kind: "rule", Name: configs.DefaultRule, Spec: json.RawMessage(`{"name": "default", "after": "5m"}`)})
	if codeOf(err) != api.CodeConflict || !strings.Contains(err.Error(), "rule default is in the file of node n1") {
		t.Errorf("a rule that the file has was set: %v", err)
	}

	store := notifyStore{a.group}
	state, version, pending, err := store.Load(t.Context())
	if err != nil || version == 0 || !state.Begun || len(state.Alarms) == 0 || len(pending) == 0 || pending[0].Receiver != "away" {
		t.Errorf("%+v, %d, %+v, %v", state, version, pending, err)
	}
	if err := store.Save(t.Context(), state, version-1, nil); !errors.Is(err, notify.ErrChanged) {
		t.Errorf("an old state was saved over a new one: %v", err)
	}
	if err := errors.Join(store.Remove(t.Context(), "nobody/1"), store.Remove(t.Context(), "nobody/1")); err != nil {
		t.Error(err)
	}
	if other := (&teller{group: a.group}); other.may(t.Context()) {
		t.Error("two may tell at the same time")
	}
}

// TestReceiversOfSettings: who is told of what can be said in the group's settings, too, and is from then on, until they say
// otherwise, as are the outside watchers; a template that cannot be understood is refused when it is set.
func TestReceiversOfSettings(t *testing.T) {
	got, beats := make(chan struct{}, 100), make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			beats <- struct{}{}
			return
		}
		got <- struct{}{}
	}))
	defer s.Close()
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	ctx := t.Context()
	if _, err := client.TestNotify(ctx, api.TestNotify{}); api.ExitCode(err) != api.ExitFailed {
		t.Errorf("with nobody to tell: %v", err)
	}
	url := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(url, []byte(s.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hook := func(template string) api.Setting {
		spec, err := json.Marshal(map[string]string{"name": "chat", "url": "file:" + url, "template": template})
		if err != nil {
			t.Fatal(err)
		}
		return api.Setting{Kind: "hook", Name: "chat", Spec: spec}
	}
	if _, err := client.SetSetting(ctx, hook("{{.Nonsense")); api.ExitCode(err) != api.ExitUsage {
		t.Errorf("a template that is none: %v", err)
	}
	if _, err := client.SetSetting(ctx, hook("{{.Title}}")); err != nil {
		t.Fatal(err)
	}
	told := func() bool {
		results, err := client.TestNotify(ctx, api.TestNotify{})
		return err == nil && len(results) == 1 && results[0].Receiver == "chat" && results[0].Problem == ""
	}
	until(t, a, "the hook of the settings is told", told)
	select {
	case <-got:
	case <-time.After(time.Minute):
		t.Error("it was not called")
	}
	set := func(kind, name, keys string) {
		t.Helper()
		if _, err := client.SetSetting(ctx, api.Setting{Kind: kind, Name: name, Spec: json.RawMessage(`{"name": "` + name + `", ` + keys + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	set("rule", "failed", `"to": ["chat"], "after": "0s", "repeat": "6h"`)
	set("rule", "member", `"severity": "none"`)
	set("heartbeat", "dog", `"url": "file:`+url+`", "every": "10s"`)
	select {
	case <-beats:
	case <-time.After(time.Minute):
		t.Error("the outside watcher was not called")
	}
	of := a.telling(a.outfitNow().state.Settings, nil).Rules.Of
	if f, m, u := of("failed"), of("member"), of("backup"); f.Repeat != 6*time.Hour || f.After != 0 || !slices.Equal(f.To, []string{"chat"}) || m.Severity != notify.None || u.After != time.Minute {
		t.Errorf("rules %+v, %+v, %+v", f, m, u)
	}
	if _, err := client.RemoveSetting(ctx, "hook", "chat"); codeOf(err) != api.CodeUsage || !strings.Contains(err.Error(), "rule failed: to[0]") {
		t.Errorf("a hook that a rule names is gone: %v", err)
	}
	for _, x := range [][2]string{{"rule", "failed"}, {"heartbeat", "dog"}, {"hook", "chat"}} {
		if _, err := client.RemoveSetting(ctx, x[0], x[1]); err != nil {
			t.Fatal(err)
		}
	}
	until(t, a, "it is told nothing any more", func() bool { _, err := client.TestNotify(ctx, api.TestNotify{}); return err != nil })
}

// TestEveryEventHasARule: what alarms there are, and what is told beside them, a rule can be made for: no kind is made whose name
// is none of those.
func TestEveryEventHasARule(t *testing.T) {
	kinds := map[string]bool{}
	for _, dir := range []string{".", "../overview", "../settings", "../notify"} {
		for name, value := range kindsIn(t, dir) {
			if kinds[value] = true; !slices.Contains(configs.Events(), value) {
				t.Errorf("%s: %s is %q, of which no rule can be made: add it to configs.Events", dir, name, value)
			}
		}
	}
	for _, event := range configs.Events() {
		if !kinds[event] {
			t.Errorf("nothing makes events of kind %s", event)
		}
	}
}

// codeOf is the code of an error of the API.
func codeOf(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// kindsIn are the kinds of alarms that the sources of a directory make, by what they are called there.
func kindsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(e ast.Expr) string {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			return strings.Trim(lit.Value, `"`)
		}
		return ""
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec: // const kindQuorum = "quorum"
				for i, name := range n.Names {
					if strings.HasPrefix(name.Name, "kind") && i < len(n.Values) && text(n.Values[i]) != "" {
						out[name.Name] = text(n.Values[i])
					}
				}
			case *ast.CompositeLit: // api.Alarm{Kind: "settings"}
				made, ok := n.Type.(*ast.SelectorExpr)
				if !ok || made.Sel.Name != "Alarm" {
					return true
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && text(kv.Value) != "" && text(kv.Value) != notify.KindTest {
						if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Kind" {
							out[file+" "+text(kv.Value)] = text(kv.Value)
						}
					}
				}
			}
			return true
		})
	}
	return out
}
