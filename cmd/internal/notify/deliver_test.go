package notify

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"
)

func value(s string) func() (string, error) { return func() (string, error) { return s, nil } }

// request is what a hook was sent.
type request struct {
	header http.Header
	body   string
}

func listen(t *testing.T, status int) (url string, got chan request) {
	t.Helper()
	got = make(chan request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		got <- request{r.Header, string(body)}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// TestHook: the message as JSON, signed so that the receiver can tell who sent it and when.
func TestHook(t *testing.T) {
	url, got := listen(t, http.StatusNoContent)
	h, err := NewHook(HookConfig{Name: "chat", URL: value(url), Secret: value("hunter2"), Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Deliver(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	r := <-got
	var m Message
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || m.ID != "test-0" || len(m.Alarms) != 1 || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v: %+v", err, r)
	}
	mac := hmac.New(sha256.New, []byte("hunter2"))
	mac.Write([]byte("1774785600." + r.body))
	if want := "t=1774785600,v1=" + hex.EncodeToString(mac.Sum(nil)); r.header.Get("Fencepost-Signature") != want || r.header.Get("Fencepost-Message") != "test-0" {
		t.Errorf("%v", r.header)
	}
}

// TestHookTemplate: any body; a text with quotes in it stays one JSON text; a template that does not fit is refused before.
func TestHookTemplate(t *testing.T) {
	url, got := listen(t, http.StatusOK)
	h, err := NewHook(HookConfig{Name: "chat", URL: value(url), Template: `{"text": {{json .Title}}, "n": {{len .Alarms}}}`})
	if err != nil {
		t.Fatal(err)
	}
	m := sample()
	m.Title = `it "broke"`
	if err := h.Deliver(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.body != `{"text": "it \"broke\"", "n": 1}` || r.header.Get("Fencepost-Signature") != "" {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"{{.Titel}}", "{{", "{{json}}"} {
		if _, err := NewHook(HookConfig{Name: "chat", Template: bad}); err == nil || !strings.HasPrefix(err.Error(), "template of chat: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestHookThatRefuses: an answer that is none, a redirect, and nobody there are errors, without the address.
func TestHookThatRefuses(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusFound, http.StatusBadGateway} {
		url, _ := listen(t, status)
		h, _ := NewHook(HookConfig{Name: "chat", URL: value(url + "/token/secret")})
		if err := h.Deliver(t.Context(), sample()); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "answered") {
			t.Errorf("%d: %v", status, err)
		}
	}
	h, _ := NewHook(HookConfig{Name: "chat", URL: value("http://127.0.0.1:1/token/secret")})
	if err := h.Deliver(t.Context(), sample()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, h := range []HookConfig{
		{URL: func() (string, error) { return "", errors.New("no variable") }},
		{URL: value("http://127.0.0.1:1"), Secret: func() (string, error) { return "", errors.New("no variable") }},
	} {
		r, _ := NewHook(h)
		if err := r.Deliver(t.Context(), sample()); err == nil || err.Error() != "no variable" {
			t.Error(err)
		}
	}
}

// mailServer takes one mail and gives what was said to it. It offers extensions.
func mailServer(t *testing.T, extensions ...string) (address string, said chan []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said = make(chan []string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said <- converse(conn, extensions)
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), said
}

func converse(conn net.Conn, extensions []string) (lines []string) {
	r := bufio.NewReader(conn)
	say := func(s string) { _, _ = io.WriteString(conn, s+"\r\n") }
	say("220 test")
	data := false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return lines
		}
		line = strings.TrimRight(line, "\r\n")
		lines = append(lines, line)
		verb, _, _ := strings.Cut(line, " ")
		switch {
		case data && line == ".":
			data = false
			say("250 taken")
		case data:
		case verb == "EHLO":
			for _, e := range extensions {
				say("250-" + e)
			}
			say("250 HELP")
		case verb == "AUTH":
			say("235 welcome")
		case verb == "DATA":
			data = true
			say("354 go on")
		case verb == "QUIT":
			say("221 bye")
			return lines
		default:
			say("250 ok")
		}
	}
}

// TestMail: one mail to all, with a subject that no text of an alarm can break out of, and the log-in.
func TestMail(t *testing.T) {
	address, said := mailServer(t, "AUTH PLAIN")
	m := NewMail(MailConfig{Name: "ops", Server: address, Security: Plain, From: "fencepost@example.org", To: []string{"ann@example.org", "bob@example.org"}, User: "u", Password: value("hunter2")})
	msg := sample()
	msg.Title = "zürich\r\nBcc: eve@example.org"
	msg.Kind, msg.Alarms[0].Text = KindAlarm, "it is\n.\nlate"
	if err := m.Deliver(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	lines := <-said
	text := strings.Join(lines, "\n")
	for _, want := range []string{"MAIL FROM:<fencepost@example.org>", "RCPT TO:<ann@example.org>", "RCPT TO:<bob@example.org>", "AUTH PLAIN "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, body, _ := strings.Cut(text, "DATA\n")
	got, err := mail.ReadMessage(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Bcc") != "" || got.Header.Get("Message-ID") != "<test-0@fencepost.invalid>" || !strings.Contains(got.Header.Get("Subject"), "=?utf-8?q?z=C3=BCrich") {
		t.Errorf("%v", got.Header)
	}
	rest, err := io.ReadAll(got.Body)
	if err != nil || !strings.Contains(string(rest), "late") || !strings.Contains(string(rest), "nothing to do") {
		t.Errorf("%v: %s", err, rest)
	}
}

// TestMailKeepsThePassword: it goes to no server without STARTTLS, and none that is not this machine in plain.
func TestMailKeepsThePassword(t *testing.T) {
	address, said := mailServer(t, "AUTH PLAIN")
	m := NewMail(MailConfig{Server: address, Security: StartTLS, User: "u", Password: value("hunter2")})
	if err := m.Deliver(t.Context(), sample()); err == nil || !strings.Contains(err.Error(), "offers no STARTTLS") {
		t.Error(err)
	}
	if lines := <-said; strings.Contains(strings.Join(lines, "\n"), "AUTH") {
		t.Errorf("%q", lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := NewMail(MailConfig{Server: l.Addr().String(), Security: Plain}).Deliver(ctx, sample()); err == nil {
		t.Error("a server that says nothing is waited for without end")
	}
}

func TestTextForPeople(t *testing.T) {
	m := sample()
	for kind, want := range map[string]string{KindAlarm: "From group test:\n\n* a test\n  nothing to do\n  since ", KindClear: "Over in group test:\n\n* a test\n  since ", KindTest: "A test of group test: this receiver works.\n"} {
		if m.Kind = kind; !strings.HasPrefix(Text(m), want) {
			t.Errorf("%s: %s", kind, Text(m))
		}
	}
}
