package dropbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// apiError is an answer of the service that is no success, whatever its form.
type apiError struct {
	route  string // "files/upload_session/finish"
	status int
	tags   string        // "path/conflict/file"; empty when there is no such body
	text   string        // what else the body says, shortened
	after  time.Duration // how long to wait, if the answer says so; -1 if not
	offset int64         // the right one, with incorrect_offset
	token  string        // the access token of the request
	scope  string        // the right that is missing
}

// Error never shows the token.
func (e *apiError) Error() string {
	what := e.tags
	if what == "" {
		what = e.text
	}
	return fmt.Sprintf("%s answered %d %s", e.route, e.status, what)
}

// has tells whether tag is one of the error's.
func (e *apiError) has(tag string) bool {
	return strings.Contains("/"+e.tags+"/", "/"+tag+"/")
}

// maxText bounds what is kept of a body that is no error of the API, such as a proxy's page.
const maxText = 200

// newError reads an answer.
func newError(route, token string, res *http.Response, body []byte) *apiError {
	e := &apiError{route: route, status: res.StatusCode, token: token, after: -1, offset: -1}
	if s, err := strconv.ParseFloat(res.Header.Get("Retry-After"), 64); err == nil && s >= 0 && s < 1e6 {
		e.after = time.Duration(s * float64(time.Second))
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
		About string          `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) == nil && len(answer.Error) > 0 {
		var name string
		if json.Unmarshal(answer.Error, &name) == nil { // of the token endpoint
			e.tags, e.text = name, answer.About
			return e
		}
		e.read(answer.Error)
	}
	e.text = strings.Join(strings.Fields(string(body)), " ")
	if len(e.text) > maxText {
		e.text = e.text[:maxText] + "…"
	}
	return e
}

// read goes down a union of the API and collects its tags, and what it says besides. Structs within it are looked into.
func (e *apiError) read(union json.RawMessage) {
	var u map[string]json.RawMessage
	if json.Unmarshal(union, &u) != nil {
		return
	}
	var tag string
	if json.Unmarshal(u[".tag"], &tag) == nil && tag != "" {
		e.tags = strings.TrimPrefix(e.tags+"/"+tag, "/")
	}
	_ = json.Unmarshal(u["correct_offset"], &e.offset)
	_ = json.Unmarshal(u["required_scope"], &e.scope)
	var seconds float64
	if json.Unmarshal(u["retry_after"], &seconds) == nil && seconds > 0 && e.after < 0 {
		e.after = time.Duration(seconds * float64(time.Second))
	}
	for _, inner := range []string{tag, "reason"} {
		if next, ok := u[inner]; ok && inner != "" {
			e.read(next)
			return
		}
	}
}

// fail is the error of an operation: why ctx ended if it did, else err with its class, without secrets.
func (s *Storage) fail(ctx context.Context, err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	hint, class := classify(err)
	switch {
	case class == nil:
		err = fmt.Errorf("%s: %w", doing, err)
	case hint == "":
		err = fmt.Errorf("%s: %w: %w", doing, class, err)
	default:
		err = fmt.Errorf("%s: %s: %w: %w", doing, hint, class, err)
	}
	return s.account.clean.Error(err)
}

// classify returns what an error means, where the service's own words do not say so, and its class, which is nil when the
// call may be tried again.
func classify(err error) (hint string, class error) {
	var e *apiError
	if !errors.As(err, &e) {
		return "", nil
	}
	switch {
	case e.has("not_found") && e.status == http.StatusConflict && !e.has("lookup_failed"):
		return "", storage.ErrNotFound
	case e.has("too_many_write_operations"), e.has("too_many_requests"), e.status == http.StatusTooManyRequests:
		return "", nil
	case e.has("insufficient_space"), e.status == http.StatusInsufficientStorage:
		return "the account is full", storage.ErrFull
	case e.has("missing_scope"):
		return fmt.Sprintf("the app has no right to this: give it the scope %s and authorize it again", e.scope), storage.ErrPermanent
	case e.has("invalid_grant"), e.status == http.StatusUnauthorized:
		return "access denied: the refresh token is revoked or of another app; authorize it again (fencepost storage auth)", storage.ErrPermanent
	case strings.HasPrefix(e.tags, "invalid_client"):
		return "the app key is unknown", storage.ErrPermanent
	case e.status == http.StatusForbidden:
		return "access denied (the account or the team does not allow it)", storage.ErrPermanent
	case e.status == http.StatusBadRequest:
		return "", storage.ErrPermanent
	}
	for _, tag := range []string{"malformed_path", "no_write_permission", "disallowed_name", "team_folder", "access_restricted",
		"payload_too_large", "restricted_content", "unsupported_content_type", "not_file", "not_folder", "folder", "file_ancestor",
		"operation_suppressed", "email_unverified"} {
		if e.has(tag) {
			return "", storage.ErrPermanent
		}
	}
	return "", nil
}

// tagOf tells whether err is an answer with that tag.
func tagOf(err error, tag string) bool {
	var e *apiError
	return errors.As(err, &e) && e.has(tag)
}

// absent tells whether err says that there is nothing at a path.
func absent(err error) bool {
	_, class := classify(err)
	return class == storage.ErrNotFound
}

// ended returns why ctx has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
