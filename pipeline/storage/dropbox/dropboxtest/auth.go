package dropboxtest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// token is an access token.
type token struct {
	expires time.Time
	calls   int
}

// allowed checks the access token of a request.
func (s *Server) allowed(r *request, scope string) *apiErr {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	t := s.tokens[value]
	var e apiErr
	switch {
	case !ok:
		e = badRequest("Error in call to API function %q: Must provide HTTP header \"Authorization\"", r.route)
	case t == nil:
		e = tagged(http.StatusUnauthorized, "invalid_access_token", nil)
	case !s.o.Now().Before(t.expires), s.o.TokenCalls > 0 && t.calls >= s.o.TokenCalls:
		e = tagged(http.StatusUnauthorized, "expired_access_token", nil)
	case !strings.Contains(" "+s.o.Scopes+" ", " "+scope+" "):
		e = tagged(http.StatusUnauthorized, "missing_scope", map[string]any{"required_scope": scope})
	default:
		t.calls++
		return nil
	}
	return &e
}

// authorize stands for the page on which a user allows the app; its answer is the code that the user copies.
func (s *Server) authorize(r *request) {
	q := r.URL.Query()
	switch {
	case q.Get("client_id") != s.o.AppKey, q.Get("response_type") != "code", q.Get("token_access_type") != "offline",
		q.Get("code_challenge_method") != "S256", q.Get("code_challenge") == "":
		r.answer.text(http.StatusBadRequest, "invalid request")
		return
	}
	s.mu.Lock()
	code := fmt.Sprintf("code-%d", s.next())
	s.codes[code] = q.Get("code_challenge")
	s.mu.Unlock()
	r.answer.text(http.StatusOK, "%s", code)
}

// giveToken answers the token endpoint.
func (s *Server) giveToken(r *request) {
	b, err := r.content()
	q, parseErr := url.ParseQuery(string(b))
	if err != nil || parseErr != nil || r.Method != http.MethodPost {
		r.answer.json(http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := map[string]any{"token_type": "bearer", "scope": s.o.Scopes, "account_id": "dbid:emulator", "uid": "1"}
	switch grant := q.Get("grant_type"); {
	case q.Get("client_id") != s.o.AppKey:
		r.answer.json(http.StatusBadRequest, map[string]any{"error": "invalid_client: Invalid client_id or client_secret"})
		return
	case grant == "refresh_token" && s.grants[q.Get("refresh_token")]:
	case grant == "authorization_code" && s.proven(q.Get("code"), q.Get("code_verifier")):
		refresh := fmt.Sprintf("refresh-%d", s.next())
		s.grants[refresh] = true
		answer["refresh_token"] = refresh
	case grant == "refresh_token":
		r.answer.json(http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "refresh token is invalid or revoked"})
		return
	default:
		r.answer.json(http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "code doesn't exist or has expired"})
		return
	}
	value := fmt.Sprintf("access-%d", s.next())
	s.tokens[value] = &token{expires: s.o.Now().Add(s.o.TokenLife)}
	answer["access_token"], answer["expires_in"] = value, int(s.o.TokenLife/time.Second)
	r.answer.json(http.StatusOK, answer)
}

// proven tells whether the code was given to who knows the verifier. A code works once.
func (s *Server) proven(code, verifier string) bool {
	challenge, ok := s.codes[code]
	delete(s.codes, code)
	sum := sha256.Sum256([]byte(verifier))
	return ok && verifier != "" && base64.RawURLEncoding.EncodeToString(sum[:]) == challenge
}
