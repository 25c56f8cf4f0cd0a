package app

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// TestReceiversOfSettings: who is told can be said in the group's settings, too, and is from then on, until they say otherwise;
// a template that cannot be understood is refused when it is set, and a name that the file of the node has stays the file's.
func TestReceiversOfSettings(t *testing.T) {
	got := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
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
	if _, err := client.RemoveSetting(ctx, "hook", "chat"); err != nil {
		t.Fatal(err)
	}
	until(t, a, "it is told nothing any more", func() bool { _, err := client.TestNotify(ctx, api.TestNotify{}); return err != nil })
}
