package dropbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// access is an access token. The zero value is none.
type access struct {
	token   string
	renew   time.Time // from then on a new one is asked for
	expires time.Time
}

// early is how long before its end an access token is renewed; a tenth of its life if that is less.
const early = 5 * time.Minute

// token returns an access token that is good for now. One caller at a time asks for a new one; the others wait for it.
func (a *Account) token(ctx context.Context) (string, error) {
	var t access
	select {
	case t = <-a.access:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { a.access <- t }()
	now := time.Now()
	if t.token != "" && now.Before(t.renew) {
		return t.token, nil
	}
	g, err := askToken(ctx, a.plain, a.tokenURL(), url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {a.refresh.Reveal()}, "client_id": {a.appKey},
	})
	if err != nil {
		if t.token != "" && now.Before(t.expires) { // still good: the next call asks again
			a.log.WarnContext(ctx, "dropbox: no new access token yet", "err", a.clean.Error(err))
			return t.token, nil
		}
		return "", err
	}
	life := time.Duration(g.ExpiresIn) * time.Second
	t = access{token: g.AccessToken, expires: now.Add(life), renew: now.Add(life - min(early, life/10))}
	return t.token, nil
}

// spoil forgets an access token that was refused, and tells whether it was still the present one.
func (a *Account) spoil(token string) bool {
	t := <-a.access
	present := t.token == token
	if present {
		t = access{}
	}
	a.access <- t
	return present
}

// grant is an answer of the token endpoint.
type grant struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	AccountID    string `json:"account_id"`
}

// askToken asks the token endpoint once. Errors are *apiError or of the network, and never show what was sent.
func askToken(ctx context.Context, client *http.Client, endpoint string, form url.Values) (grant, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return grant{}, fmt.Errorf("ask for a token: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return grant{}, fmt.Errorf("ask for a token: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return grant{}, fmt.Errorf("ask for a token: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return grant{}, newError("oauth2/token", "", res, body)
	}
	var g grant
	if err := json.Unmarshal(body, &g); err != nil || g.AccessToken == "" || g.ExpiresIn <= 0 {
		return grant{}, errors.New("ask for a token: the answer holds none")
	}
	return g, nil
}
