package dropbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// scopes are the rights that a storage needs.
var scopes = []string{"account_info.read", "files.metadata.read", "files.metadata.write", "files.content.read", "files.content.write"}

// Authorization is one attempt to get a refresh token from a person who may give it: they open URL, allow the app, and
// copy the code that the page shows. No server of ours has to be reached by a browser, and the app has no secret (PKCE).
type Authorization struct {
	// URL is for the person's browser.
	URL string

	appKey, tokens, verifier string
}

// Authorize begins. endpoint is as in AccountOptions.
func Authorize(appKey, endpoint string) (*Authorization, error) {
	if appKey == "" {
		return nil, errors.New("authorize: app key is missing")
	}
	page, tokens := "https://www.dropbox.com/oauth2/authorize", "https://api.dropboxapi.com/oauth2/token"
	if endpoint != "" {
		base := strings.TrimRight(endpoint, "/")
		page, tokens = base+"/oauth2/authorize", base+"/oauth2/token"
	}
	verifier := rand.Text() + rand.Text() // 52 characters; at least 43 are wanted
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"client_id": {appKey}, "response_type": {"code"}, "token_access_type": {"offline"}, "scope": {strings.Join(scopes, " ")},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	return &Authorization{URL: page + "?" + query.Encode(), appKey: appKey, tokens: tokens, verifier: verifier}, nil
}

// Finish turns the code into a refresh token, which stays good until the account's owner revokes it. A wrong or used code,
// or an app without the rights that are needed, is storage.ErrPermanent.
func (z *Authorization) Finish(ctx context.Context, code string) (secret.Secret, error) {
	g, err := askToken(ctx, http.DefaultClient, z.tokens, url.Values{
		"grant_type": {"authorization_code"}, "code": {strings.TrimSpace(code)}, "code_verifier": {z.verifier}, "client_id": {z.appKey},
	})
	switch {
	case tagOf(err, "invalid_grant"):
		return secret.Secret{}, fmt.Errorf("authorize: the code is wrong, used or too old: begin again: %w: %w", storage.ErrPermanent, err)
	case err != nil:
		return secret.Secret{}, fmt.Errorf("authorize: %w", err)
	case g.RefreshToken == "":
		return secret.Secret{}, fmt.Errorf("authorize: the answer holds no refresh token: %w", storage.ErrPermanent)
	}
	granted := strings.Fields(g.Scope)
	for _, want := range scopes {
		if g.Scope != "" && !slices.Contains(granted, want) {
			return secret.Secret{}, fmt.Errorf("authorize: the app lacks the right %s: tick it on the app's page, then begin again: %w",
				want, storage.ErrPermanent)
		}
	}
	return secret.New(g.RefreshToken), nil
}
