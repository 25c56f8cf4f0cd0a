package dropboxtest

import (
	"testing"
	"time"
)

func TestFaultsPrintThemselves(t *testing.T) {
	for want, f := range map[string]*Fault{
		`upload_session/finish (request 1): carry it out, answer 503`:           Unsure().On("upload_session/finish").Nth(1),
		`any request of "manifest": carry it out, lose the answer`:              Lose().Of("manifest"),
		`any request: carry it out, lose the answer`:                            Lose(),
		`files/ (one in 7): answer 401 expired_access_token`:                    Tagged(401, "expired_access_token").On("files/").OneIn(7, 1),
		`files/download (requests 1-3): cut the answer after 100 bytes`:         Cut(100).On("files/download").Times(3),
		`any request: answer 429 too_many_requests, retry after 15 s`:           RateLimit(15 * time.Second),
		`append_v2 (request 3): reset the connection after 7 bytes of the body`: Break(7).On("append_v2").Nth(3),
		`any request: answer 502 "Bad Gateway"`:                                 Refuse(502, "Bad Gateway"),
	} {
		if got := f.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	s, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(Twice().On("token"), Reset())
	if want := "token: carry it out twice [0 hits]\nany request: reset the connection [0 hits]"; s.String() != want {
		t.Errorf("got %s", s)
	}
}

// of is a request of a route.
func of(route string) *request { return &request{route: route} }

func TestFaultsHitTheNamedRequests(t *testing.T) {
	f := Reset().On("upload_session/start").Nth(2)
	for i, c := range []struct {
		route string
		hit   bool
	}{{"files/upload_session/start", false}, {"files/upload", false}, {"files/upload_session/start", true}, {"files/upload_session/start", false}} {
		if got := f.matches(of(c.route)); got != c.hit {
			t.Errorf("request %d: %v", i, got)
		}
	}
	if f.Hits() != 1 {
		t.Errorf("%d hits", f.Hits())
	}
	if begins := Reset().On("files/"); !begins.matches(of("files/upload")) || begins.matches(of("users/files/x")) || begins.matches(of("oauth2/token")) {
		t.Error("a route that ends with a slash is how routes begin")
	}
}
