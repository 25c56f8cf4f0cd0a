package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// daemon serves f at a unix socket and gives a client of it.
func daemon(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "a.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	s.Start()
	c := NewClient(socket)
	t.Cleanup(func() {
		c.Close()
		s.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestStrangeAnswers: whatever answers at the socket, the error is an *Error or says that
// the answer was not understood; it is never taken for a good one.
func TestStrangeAnswers(t *testing.T) {
	cases := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"error of ours", 409, `{"code":"busy","detail":"somebody is at it","hint":"later","more":1}`, "somebody is at it"},
		{"error of others", 502, "<html>Bad Gateway</html>", "the daemon answered 502 Bad Gateway"},
		{"error without code", 500, `{"detail":"x"}`, "the daemon answered 500"},
		{"error without message", 500, `{"code":"failed"}`, "the daemon answered 500"},
		{"not JSON", 200, "hello", "read the daemon's answer"},
		{"another type", 200, `[1,2]`, "read the daemon's answer"},
		{"empty", 200, "", "read the daemon's answer"},
		{"too long", 200, `"` + strings.Repeat("a", maxAnswer) + `"`, "too long"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			c := daemon(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(x.status)
				fmt.Fprint(w, x.body)
			})
			_, err := c.Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("error %v, want one with %q", err, x.want)
			}
		})
	}
}

// TestCutAnswer: a daemon that dies while it answers is an unavailable one.
func TestCutAnswer(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"node":`)
		panic(http.ErrAbortHandler)
	})
	_, err := c.Status(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeUnavailable {
		t.Fatalf("error %v, want unavailable", err)
	}
}

// TestSilentDaemon: the caller's deadline is kept, and named.
func TestSilentDaemon(t *testing.T) {
	c := daemon(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.View(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want the deadline", err)
	}
}

// TestUnknownFieldsAreIgnored: a newer daemon may say more.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node":"n1","mood":"fine"}`) })
	if s, err := c.Status(t.Context()); err != nil || s.Node != "n1" {
		t.Fatalf("status %+v, error %v", s, err)
	}
}

// TestWatchAsksOnce holds the conversation of a watch: no tag first, then the last tag
// with a wait, 304 shown to nobody.
func TestWatchAsksOnce(t *testing.T) {
	var asked []string
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match")+" "+r.URL.RawQuery)
		switch len(asked) {
		case 2:
			w.WriteHeader(http.StatusNotModified)
			return
		case 1:
			w.Header().Set("ETag", `"a"`)
		default:
			w.Header().Set("ETag", `"b"`)
		}
		fmt.Fprintf(w, `{"version":%d}`, len(asked))
	})
	var shown []uint64
	err := Watch(t.Context(), c, TasksPath(TaskFilter{Active: true}), func(v View) bool {
		shown = append(shown, v.Version)
		return len(shown) < 2
	})
	if err != nil || fmt.Sprint(shown) != "[1 3]" {
		t.Fatalf("shown %v, error %v", shown, err)
	}
	want := []string{" active=true", `"a" active=true&wait=25s`, `"a" active=true&wait=25s`}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Fatalf("asked %q, want %q", asked, want)
	}
}
