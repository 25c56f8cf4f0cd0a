package dropbox

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// transport is what stands between the SDK and the network. It adds the access token, writes the argument of content
// calls so that it may stand in a header, and turns every answer that is no success into an *apiError, which the SDK
// passes on as it is: with its status, its Retry-After, and whatever its body is. Repeating is call's.
type transport struct {
	account *Account
	next    http.RoundTripper
}

const argHeader = "Dropbox-API-Arg"

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.account.token(r.Context())
	if err != nil {
		return nil, errors.Join(err, closeBody(r))
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	if arg := r.Header.Get(argHeader); arg != "" {
		r.Header.Set(argHeader, headerSafe(arg))
	}
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode == http.StatusOK && r.Header.Get("Range") != "":
		_ = res.Body.Close()
		return nil, fmt.Errorf("%s: the server does not send parts of a file", route(r))
	case res.StatusCode == http.StatusOK, res.StatusCode == http.StatusPartialContent:
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err = errors.Join(err, res.Body.Close()); err != nil { // what it says is not known
		return nil, fmt.Errorf("%s answered %d, and not to the end: %w", route(r), res.StatusCode, err)
	}
	return nil, newError(route(r), token, res, body)
}

func closeBody(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	return r.Body.Close()
}

// route is the call of the API that a request is.
func route(r *http.Request) string { return strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "2/") }
