package configs

import (
	"strings"
	"testing"
	"time"
)

// TestNotifyIsRead: defaults of the lists' entries, references to variables, and nothing that is a secret in print.
func TestNotifyIsRead(t *testing.T) {
	c, err := load(t, `
node: n1
notify:
  repeat: 0s
  heartbeat: {url: "https://watch.example.org/hunter2"}
  hooks: [{name: chat, url: "env:FENCEPOST_CHAT", secret: "file:/s", template: "{{.Title}}"}]
  mails: [{name: ops, server: "smtp.example.org:587", from: f@example.org, to: [a@example.org], user: u, password: "env:FENCEPOST_SMTP"}]
`, "FENCEPOST_CHAT=https://h", "FENCEPOST_SMTP=x", "FENCEPOST_NOTIFY_HEARTBEAT_EVERY=30s")
	if err != nil {
		t.Fatal(err)
	}
	n := c.Notify
	if n.Severity != "warning" || n.After != time.Minute || n.Repeat != 0 || n.Heartbeat.Every != 30*time.Second || n.Hooks[0].ContentType != "application/json" || n.Mails[0].Security != "starttls" {
		t.Errorf("%+v", n)
	}
	if strings.Contains(n.Heartbeat.URL.String(), "hunter2") {
		t.Error("the url is shown")
	}
}

func TestNotifyIsChecked(t *testing.T) {
	hook := func(change func(*Hook)) func(*Config) {
		return func(c *Config) {
			h := Hook{Name: "chat", URL: NewSecret("https://h/x")}
			change(&h)
			c.Notify.Hooks = []Hook{h}
		}
	}
	mail := func(change func(*Mail)) func(*Config) {
		return func(c *Config) {
			m := Mail{Name: "ops", Server: "h:25", Security: "tls", From: "f@h", To: []string{"t@h"}}
			change(&m)
			c.Notify.Mails = []Mail{m}
		}
	}
	for _, test := range []struct {
		change func(*Config)
		want   string // "" = valid
	}{
		{hook(func(*Hook) {}), ""},
		{mail(func(*Mail) {}), ""},
		{func(c *Config) { c.Notify.Severity = "loud" }, "notify.severity: is \"loud\""},
		{func(c *Config) { c.Notify.After = 2 * time.Hour }, "notify.after: is 2h0m0s"},
		{func(c *Config) { c.Notify.Repeat = time.Minute }, "notify.repeat: is 1m0s"},
		{func(c *Config) { c.Notify.Heartbeat.Every = time.Second }, "notify.heartbeat.every: is 1s"},
		{func(c *Config) { c.Notify.Heartbeat.URL = NewSecret("file:x") }, "notify.heartbeat.url: refers to a relative path"},
		{hook(func(h *Hook) { h.Name = "Chat" }), "notify.hooks[0].name: is \"Chat\""},
		{hook(func(h *Hook) { h.URL = Secret{} }), "notify.hooks[0].url: is missing"},
		{hook(func(h *Hook) { h.Secret = NewSecret("hunter2") }), "notify.hooks[0].secret: holds the secret itself"},
		{mail(func(m *Mail) { m.Server = "h" }), "notify.mails[0].server: is \"h\""},
		{mail(func(m *Mail) { m.Security = "none" }), "notify.mails[0].security: is none, and h is another machine"},
		{mail(func(m *Mail) { m.Security, m.Server = "none", "127.0.0.1:25" }), ""},
		{mail(func(m *Mail) { m.From = "Ann <a@h>" }), "notify.mails[0].from: is \"Ann <a@h>\""},
		{mail(func(m *Mail) { m.To = nil }), "notify.mails[0].to: is empty"},
		{mail(func(m *Mail) { m.To = []string{"a@h\nBcc: e@h"} }), "notify.mails[0].to[0]: is "},
		{mail(func(m *Mail) { m.User = "u" }), "notify.mails[0].password: is missing"},
		{mail(func(m *Mail) { m.Password = NewSecret("env:X") }), "notify.mails[0].user: is missing"},
		{func(c *Config) {
			hook(func(*Hook) {})(c)
			mail(func(m *Mail) { m.Name = "chat" })(c)
		}, "notify.mails[0].name: is \"chat\", as notify.hooks[0] is"},
	} {
		c := Default()
		c.Node = "n1"
		test.change(&c)
		err := c.Validate()
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%v", err)
		case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
