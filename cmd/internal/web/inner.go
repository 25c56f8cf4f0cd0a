package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ask gets what a route of the API answers to who makes the visit.
func ask[A any](v *visit, path string) (A, error) { return call[A](v, http.MethodGet, path, nil) }

// tell has a route of the API do something.
func tell[A any](v *visit, path string, body any) (A, error) {
	return call[A](v, http.MethodPost, path, body)
}

// call makes a request to the API inside the process: with the visitor's name, cookie and address, and with the form's token
// and key where there is a form.
func call[A any](v *visit, method, path string, body any) (got A, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return got, err
		}
	}
	q, err := http.NewRequestWithContext(v.r.Context(), method, path, bytes.NewReader(text))
	if err != nil {
		return got, err
	}
	q.Host, q.RemoteAddr, q.TLS = v.r.Host, v.r.RemoteAddr, v.r.TLS
	for _, name := range []string{"Cookie", "User-Agent"} {
		q.Header[name] = v.r.Header[name]
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		q.Header.Set(api.HeaderFormToken, v.form.Get(fieldToken))
		if v.key != "" {
			q.Header.Set(api.HeaderIdempotencyKey, v.key)
		}
	}
	a := answer{header: http.Header{}, status: http.StatusOK}
	v.cfg.API.ServeHTTP(&a, q)
	for _, c := range a.header["Set-Cookie"] {
		v.w.Header().Add("Set-Cookie", c)
	}
	if a.status >= 400 {
		e := new(api.Error)
		if err := json.Unmarshal(a.body.Bytes(), e); err != nil {
			return got, fmt.Errorf("the API's problem is not understood: %w", err)
		}
		return got, e
	}
	if err := json.Unmarshal(a.body.Bytes(), &got); err != nil {
		return got, fmt.Errorf("the API's answer is not understood: %w", err)
	}
	return got, nil
}

// answer is a response in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// problemOf is err for people.
func problemOf(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return &api.Error{Code: api.CodeFailed, Message: err.Error()}
}
