package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/fencepost/fencepost/cmd/internal/admin"
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
	header, answer, err := admin.Inside(v.cfg.API, q)
	for _, c := range header["Set-Cookie"] {
		v.w.Header().Add("Set-Cookie", c)
	}
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return got, fmt.Errorf("the API's answer is not understood: %w", err)
	}
	return got, nil
}

// problemOf is err for people.
func problemOf(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return &api.Error{Code: api.CodeFailed, Message: err.Error()}
}
