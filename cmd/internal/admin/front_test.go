package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// certificate writes one for 127.0.0.1 and gives its files and who believes it.
func certificate(t *testing.T, dir, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

// TestTLS: 1.2 at least, cookies that only come back over it, and a renewed certificate without a restart.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := certificate(t, dir, "first")
	secure, err := TLS(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, secure)
	client := func(pool *x509.CertPool, most uint16) *http.Client {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: most}, ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	logIn := func(c *http.Client) (int, http.Header) {
		t.Helper()
		status, header, body := send(t, c, s.request(t, s.route(t, "session.begin"), bodies["session.begin"]))
		is(t, "log in", 202, status, header, body)
		return status, header
	}
	_, header := logIn(client(pool, 0))
	if set := header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-fencepost=the-viewer.") || !strings.Contains(set, "; Secure") {
		t.Errorf("cookie %q", set)
	}
	if header.Get("Strict-Transport-Security") == "" {
		t.Error("browsers are not told to come back with TLS")
	}
	logIn(client(pool, tls.VersionTLS12))
	if _, err := client(pool, tls.VersionTLS11).Get(s.base + api.PathOpenAPI); err == nil {
		t.Error("TLS 1.1 was spoken")
	}
	plain, err := http.Get("http" + strings.TrimPrefix(s.base, "https") + api.PathOpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", plain.Status)
	}
	_, _, next := certificate(t, dir, "second")
	logIn(client(next, 0))
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	logIn(client(next, 0)) // while it is being replaced
	if _, err := TLS(cert, key); err == nil {
		t.Error("half a certificate was taken at the start")
	}
}

// TestLongHeaders are cut off before anybody reads them.
func TestLongHeaders(t *testing.T) {
	s := newSite(t, nil)
	q := s.request(t, s.route(t, "view.read"), "")
	q.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return // it may be cut off before the client has sent it all
	}
	a.Body.Close()
	if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %s", a.Status)
	}
	q = s.request(t, s.route(t, "task.read"), "")
	q.URL.Path = api.TaskPath(strings.Repeat("x", longestParam+1))
	q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleViewer])
	status, header, body := send(t, http.DefaultClient, q)
	is(t, "a long id", http.StatusBadRequest, status, header, body)
}

// TestStumbles: a handler that panics is an answer without a stack, a log with one, and the next request is served.
func TestStumbles(t *testing.T) {
	var logged bytes.Buffer
	f := Front{
		Handler:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret inside") }),
		Accounts: accounts.New(accounts.Config{Store: &kept.Memory{}}), Hosts: []string{"example.com"}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "http://example.com/", nil))
	is(t, "a stumble", http.StatusInternalServerError, w.Code, w.Header(), w.Body.Bytes())
	if strings.Contains(w.Body.String(), "secret inside") || !strings.Contains(logged.String(), "secret inside") || !strings.Contains(logged.String(), "front_test.go") {
		t.Errorf("answer %s, log %s", w.Body, logged.String())
	}
}

// TestNoDirectory: there are no files to be listed, whatever the path tries.
func TestNoDirectory(t *testing.T) {
	s := newSite(t, nil)
	for _, path := range []string{"/", "/api", "/api/v1", "/api/v1/", "/static/", "/../etc/passwd", "/api/v1/..%2f..%2fetc/passwd", "/debug/pprof/", "/api/v1/tasks/"} {
		q, err := http.NewRequestWithContext(t.Context(), "GET", s.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.URL.Opaque = path
		q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleAdmin])
		a, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
		if err != nil {
			t.Fatal(path, err)
		}
		a.Body.Close()
		if a.StatusCode != http.StatusNotFound && (a.StatusCode < 300 || a.StatusCode > 399) {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
}

// events reads a stream of changes.
type events struct {
	t    *testing.T
	scan *bufio.Scanner
}

// next is the next change.
func (e events) next() (c api.Change) {
	e.t.Helper()
	for e.scan.Scan() {
		if data, ok := strings.CutPrefix(e.scan.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				e.t.Fatal(err)
			}
			return c
		}
	}
	e.t.Fatal("the stream has ended: ", e.scan.Err())
	return c
}

// TestChanges: a stream begins with all there is, tells of what changes and of nothing else, ends with the daemon, and its
// tags are those of a GET.
func TestChanges(t *testing.T) {
	s := newSite(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	q := s.request(t, s.route(t, "changes.read"), "").WithContext(ctx)
	q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleViewer])
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	e := events{t, bufio.NewScanner(a.Body)}
	seen := map[string]api.Change{}
	for range s.h.watched() {
		c := e.next()
		seen[c.Resource] = c
	}
	if len(seen) != 9 || seen["tasks"].Path != api.PathTasks || seen["tasks"].Tag == "" {
		t.Fatalf("%v", seen)
	}
	header := s.ask(t, "GET", api.PathView, "", 200, nil, bearer(s.tokens[api.RoleViewer])...)
	if header.Get("ETag") != seen["view"].Tag {
		t.Errorf("the view's tag is %s, and the stream says %s", header.Get("ETag"), seen["view"].Tag)
	}
	s.fake.set(api.Task{ID: "new", Database: "shop"})
	if c := e.next(); c.Resource != "tasks" || c.Tag == seen["tasks"].Tag {
		t.Errorf("after a new task: %+v", c)
	}
}

// TestMostStreams: there are so many at once, and one that ends makes room.
func TestMostStreams(t *testing.T) {
	s := newSite(t, nil)
	for range mostStreams {
		if !s.h.tags.enter() {
			t.Fatal("too few")
		}
	}
	s.ask(t, "GET", api.PathChanges, "", 429, nil, bearer(s.tokens[api.RoleViewer])...)
	s.h.tags.leave()
	q := s.request(t, s.route(t, "changes.read"), "")
	q.Header.Set("Authorization", "Bearer "+s.tokens[api.RoleViewer])
	if status, _, _ := send(t, http.DefaultClient, q); status != 200 {
		t.Errorf("after one has ended: %d", status)
	}
}

// TestPages: a list that was cut says where it goes on, one that was not does not.
func TestPages(t *testing.T) {
	s := newSite(t, nil)
	for i := range 5 {
		s.fake.set(api.Task{ID: fmt.Sprint("t", i), Created: time.Unix(int64(i), 0)})
	}
	viewer := bearer(s.tokens[api.RoleViewer])
	header := s.ask(t, "GET", api.TasksPath(api.TaskFilter{Internal: true, Limit: 2}), "", 200, nil, viewer...)
	if link := header.Get("Link"); !strings.HasPrefix(link, "</api/v1/tasks?after=") || !strings.Contains(link, "internal=true") || !strings.Contains(link, "limit=2") || !strings.HasSuffix(link, `>; rel="next"`) {
		t.Errorf("link %q", link)
	}
	if link := s.ask(t, "GET", api.TasksPath(api.TaskFilter{Limit: 100}), "", 200, nil, viewer...).Get("Link"); link != "" {
		t.Errorf("link %q", link)
	}
}
