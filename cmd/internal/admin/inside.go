package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Inside has the API answer a request inside the process, as the page does and what was approved: the answer's header and
// body, or the problem as an *api.Error, beside the header.
func Inside(h http.Handler, q *http.Request) (http.Header, []byte, error) {
	out := unsent{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(&out, q)
	if out.status < 400 {
		return out.header, bytes.TrimSpace(out.body.Bytes()), nil
	}
	e := new(api.Error)
	if err := json.Unmarshal(out.body.Bytes(), e); err != nil {
		return out.header, nil, fmt.Errorf("the API's problem is not understood: %w", err)
	}
	return out.header, nil, e
}

// unsent is an answer that stays here.
type unsent struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (u *unsent) Header() http.Header         { return u.header }
func (u *unsent) WriteHeader(status int)      { u.status = status }
func (u *unsent) Write(p []byte) (int, error) { return u.body.Write(p) }
